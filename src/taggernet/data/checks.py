"""The checks of a user's arrays: x, groups, classes. Each mistake is one sentence that says what to do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import torch

from taggernet.arrays import Array, check_dense_tensor, check_unmasked
from taggernet.config.validate import check_choice, check_count

Kind = Literal["binary", "real", "categorical"]
KINDS: tuple[Kind, ...] = ("binary", "real", "categorical")
"""categorical: one-hot channels."""

_MOST_ELEMENTS = 1 << 32
_MOST_CLASSES = 2**31 - 1
_CHUNK = 1 << 22  # elements looked at in one go, so that checking a memory-mapped file needs little memory


def check_scene_count(n: object, size: object) -> int:
    """How many scenes of size x size to make, such that they fit a memory; a run that wants more draws them fresh."""
    count = check_count("n", n, low=1)
    most = _MOST_ELEMENTS // (size * size if isinstance(size, int) and size > 0 else 1)
    if count > most:
        raise ValueError(f"n={count:,} scenes of this size need too much memory: make at most {most:,} at a time")
    return count


def as_array(name: str, value: object) -> Array:
    """numpy's view of a user's array, tensor or nested list."""
    if isinstance(value, torch.Tensor):
        value = check_dense_tensor(name, value).detach().cpu()
        value = value.float() if value.dtype == torch.bfloat16 else value  # numpy has no bfloat16
        value = value.float() if value.dtype.itemsize == 1 and value.is_floating_point() else value  # nor float8
        return value.numpy()
    check_unmasked(name, value)
    try:
        array = np.asanyarray(value)
    except ValueError as error:
        raise ValueError(
            f"{name} could not be read as an array ({error}): pass one array in which every scene has the same shape"
        ) from None
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} has dtype {array.dtype}, expected numbers (bool, integer or float): {how_to_convert(name)}"
        )
    return array


def how_to_convert(name: str) -> str:
    """What to do with an array that does not hold numbers, e.g. with names of classes."""
    if name == "classes":
        return "number the classes, e.g. with numpy.unique(classes, return_inverse=True)[1]"
    if name == "groups":
        return "number the groups of each scene from 1"
    return f"convert it first, e.g. with {name}.astype('float32')"


def check_x(array: Array, kind: str | None, channels: int = 1) -> tuple[Array, Kind]:
    """x with the dtype of its kind, which is found where none is given; looks at a part at a time."""
    if kind is not None:
        check_choice("kind", kind, KINDS)
    if array.ndim < 2:
        raise ValueError(
            f"x has shape {array.shape}, expected (n, ...) with one scene per row: for a single scene pass x[None]"
        )
    if array.size == 0:
        raise ValueError(f"x is empty (shape {array.shape}): pass at least one scene with at least one element")
    binary, one_hot = True, channels > 1
    for begin, part in chunks(array):
        odd = scene_not_finite(part)
        if odd is not None:
            raise ValueError(
                f"x holds NaN, infinity or a value too large (scene {begin + odd}), "
                f"expected finite numbers: drop or fill such scenes first"
            )
        binary = binary and is_binary(part)
        one_hot = one_hot and binary and is_one_hot(part)
    if kind == "categorical" and not one_hot:
        raise ValueError(
            f"kind='categorical' was given, but x of shape {array.shape} is not one-hot: give one channel per state, "
            "e.g. numpy.eye(states)[x], with channels_axis='last'"
        )
    if kind == "binary" and not binary:
        raise ValueError(
            "kind='binary' was given, but x holds values other than 0 and 1: threshold x first, or pass kind='real'"
        )
    found: Kind = "real" if kind == "real" or not binary else "categorical" if one_hot and kind is None else "binary"
    found = "categorical" if kind == "categorical" else found
    return array.astype(np.float32 if found == "real" else np.uint8, copy=False), found


def chunks(array: Any) -> Iterator[tuple[int, Array]]:
    """Parts of an array of scenes, or of one on a disk, each with the number of its first scene."""
    rows = max(1, _CHUNK // math.prod(array.shape[1:]))
    for begin in range(0, array.shape[0], rows):
        yield begin, np.asarray(array[begin : begin + rows])


def scene_not_finite(part: Array) -> int | None:
    """The first scene with NaN, infinity or a value that float32 cannot hold."""
    if part.dtype.kind != "f":
        return None
    with np.errstate(over="ignore"):
        finite = np.isfinite(part.astype(np.float32)).reshape(len(part), -1).all(1)
    return None if finite.all() else int(finite.argmin())


def is_binary(part: Array) -> bool:
    return bool(((part == 0) | (part == 1)).all())


def is_one_hot(part: Array) -> bool:
    """Of binary values with their channels last."""
    return bool((part.sum(-1, dtype=np.float64) == 1).all())


def check_groups(groups: object, shape: tuple[int, ...]) -> Array:
    """One group number per position."""
    array = as_array("groups", groups)
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"groups has dtype {array.dtype}, expected integers (0 = unscored, groups count from 1): convert it first, "
            "e.g. with groups.astype(int)"
        )
    if array.shape != shape:
        raise ValueError(f"groups has shape {array.shape}, but x has {shape}: pass one group number per position of x")
    if array.min() < 0:
        raise ValueError(f"groups holds {array.min()}, expected 0 (unscored) or more: number the groups from 1")
    return array


def check_classes(classes: object, n: int) -> Array:
    """One class, or several, per scene."""
    array = as_array("classes", classes)
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"classes has dtype {array.dtype}, expected integers (from 0, -1 = no label): convert it first, e.g. with "
            "classes.astype(int)"
        )
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(f"classes has shape {array.shape}, expected (n,) or (n, c): pass one row per scene")
    if len(array) != n:
        raise ValueError(f"classes has {len(array)} rows, but x has {n} scenes: pass one row per scene")
    if array.min() < -1 or array.max() > _MOST_CLASSES:
        odd = array.min() if array.min() < -1 else array.max()
        raise ValueError(
            f"classes holds {odd}, expected 0 or more, or -1 for a scene without a label: number the classes from 0"
        )
    return array.astype(np.int64, copy=False)


def check_detail(name: str, value: object, n: int) -> Array:
    """Whatever else is known of each scene."""
    array = as_array(name, value)
    if array.ndim < 1 or len(array) != n:
        raise ValueError(f"detail {name!r} has shape {array.shape}, but there are {n} scenes: one row per scene")
    return array
