"""What is accepted from a user, what is refused and in which words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from taggernet.data import Scenes, infer_kind

pytestmark = pytest.mark.usefixtures("without_typecheck")


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
        (
            {"x": X, "groups": np.zeros((3, 2, 2))},
            TypeError,
            r"groups has dtype float64.*groups\.astype\(int\)",
        ),
        ({"x": X, "groups": np.full((3, 2, 2), -1)}, ValueError, "groups holds -1, expected 0"),
        ({"x": X, "classes": np.zeros(2, int)}, ValueError, "classes has 2 rows, but x has 3 scenes"),
        ({"x": X, "classes": np.zeros((3, 1, 1), int)}, ValueError, "classes has shape"),
        ({"x": X, "classes": np.array(1)}, ValueError, "classes has shape"),
        ({"x": X, "classes": np.zeros(3)}, TypeError, r"classes has dtype float64.*classes\.astype\(int\)"),
        ({"x": X, "classes": ["a", "b", "a"]}, TypeError, r"classes has dtype <U1.*numpy\.unique\(classes"),
        ({"x": X, "groups": np.full((3, 2, 2), "a")}, TypeError, "groups has dtype <U1.*number the groups"),
        ({"x": X, "classes": np.full(3, -2)}, ValueError, "classes holds -2"),
        ({"x": X, "details": {"kinds": np.zeros(2)}}, ValueError, "detail 'kinds' has shape"),
    ],
)
def test_bad_input_gets_one_sentence(arguments: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        Scenes.of(**arguments)
    assert "\n" not in str(caught.value)
