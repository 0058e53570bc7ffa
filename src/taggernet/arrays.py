"""What a user's array must be before anything else is asked of it: numbers laid out plainly, none of them masked."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def check_plain_tensor(name: str, tensor: Tensor) -> Tensor:
    """A tensor whose values are there to be read, one after the other, as real numbers."""
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
    """numpy hands out what a mask hides as if it were data."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{name} has {int(np.ma.getmaskarray(value).sum())} masked values: fill or drop them first")
