"""Figures are written, hold the panels they should, and paint groups in their colours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from paper.animation import animation
from paper.charts import generalisation_figure, surface
from paper.figure4 import at_percentiles, figure4, worst_scenes_figure
from paper.generalisation import generalisation
from taggernet.config.run import DataConfig
from taggernet.data import Scenes, shapes
from taggernet.evaluation import stacked
from taggernet.tagger import Tagger, TaggerConfig
from taggernet.viz.colours import GROUP_COLOURS, grey, ink, paint, palette, rgb, tint
from taggernet.viz.figures import grouping_figure
from taggernet.viz.layout import Sheet, Trace, draw_inference, inference_size, number, save

DATA = DataConfig(objects=2, size=10, style="small")


@pytest.fixture
def model() -> Tagger:
    torch.manual_seed(0)
    return Tagger(TaggerConfig(shape=(10, 10), widths=(16, 8), norm="layer", mean=0.28))


def written(out: Path) -> bool:
    pdf, png = out.with_suffix(".pdf"), out.with_suffix(".png")
    return pdf.read_bytes().startswith(b"%PDF") and png.read_bytes().startswith(b"\x89PNG")


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


def test_files_can_be_compared(model: Tagger, tmp_path: Path) -> None:
    scenes = shapes(2, size=10, objects=2, style="small")
    for name in ("a.pdf", "b.png"):
        grouping_figure(scenes, model.group(scenes.x, 2, 1), tmp_path / name)
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
    assert written(tmp_path / "a")


def test_grouping_figure_has_a_mask_per_group(model: Tagger, tmp_path: Path, drawn: list[Figure]) -> None:
    scenes = shapes(5, size=10, objects=2, style="small")
    grouping_figure(scenes, model.group(scenes.x, 6, 2), tmp_path / "g", rows=3)
    assert written(tmp_path / "g")
    assert len(drawn[0].axes) == 3 * (2 + 6)


def test_only_images_can_be_drawn(model: Tagger, tmp_path: Path) -> None:
    scenes = Scenes(np.zeros((2, 100), dtype=np.uint8))
    with pytest.raises(ValueError, match="only images"):
        grouping_figure(scenes, model.group(scenes.x, 2, 1), tmp_path / "g")


@pytest.mark.parametrize("seeds", [1, 3])
def test_figures_of_a_record(model: Tagger, tmp_path: Path, drawn: list[Figure], seeds: int) -> None:
    record = generalisation(
        model, stacked([model] * seeds), scenes=30, groups=(2, 3), objects=(1, 2), iterations=2, data=DATA,
        standard=(3, 2, 2),
    )  # fmt: skip
    generalisation_figure(record, tmp_path / "generalisation")
    assert written(tmp_path / "generalisation")
    assert len(drawn[0].axes) == 7
    assert surface(record, "ami", 2)[1, 0] == pytest.approx(np.mean([s[1] for s in record["sweep"][2]["ami"]]))
    worst_scenes_figure(model, record, tmp_path / "worst", data=DATA, columns=4)
    assert written(tmp_path / "worst")
    assert len(drawn[-1].axes) == sum(2 * min(len(w), 4) for w in record["standard"]["worst"][0].values())


def test_the_animation_runs_from_the_start_to_the_result(model: Tagger, tmp_path: Path) -> None:
    path = animation(model, tmp_path / "groups.gif", scenes=3, data=DATA, groups=3, iterations=2, dpi=50)
    with Image.open(path) as gif:
        assert gif.format == "GIF"
        assert 3 <= gif.n_frames <= 13  # type: ignore[attr-defined]  # frames that do not change are joined
        assert gif.convert("RGB").getpixel((0, 0)) == (255, 255, 255)


def test_inference_with_classes_has_bars_per_group(drawn: list[Figure], tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    z, m = random.random((3, 4, 28, 28)), random.dirichlet(np.ones(4), (3, 28, 28)).transpose(0, 3, 1, 2)
    trace = Trace((z * m).sum(1)[-1], z, m, real=True)
    width, height = inference_size(4, 2, 0.4, bars=1.0)
    sheet = Sheet(width + 0.2, height + 0.4)
    draw_inference(sheet, 0.1, 0.3, 0.4, trace, classes=random.dirichlet(np.ones(11), 4), bars=1.0)
    save(sheet.figure, tmp_path / "inference")
    assert written(tmp_path / "inference")
    bars = [axes for axes in sheet.figure.axes if axes.patches]
    assert len(bars) == 4
    assert len(sheet.figure.axes) == 3 * (1 + 2 * 4) + 4
    for axes in sheet.figure.axes:
        box = axes.get_position()
        assert 0 <= box.x0 < box.x1 <= 1
        assert 0 <= box.y0 < box.y1 <= 1


def test_painting_mixes_the_groups_colours() -> None:
    z = np.ones((2, 1, 3))
    m = np.array([[[1.0, 0.0, 0.5]], [[0.0, 1.0, 0.5]]])
    first, second = rgb(GROUP_COLOURS[0]), rgb(GROUP_COLOURS[1])
    np.testing.assert_allclose(paint(z, m)[0], [first, second, (first + second) / 2])
    np.testing.assert_allclose(tint(z, m)[0], [first, second, (first + second) / 2])
    np.testing.assert_allclose(paint(0 * z, m), 1)  # nothing there: paper
    np.testing.assert_allclose(ink(np.array([[0.0, 1.0]]), GROUP_COLOURS[2])[0], [[1, 1, 1], rgb(GROUP_COLOURS[2])])
    np.testing.assert_allclose(grey(np.array([[-1.0, 2.0, 5.0]]), -1.0, 5.0)[0, :, 0], [0, 0.5, 1])


def lab(linear: Any) -> Any:
    """CIE L*a*b* of linear RGB (n, 3)."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = linear @ to_xyz.T / np.array([0.9505, 1.0, 1.089])
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def test_group_colours_differ_for_the_colour_blind() -> None:
    """Seen as simulated by Machado et al. (2009), severity 1; a difference of 2.3 is just noticeable."""
    protan = [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]]
    deutan = [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]]
    tritan = [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]]
    linear = np.where(palette(4) <= 0.04045, palette(4) / 12.92, ((palette(4) + 0.055) / 1.055) ** 2.4)
    for matrix in (np.eye(3), protan, deutan, tritan):
        seen = lab(np.clip(linear @ np.array(matrix).T, 0, 1))
        apart = np.linalg.norm(seen[:, None] - seen[None], axis=-1)
        assert apart[np.triu_indices(4, 1)].min() > 15


def test_scenes_stand_at_their_percentiles() -> None:
    scores = np.linspace(0, 1, 102)
    assert at_percentiles(scores, (100, 50, 0), but=101) == [100, 50, 0]


def test_numbers_have_no_negative_zero() -> None:
    assert [number(v) for v in (-0.001, 0.0, 0.999, -0.126)] == ["0.00", "0.00", "1.00", "−0.13"]
