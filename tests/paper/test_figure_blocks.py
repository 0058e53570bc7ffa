"""The blocks of Figures 4 and 5."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from paper.figure_blocks import draw_inference, inference_size, number
from taggernet.viz.layout import Sheet, Trace, save


def test_inference_with_classes_has_bars_per_group(drawn: list[Figure], tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    z, m = random.random((3, 4, 28, 28)), random.dirichlet(np.ones(4), (3, 28, 28)).transpose(0, 3, 1, 2)
    trace = Trace((z * m).sum(1)[-1], z, m, kind="real")
    width, height = inference_size(4, 2, 0.4, bars=1.0)
    sheet = Sheet(width + 0.2, height + 0.4)
    draw_inference(sheet, 0.1, 0.3, 0.4, trace, classes=random.dirichlet(np.ones(11), 4), bars=1.0)
    save(sheet.figure, tmp_path / "inference")
    assert (tmp_path / "inference.pdf").exists()
    bars = [axes for axes in sheet.figure.axes if axes.patches]
    assert len(bars) == 4
    assert len(sheet.figure.axes) == 3 * (1 + 2 * 4) + 4
    for axes in sheet.figure.axes:
        box = axes.get_position()
        assert 0 <= box.x0 < box.x1 <= 1
        assert 0 <= box.y0 < box.y1 <= 1


def test_numbers_have_no_negative_zero() -> None:
    assert [number(v) for v in (-0.001, 0.0, 0.999, -0.126)] == ["0.00", "0.00", "1.00", "−0.13"]
