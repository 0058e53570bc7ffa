"""Pictures of scenes: objects have the colours of their groups, and what is drawn is the mean of q(x)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.image import imread

from paper.objects_figure import GROUND, drawn, in_colours, matched_objects, objects_figure
from taggernet import Tagger, TaggerConfig
from taggernet.data import sprites
from taggernet.viz.colours import palette, rgb
from taggernet.viz.layout import Trace


def test_objects_have_the_numbers_of_the_groups_that_hold_them() -> None:
    true = np.array([[0, 0, 1, 1], [2, 2, 2, 0]])
    found = np.array([[3, 3, 0, 0], [1, 1, 0, 3]])
    group_of = matched_objects(true, found, 4)
    assert group_of[:3].tolist() == [3, 0, 1]
    more = matched_objects(true, np.zeros_like(found), 2)
    assert sorted(more.tolist()) == [0, 1, 2], "fewer groups than objects: each object has a number of its own"


def test_positions_are_coloured_by_their_group_and_the_background_is_grey() -> None:
    picture = in_colours(np.array([[0, 1], [2, 1]]), background=1)
    assert picture[0, 0] == pytest.approx(palette(3)[0])
    assert picture[1, 0] == pytest.approx(palette(3)[2])
    assert picture[0, 1] == pytest.approx(rgb(GROUND))


def test_what_is_drawn_is_the_sum_of_the_groups() -> None:
    z, m = np.random.default_rng(0).random((1, 3, 4, 5, 3)), np.random.default_rng(1).dirichlet([1] * 3, (1, 4, 5))
    x = np.linspace(0, 1, 60).reshape(4, 5, 3)
    trace = Trace(x, z, m.transpose(0, 3, 1, 2), kind="real")
    np.testing.assert_allclose(drawn(trace), np.einsum("khwc,hwk->hwc", z[0], m[0]))


def test_a_figure_has_a_column_for_each_scene(tmp_path: Path) -> None:
    scenes = sprites(3, objects=3, size=16)
    torch.manual_seed(0)
    model = Tagger(TaggerConfig((16, 16), "real", (12, 6), channels=3, norm="layer", start="values"), groups=4)
    objects_figure(scenes, model.group(scenes.x), tmp_path / "scenes")
    picture = imread(tmp_path / "scenes.png")
    assert picture.shape[0] > picture.shape[1] * 0.8, "four rows of three scenes"
    assert len(np.unique(picture.reshape(-1, picture.shape[-1]), axis=0)) > 10
