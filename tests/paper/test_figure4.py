"""Figures are written, hold the panels they should, and paint groups in their colours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from drawings import written
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from paper.figure4 import at_percentiles, figure4
from taggernet.config.run import DataConfig
from taggernet.tagger import Tagger, TaggerConfig

DATA = DataConfig(objects=2, size=10, style="small")


@pytest.fixture
def model() -> Tagger:
    torch.manual_seed(0)
    return Tagger(TaggerConfig(shape=(10, 10), widths=(16, 8), norm="layer", mean=0.28))


def test_figure4_has_every_panel(model: Tagger, tmp_path: Path, drawn: list[Figure]) -> None:
    shown = figure4(model, tmp_path / "figure4", scenes=40, data=DATA, groups=3, iterations=2)
    assert written(tmp_path / "figure4")
    assert len(drawn[0].axes) == 10 * 2 + (1 + 2 * 3) * 3  # inputs and groups; q(x), z and m at the start, 1 and 2
    scores = [one["ami"] for one in shown["examples"]]
    assert len(scores) == 7
    assert scores == sorted(scores, reverse=True)
    assert {k: (v["groups"], v["objects"]) for k, v in shown["cases"].items()} == {
        "A": (2, 3),
        "B": (4, 4),
        "C": (4, 2),
    }
    words = [text.get_text() for text in drawn[0].texts]
    assert {"A", "B", "C", "start", "$i=2$"} <= set(words)


def test_no_text_of_figure4_touches_another(model: Tagger, tmp_path: Path, drawn: list[Figure]) -> None:
    figure4(model, tmp_path / "f", scenes=40, data=DATA, groups=4, iterations=5)
    figure = drawn[0]
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = [text.get_window_extent(renderer) for text in figure.texts if text.get_text()]
    boxes += [axes.get_window_extent(renderer) for axes in figure.axes]
    for i, one in enumerate(boxes):
        assert figure.bbox.x0 <= one.x0 <= one.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= one.y0 <= one.y1 <= figure.bbox.y1
        assert not any(one.overlaps(other) for other in boxes[i + 1 :])


def test_scenes_stand_at_their_percentiles() -> None:
    scores = np.linspace(0, 1, 102)
    assert at_percentiles(scores, (100, 50, 0), but=101) == [100, 50, 0]
