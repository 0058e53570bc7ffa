"""The border of the metrics: numpy or torch in, tensors inside, the same kind out."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taggernet.arrays import check_dense_tensor, check_unmasked

ArrayT = TypeVar("ArrayT", NDArray[Any], Tensor)
"""The kind of the first argument is the kind of the result (a tensor's result stays on its device)."""

_LARGEST = 2**63 - 1

AnyArray: TypeAlias = NDArray[Any] | Tensor


def to_tensors(**arrays: AnyArray) -> list[Tensor]:
    """The named arrays as tensors; they must all be numpy arrays, or all tensors on one device."""
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray | Tensor):
            raise TypeError(
                f"{name} is a {type(array).__name__}, but a numpy array or a torch tensor is expected: "
                f"wrap it in numpy.asarray"
            )
    places = {
        name: f"a tensor on {array.device}" if isinstance(array, Tensor) else "a numpy array"
        for name, array in arrays.items()
    }
    if len(set(places.values())) > 1:
        given = " and ".join(f"{name} is {place}" for name, place in places.items())
        raise TypeError(f"{given}, but one kind on one device is expected: convert one of them first")
    return [
        check_dense_tensor(name, array) if isinstance(array, Tensor) else _from_numpy(name, array)
        for name, array in arrays.items()
    ]


def _from_numpy(name: str, array: NDArray[Any]) -> Tensor:
    check_unmasked(name, array)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise TypeError(f"{name} has dtype {array.dtype}, but numbers are expected: convert it with .astype")
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        if array.size and array.max() > _LARGEST:
            raise ValueError(f"{name} holds {array.max()}, but numbers up to {_LARGEST} are expected")
        array = array.astype(np.int64)  # torch stores wide unsigned integers but cannot compare or sort them
    # A copy only where torch would refuse: negative strides, foreign byte order, or a read-only array.
    return torch.from_numpy(np.require(array, array.dtype.newbyteorder("="), ["C", "W"]))


def signed(name: str, tensor: Tensor) -> Tensor:
    """A tensor of wide unsigned integers as int64, which torch can compare and sort."""
    wider = tensor.to(torch.int64)
    if tensor.dtype == torch.uint64 and wider.numel() and int(wider.min()) < 0:
        raise ValueError(f"{name} holds numbers beyond {_LARGEST}: give smaller ones")
    return wider


def like(array: ArrayT, result: Tensor) -> ArrayT:
    """The result as the kind of array that was given."""
    return result if isinstance(array, Tensor) else result.numpy()


def require_integers(name: str, tensor: Tensor) -> Tensor:
    """Labels and classes are whole numbers; a boolean mask counts as the labels 0 and 1."""
    if tensor.is_floating_point() or tensor.is_complex():
        raise TypeError(
            f"{name} has dtype {tensor.dtype}, but integers are expected: "
            f"take the argmax of probabilities, or convert whole numbers to int64"
        )
    return tensor
