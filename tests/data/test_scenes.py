"""Scenes: what is accepted from a user, what is refused and in which words, and slicing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from taggernet.data import Scenes, infer_kind, labelled_subset, shapes

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


def test_checked_arrays_are_not_copied() -> None:
    x = np.ones((3, 4), np.uint8)
    assert np.shares_memory(Scenes.of(x).x, x)


@given(hnp.arrays(st.sampled_from([np.float32, np.float64, np.int16, np.uint8, np.bool_]), (3, 4)))
@settings(max_examples=50)
def test_any_array_is_taken_whole_or_refused(x: np.ndarray) -> None:
    with np.errstate(over="ignore"):
        finite = np.isfinite(x.astype(np.float32)).all()
    if not finite:
        with pytest.raises(ValueError, match="NaN, infinity or a value too large"):
            Scenes.of(x)
    else:
        scenes = Scenes.of(x)
        assert np.array_equal(scenes.x, x.astype(np.float32))
        assert scenes.kind == infer_kind(x) == ("binary" if np.isin(x, (0, 1)).all() else "real")


X = np.zeros((3, 2, 2))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"x": np.zeros(4)}, ValueError, r"x has shape \(4,\), expected \(n, \.\.\.\)"),
        ({"x": 3}, ValueError, r"x has shape \(\)"),
        ({"x": np.zeros((0, 4))}, ValueError, "x is empty"),
        ({"x": np.zeros((4, 0))}, ValueError, "x is empty"),
        ({"x": np.array([[0, np.nan]])}, ValueError, r"NaN, infinity or a value too large \(scene 0\)"),
        ({"x": np.array([[0, 1], [0, np.inf]])}, ValueError, r"\(scene 1\)"),
        ({"x": np.array([[1e300, 0]])}, ValueError, "too large"),
        ({"x": np.array([[0, 1j]])}, TypeError, "x has dtype complex128, expected numbers"),
        ({"x": np.array([[object()]])}, TypeError, "x has dtype object"),
        ({"x": [["a"]]}, TypeError, "x has dtype <U1"),
        ({"x": None}, TypeError, "x has dtype object"),
        ({"x": [[1, 2], [3]]}, ValueError, "every scene has the same shape"),
        ({"x": np.array([["2020-01-01"]], "datetime64[D]")}, TypeError, "datetime64"),
        ({"x": np.full((2, 2), 0.5), "kind": "binary"}, ValueError, "values other than 0 and 1: threshold x"),
        ({"x": X, "kind": "grey"}, ValueError, "kind='grey' is not known: choose one of 'binary', 'real'"),
        ({"x": X, "groups": np.zeros((3, 4), int)}, ValueError, r"groups has shape \(3, 4\), but x has"),
        ({"x": X, "groups": np.zeros((3, 2, 2))}, TypeError, "groups has dtype float64, expected integers"),
        ({"x": X, "groups": np.full((3, 2, 2), -1)}, ValueError, "groups holds -1, expected 0"),
        ({"x": X, "classes": np.zeros(2, int)}, ValueError, "classes has 2 rows, but x has 3 scenes"),
        ({"x": X, "classes": np.zeros((3, 1, 1), int)}, ValueError, "classes has shape"),
        ({"x": X, "classes": np.array(1)}, ValueError, "classes has shape"),
        ({"x": X, "classes": np.zeros(3)}, TypeError, "classes has dtype float64"),
        ({"x": X, "classes": np.full(3, -2)}, ValueError, "classes holds -2"),
        ({"x": X, "details": {"kinds": np.zeros(2)}}, ValueError, "detail 'kinds' has shape"),
    ],
)
def test_bad_input_gets_one_sentence(arguments: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        Scenes.of(**arguments)
    assert "\n" not in str(caught.value)


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
