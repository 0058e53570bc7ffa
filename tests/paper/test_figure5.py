"""Figure 5: every panel is there, E2 lacks the upper digit's group, and the scene of E is the one it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from paper import figure5 as module
from paper.figure5 import LOWER, UPPER, _Gallery, figure5
from paper.replay import Replay, replay_grouping
from taggernet.config.run import DataConfig
from taggernet.tagger import Tagger, TaggerConfig
from taggernet.training.datasets import load_split
from taggernet.training.seeds import initial_weights, one_seed
from taggernet.viz.layout import Trace

DATA = DataConfig(name="texture-mnist-2", digits="fixture", test=40)
SMALL: dict[str, Any] = {"scenes": 40, "data": DATA, "groups": 3, "iterations": 2, "batch": 20}


def model(classes: int = 10, seed: int = 0) -> Tagger:
    config = TaggerConfig(shape=(28, 28), kind="real", widths=(16, 8), classes=classes)
    return one_seed(config, initial_weights(config, [seed], "cpu"), 0)


@pytest.fixture(autouse=True)
def few_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CANDIDATES", 3)


@pytest.mark.parametrize("classes", [10, 0])
def test_every_panel_is_there(classes: int, tmp_path: Path, drawn: list[Figure]) -> None:
    shown = figure5(model(classes), None, tmp_path / "figure5", **SMALL)
    assert (tmp_path / "figure5.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "figure5.png").read_bytes().startswith(b"\x89PNG")
    iterations = (1 + 2 * 3) * 3  # q(x), z and m of three groups at the start, 1 and 2
    e2 = 1 + 2 * 2  # the same of the two groups that are left
    assert len(drawn[0].axes) == 10 * 2 + iterations + e2 + (3 if classes else 0)
    assert len([axes for axes in drawn[0].axes if axes.patches]) == (3 if classes else 0)
    words = [text.get_text() for text in drawn[0].texts]
    assert {"D", "E1", "E2", "start", "$i=2$"} <= set(words)
    assert ("class" in words) == bool(classes)
    scores = [one["ami"] for one in shown["examples"]]
    assert len(scores) == 7
    assert scores == sorted(scores, reverse=True)
    assert json.loads(json.dumps(shown)) == shown
    assert (shown["E"]["read"] is None) == (not classes)


def test_nothing_touches(tmp_path: Path, drawn: list[Figure]) -> None:
    figure5(model(), None, tmp_path / "f", **SMALL | {"groups": 4, "iterations": 5})
    figure = drawn[0]
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = [text.get_window_extent(renderer) for text in figure.texts if text.get_text()]
    boxes += [axes.get_tightbbox(renderer) for axes in figure.axes]
    for i, one in enumerate(boxes):
        assert figure.bbox.x0 <= one.x0 <= one.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= one.y0 <= one.y1 <= figure.bbox.y1
        assert not any(one.padded(-0.5).overlaps(other.padded(-0.5)) for other in boxes[i + 1 :])


def test_e2_is_e1_without_the_upper_digits_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sheets: list[tuple[Any, ...]] = []
    monkeypatch.setattr(module, "_sheet", lambda *arguments: sheets.append(arguments))
    shown = figure5(model(), None, tmp_path / "f", **SMALL, example=23)
    assert shown["E"]["scene"] == 23
    scenes = load_split(DATA, "test")
    seen = replay_grouping(model(), scenes, [23], groups=3, iterations=2, batch=20, seed=0)
    assert scenes.groups is not None
    visible = scenes.groups[23].reshape(-1) == UPPER
    held = [float(seen.history[-1].m[0, k][torch.from_numpy(visible)].sum()) for k in range(3)]
    upper = int(np.argmax(held))
    assert shown["E"]["taken_away"] == upper
    examples, inference, taken, classes, ami, _ = sheets[0]
    expected = Trace.of(scenes[23], seen.without(upper), 0)
    np.testing.assert_array_equal(taken.m, expected.m)
    np.testing.assert_array_equal(inference.m[-1], seen.masks[0])
    np.testing.assert_allclose(examples[-1].trace.x, seen.without(upper).denoised[0], rtol=1e-5)
    np.testing.assert_array_equal(examples[-2].trace.x, scenes.x[23])
    top = seen.history[-1].top
    assert top is not None
    np.testing.assert_array_equal(classes, top[0])
    assert classes.shape == (3, 11)
    assert len(ami) == 2


def test_the_scene_of_e_is_where_the_lower_digit_gains_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_sheet", lambda *_: None)
    monkeypatch.setattr(module, "CANDIDATES", 40)
    net, scenes = model(), load_split(DATA, "test")
    assert scenes.groups is not None
    assert scenes.classes is not None
    gains = {}
    for i, (true, (first, second)) in enumerate(zip(scenes.groups, scenes.classes, strict=True)):
        seen = replay_grouping(net, scenes, [i], groups=3, iterations=2, batch=20, seed=0)
        held = [[float(seen.masks[0, k][true == which].sum()) for k in range(3)] for which in (LOWER, UPPER)]
        lower, upper = (int(np.argmax(one)) for one in held)
        if first != second and lower != upper:
            gains[i] = float(seen.without(upper).masks[0, lower].sum() - seen.masks[0, lower].sum())
    assert len(gains) > 5
    shown = figure5(net, None, tmp_path / "f", **SMALL)["E"]
    assert shown["scene"] == max(gains, key=lambda i: gains[i])
    assert shown["digits"] == scenes.classes[shown["scene"]].tolist()


def test_candidates_are_those_read_right_and_grouped_best() -> None:
    ami = np.array([[0.9, 0.2, 0.8, 0.5]])
    error = np.array([0.5, 0.0, 0.0, 1.0])
    gallery = _Gallery(Replay(model(), DATA, 4, 0, 2, 20), load_split(DATA, "test")[:4], 3, ami, error)
    assert gallery.ranked() == [2, 1, 0, 3]


def test_another_model_may_group_the_single_digit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_sheet", lambda *_: None)
    monkeypatch.setattr(module, "CANDIDATES", 3)
    same = figure5(model(), model(), tmp_path / "f", **SMALL)
    assert same == figure5(model(), None, tmp_path / "f", **SMALL)
    other = figure5(model(), model(seed=1), tmp_path / "f", **SMALL)
    assert other["examples"] == same["examples"]
    assert other["D"]["ami"] != same["D"]["ami"]


def test_the_example_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"example=40 was asked for, but there are scenes 0 .. 39"):
        figure5(model(), None, tmp_path / "f", **SMALL, example=40)
