"""The border of the metrics: every kind of integer is taken, and the result is of the kind that was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from labellings import SCORES, noisy_labels

from taggernet.metrics import adjusted_mutual_information
from taggernet.metrics.arrays import signed, to_tensors


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "uint16", "int32", "uint32", "uint64", ">i4"])
def test_every_integer_dtype_is_taken(score: Callable[..., Any], dtype: str) -> None:
    true, pred = noisy_labels(10, 80, 1, 2, seed=3)
    found = score(true.astype(dtype), pred.astype(dtype), unscored=None)
    np.testing.assert_array_equal(found, score(true, pred, unscored=None))


def devices() -> list[str]:
    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


@pytest.mark.parametrize("device", devices())
@pytest.mark.parametrize("score", SCORES)
def test_tensors_give_tensors_on_their_device_and_arrays_arrays(score: Callable[..., Any], device: str) -> None:
    true, pred = (labels.reshape(12, 5, 8) for labels in noisy_labels(12, 40, 3, 4, seed=4))
    arrays = score(true, pred)
    tensors = score(torch.tensor(true, device=device), torch.tensor(pred, device=device))
    assert isinstance(arrays, np.ndarray)
    assert arrays.dtype == np.float64
    assert isinstance(tensors, torch.Tensor)
    assert tensors.dtype == torch.float64
    assert tensors.device.type == device
    np.testing.assert_allclose(tensors.cpu().numpy(), arrays, rtol=0, atol=1e-12)


@pytest.mark.parametrize("score", SCORES)
def test_the_inputs_are_left_alone(score: Callable[..., Any]) -> None:
    true, pred = noisy_labels(4, 20, 3, 40, seed=5)
    before = true.copy(), pred.copy()
    true.setflags(write=False)
    score(true, pred[:, ::-1])
    np.testing.assert_array_equal((true, pred), before)


@pytest.mark.usefixtures("without_typecheck")
def test_lists_are_refused() -> None:
    with pytest.raises(TypeError, match=r"true is a list.*numpy\.asarray"):
        adjusted_mutual_information([[1, 2]], [[1, 2]])  # type: ignore[type-var, arg-type]


@pytest.mark.parametrize("dtype", ["uint64", "uint16", ">f4", "float16", "int8", "bool"])
def test_arrays_keep_their_values(dtype: str) -> None:
    array = np.arange(6).astype(dtype)[::-1]
    array.setflags(write=False)
    (found,) = to_tensors(x=array)
    assert found.tolist() == array.tolist()


def test_numbers_beyond_int64_are_refused() -> None:
    with pytest.raises(ValueError, match=r"x holds 18446744073709551615, but numbers up to 9223372036854775807"):
        to_tensors(x=np.array([2**64 - 1], np.uint64))
    with pytest.raises(ValueError, match="x holds numbers beyond 9223372036854775807"):
        signed("x", torch.tensor([2**63], dtype=torch.uint64))
    assert signed("x", torch.tensor([2**31], dtype=torch.uint32)).tolist() == [2**31]
