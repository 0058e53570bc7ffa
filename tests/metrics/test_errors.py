"""Top-1 and top-2 errors against a loop that follows their definition word by word."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from taggernet.metrics import classification_error, top1_error, top2_error
from taggernet.metrics.errors import errors_by_digit

CLASSES = 5


def by_hand(probabilities: NDArray[np.float64], digits: NDArray[np.int64]) -> float:
    ranked = sorted(range(len(probabilities)), key=lambda c: (-probabilities[c], c))
    if len(set(digits.tolist())) == 1:
        return float(ranked[0] != digits[0])
    return sum(digit not in ranked[:2] for digit in digits.tolist()) / 2


probabilities_ = hnp.arrays(np.float64, (6, CLASSES), elements=st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.5, 1.0]))
digits_ = hnp.arrays(np.int64, (6, 2), elements=st.integers(0, CLASSES - 1))


@given(probabilities_, digits_)
def test_errors_follow_their_definition(probabilities: NDArray[np.float64], digits: NDArray[np.int64]) -> None:
    expected = [by_hand(row, pair) for row, pair in zip(probabilities, digits, strict=True)]
    assert top2_error(probabilities, digits).tolist() == expected
    assert classification_error(probabilities, digits).tolist() == expected
    expected = [by_hand(row, one) for row, one in zip(probabilities, digits[:, :1], strict=True)]
    assert top1_error(probabilities, digits[:, 0]).tolist() == expected
    assert classification_error(probabilities, digits[:, 0]).tolist() == expected
    assert classification_error(probabilities, digits[:, :1]).tolist() == expected


@given(probabilities_, digits_)
def test_each_digit_has_its_part_of_the_error(probabilities: NDArray[np.float64], digits: NDArray[np.int64]) -> None:
    for row, pair, found in zip(probabilities, digits, errors_by_digit(probabilities, digits), strict=True):
        ranked = sorted(range(CLASSES), key=lambda c: (-row[c], c))
        seen = ranked[:1] if pair[0] == pair[1] else ranked[:2]
        assert found.tolist() == [float(digit not in seen) for digit in pair]


@given(probabilities_, digits_)
def test_the_order_of_the_two_digits_does_not_matter(
    probabilities: NDArray[np.float64], digits: NDArray[np.int64]
) -> None:
    swapped = top2_error(probabilities, digits[:, ::-1])
    np.testing.assert_array_equal(top2_error(probabilities, digits), swapped)


def test_a_digit_shown_twice_is_judged_by_the_highest_class() -> None:
    probabilities = np.array([[0.6, 0.4, 0.0], [0.4, 0.6, 0.0]])
    assert top2_error(probabilities, np.array([[0, 0], [0, 0]])).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_tensors_give_tensors_and_arrays_arrays(device: str) -> None:
    rng = np.random.default_rng(0)
    probabilities = rng.random((9, 10)).astype(np.float32)
    digits = rng.integers(0, 10, (9, 2)).astype(np.uint8)
    arrays = top2_error(probabilities, digits)
    tensors = top2_error(torch.tensor(probabilities, device=device), torch.tensor(digits, device=device))
    assert isinstance(arrays, np.ndarray)
    assert tensors.device.type == device
    assert tensors.dtype == torch.float64
    np.testing.assert_array_equal(tensors.cpu().numpy(), arrays)


def test_no_scenes_give_no_errors() -> None:
    assert top1_error(np.zeros((0, 3)), np.zeros(0, dtype=np.int64)).shape == (0,)
    assert top2_error(np.zeros((0, 3)), np.zeros((0, 2), dtype=np.int64)).shape == (0,)


GOOD = np.full((2, 3), 1 / 3)
BAD_INPUT: list[tuple[Any, Any, type[Exception], str]] = [
    (GOOD, np.array([0, 1, 2]), ValueError, r"classes have shape \(3,\), but \(2,\) is expected"),
    (GOOD, np.array([0, 3]), ValueError, "classes range from 0 to 3, but 0 to 2.*number the classes from 0"),
    (GOOD, np.array([-1, 2]), ValueError, "classes range from -1 to 2"),
    (GOOD, np.array([0.0, 1.0]), TypeError, "classes has dtype torch.float64.*integers"),
    (GOOD * np.nan, np.array([0, 1]), ValueError, "contain NaN.*diverged"),
    (GOOD[:, :1], np.array([0, 0]), ValueError, r"shape \(2, 1\).*C >= 2"),
    (GOOD[0], np.array([0, 1]), ValueError, r"shape \(3,\).*\(B, C\)"),
    (np.ones((2, 3), dtype=np.int64), np.array([0, 1]), TypeError, "dtype torch.int64.*floating point"),
    (GOOD, torch.tensor([0, 1]), TypeError, "probabilities is a numpy array and classes is a tensor"),
]


@pytest.mark.parametrize(("probabilities", "classes", "error", "message"), BAD_INPUT)
def test_wrong_input_is_named_in_one_sentence(
    probabilities: Any, classes: Any, error: type[Exception], message: str
) -> None:
    for metric in (top1_error, classification_error):
        with pytest.raises(error, match=message):
            metric(probabilities, classes)


def test_each_metric_points_to_the_other() -> None:
    with pytest.raises(ValueError, match=r"shape \(2,\), but \(2, 2\).*top1_error for one class"):
        top2_error(GOOD, np.array([0, 1]))
    with pytest.raises(ValueError, match=r"shape \(2, 3\), but \(B,\), \(B, 1\) or \(B, 2\)"):
        classification_error(GOOD, np.zeros((2, 3), dtype=np.int64))
