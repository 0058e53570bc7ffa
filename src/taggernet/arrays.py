"""Checks of a user's arrays and tensors that come before any other: dense, real, unmasked numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Array = npt.NDArray[Any]
"""A numpy array of any shape and dtype."""


def check_dense_tensor(name: str, tensor: Tensor) -> Tensor:
    """A dense tensor of real numbers, in memory."""
    odd = (
        "nested" if tensor.is_nested
        else "sparse" if tensor.layout is not torch.strided
        else "quantised" if tensor.is_quantized
        else "without values (on the meta device)" if tensor.is_meta
        else ""
    )  # fmt: skip
    if odd:
        raise TypeError(f"{name} is a tensor that is {odd}: give a dense one that holds its values")
    if tensor.is_complex():
        raise TypeError(f"{name} is a tensor of {tensor.dtype}: give real numbers")
    return tensor


def check_unmasked(name: str, value: object) -> None:
    """Refuse masked values, which numpy would otherwise return as if they were data."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{name} has {int(np.ma.getmaskarray(value).sum())} masked values: fill or drop them first")


def float_array(x: object) -> Array:
    """x as float32 or float64 that torch can take over: in order, native and not read-only."""
    check_unmasked("x", x)
    try:
        array = np.asarray(x)
    except ValueError:
        if not isinstance(x, list | tuple):
            raise TypeError(f"x is of type {type(x).__name__}: give an array of numbers, of Scenes their x") from None
        raise ValueError("x is a list whose parts differ in shape: give inputs of one shape, e.g. an array") from None
    if array.dtype.kind not in "buif":
        raise TypeError(f"x is an array of {array.dtype}: give numbers (bool, integer or float)")
    dtype = np.float64 if array.dtype.kind == "f" and array.dtype.itemsize > 4 else np.float32
    with np.errstate(over="ignore"):  # what becomes infinite is refused with the rest
        return np.require(array, dtype, ["C", "W"])
