"""Scenes: a user's arrays, slicing, and a labelled subset."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from taggernet.data import Scenes, labelled_subset, shapes

pytestmark = pytest.mark.usefixtures("without_typecheck")


def test_own_arrays_become_scenes() -> None:
    x = np.array([[0.0, 1.0], [1.0, 1.0]])
    scenes = Scenes.of(x, groups=np.array([[0, 1], [1, 2]]), classes=[3, -1])
    assert scenes.kind == "binary"
    assert scenes.x.dtype == np.uint8
    assert scenes.shape == (2,)
    assert scenes.classes.tolist() == [3, -1]
    assert Scenes.of(x, kind="real").x.dtype == np.float32
    assert Scenes.of(torch.rand(3, 4, 5)).kind == "real"
    assert Scenes.of(torch.ones(3, 2, dtype=torch.bfloat16)).kind == "binary"
    assert Scenes.of([[True, False]]).x.tolist() == [[1, 0]]


def test_slicing_keeps_everything_together() -> None:
    scenes = shapes(20, seed=1)
    mask = np.arange(20) % 3 == 0
    for index in (slice(3, 9), np.array([5, 1, 1]), mask, 4, -1, np.int64(2)):
        part = scenes[index]
        rows = np.atleast_1d(np.arange(20)[index])
        assert len(part) == len(rows)
        assert part.kind == "binary"
        assert np.array_equal(part.x, scenes.x[rows])
        assert np.array_equal(part.groups, scenes.groups[rows])
        assert all(np.array_equal(part.details[name], scenes.details[name][rows]) for name in scenes.details)
    assert len(list(scenes)) == 20
    with pytest.raises(IndexError, match="scene 20 was asked for, but there are 20"):
        scenes[20]


def test_labelled_subset_is_balanced_by_the_first_digit() -> None:
    classes = np.random.default_rng(0).integers(0, 10, (5000, 2))
    chosen = labelled_subset(classes, 1000, seed=3)
    assert len(set(chosen.tolist())) == 1000
    assert (np.diff(chosen) > 0).all()
    assert np.array_equal(np.bincount(classes[chosen, 0]), np.full(10, 100))
    assert np.array_equal(chosen, labelled_subset(classes, 1000, seed=3))
    assert not np.array_equal(chosen, labelled_subset(classes, 1000, seed=4))
    assert np.array_equal(chosen, labelled_subset(classes[:, 0], 1000, seed=3))
    assert set(labelled_subset(classes, 100, seed=3)) < set(chosen)


def test_labelled_subset_never_takes_a_scene_without_a_label() -> None:
    assert labelled_subset(np.array([-1, 0, 1, -1, 0, 1]), 4, n_classes=2).tolist() == [1, 2, 4, 5]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"count": 15},
            ValueError,
            "count=15 cannot be shared equally by 10 classes: choose a multiple of 10",
        ),
        ({"count": 0}, ValueError, "count=0"),
        ({"count": 1e3}, TypeError, "count=1000.0 is not an integer: give an integer of at least 1"),
        (
            {"count": 1000},
            ValueError,
            "needs 100 scenes of class 0, but there are 10: choose a smaller count",
        ),
        ({"count": 5, "n_classes": 5}, ValueError, "class 9 was given, but n_classes=5"),
        ({"count": 10, "classes": np.zeros(5)}, TypeError, "expected integers"),
        ({"count": 10, "classes": np.zeros(0, int)}, ValueError, "classes has shape"),
    ],
)
def test_labelled_subset_refuses(arguments: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        labelled_subset(**{"classes": np.arange(100) % 10, **arguments})
