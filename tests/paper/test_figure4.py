"""Figures are written, hold the panels they should, and paint groups in their colours."""

from __future__ import annotations

from pathlib import Path

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
from taggernet.evaluation import stack_weights
from taggernet.tagger import Tagger, TaggerConfig
from taggernet.viz.layout import Sheet, Trace, draw_inference, inference_size, save

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


@pytest.mark.parametrize("seeds", [1, 3])
def test_figures_of_a_record(model: Tagger, tmp_path: Path, drawn: list[Figure], seeds: int) -> None:
    record = generalisation(
        model, stack_weights([model] * seeds), scenes=30, groups=(2, 3), objects=(1, 2), iterations=2, data=DATA,
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


def test_scenes_stand_at_their_percentiles() -> None:
    scores = np.linspace(0, 1, 102)
    assert at_percentiles(scores, (100, 50, 0), but=101) == [100, 50, 0]


def test_figure_4_is_drawn_though_only_the_record_of_its_row_is_there(tmp_path: Path) -> None:
    """A clone has the records but not the weights: they are trained, here at toy size."""
    from paper.reproduce import reproduce

    for _ in range(2):  # the second time from the run that the first one left
        reproduce("figure4", quick=True, results=tmp_path, runs=tmp_path / "runs", device="cpu")
    made = tmp_path / "quick" / "table1"
    assert {p.name for p in made.iterdir()} == {"figure4.pdf", "figure4.png", "figure4.gif", "figure4.json"}
