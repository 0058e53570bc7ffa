"""What is not a dense array of real numbers is refused by name."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from taggernet.arrays import check_dense_tensor, check_unmasked


def odd_tensors() -> dict[str, torch.Tensor]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch announces the end of some of these kinds
        return {
            "nested": torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]),
            "sparse": torch.eye(3).to_sparse(),
            "quantised": torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.qint8),
            "without values": torch.empty(3, device="meta"),
        }


@pytest.mark.parametrize("kind", odd_tensors())
def test_an_odd_tensor_is_refused_by_its_kind(kind: str) -> None:
    with pytest.raises(TypeError, match=f"x is a tensor that is {kind}.*: give a dense one"):
        check_dense_tensor("x", odd_tensors()[kind])


def test_complex_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match=r"x is a tensor of torch\.complex64: give real numbers"):
        check_dense_tensor("x", torch.zeros(2, dtype=torch.complex64))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int64, torch.bool])
def test_a_dense_tensor_is_returned_as_it_is(dtype: torch.dtype) -> None:
    x = torch.zeros(4, 3, dtype=dtype).T
    assert check_dense_tensor("x", x) is x


def test_masked_values_are_counted() -> None:
    with pytest.raises(ValueError, match="x has 2 masked values"):
        check_unmasked("x", np.ma.masked_less(np.array([1, 2, 3]), 3))
    check_unmasked("x", np.ma.array([1, 2, 3]))  # a mask that hides nothing
    check_unmasked("x", [1, 2, 3])
