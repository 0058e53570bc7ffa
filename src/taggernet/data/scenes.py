"""Scenes: what is shown (x), what belongs together in it (groups) and what it shows (classes).

Every data set of this package is a ``Scenes``; ``Scenes.of`` makes one of a user's own arrays and is the
border at which they are checked. Inside, the arrays are trusted.

    n scenes · *shape the shape of one scene's positions, e.g. (20, 20) · C channels, e.g. 3 for colour

    x        (n, *shape)   uint8 of 0 and 1 when binary or categorical, float32 when real; with channels (n, *shape, C)
    groups   (n, *shape)   true group of each position, counted from 1; 0 = unscored
    classes  (n,) or (n, c)  true class(es) of each scene; -1 = no label
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch

from taggernet.arrays import Array
from taggernet.config.validate import check_choice, check_count
from taggernet.data import files
from taggernet.data.checks import Kind, as_array, check_classes, check_detail, check_groups, check_x
from taggernet.rng import Key

Axis = Literal["none", "first", "last"]
AXES: tuple[Axis, ...] = ("none", "first", "last")
"""Which dimension of a scene, if any, is that of channels: they share the mask of their position."""
COLOURS = 3
"""A dimension of this size is taken for that of channels if scenes have two more."""


@dataclass(frozen=True, eq=False)
class Scenes:
    """A set of scenes; see the module's legend. ``details`` holds what a generator knows beyond that."""

    x: Array
    groups: Array | None = None
    classes: Array | None = None
    kind: Kind = "binary"
    details: Mapping[str, Array] = field(default_factory=dict)
    channels: int = 1
    """Numbers per position; more than one are the last axis of x."""
    background: int | None = None
    """The number of the group that is the background, 0 where it is not scored; None: none is, or nobody knows."""

    @classmethod
    def of(
        cls,
        x: object,
        groups: object = None,
        classes: object = None,
        kind: str | None = None,
        details: Mapping[str, object] | None = None,
        channels_axis: str | None = None,
    ) -> Scenes:
        """Scenes from arrays of your own, checked; ``kind`` is inferred from the values unless given.

        ``channels_axis`` says where the channels of x are: 'first' (n, C, *shape), 'last' (n, *shape, C) or 'none';
        unless given it is inferred from the shapes of x and groups (``channels_axis_of``).
        """
        array = as_array("x", x)
        true = None if groups is None else as_array("groups", groups)
        axis = channels_axis_of(array.shape, None if true is None else true.shape, channels_axis)
        channels = 1 if axis == "none" else array.shape[1 if axis == "first" else -1]
        values, found = check_x(channels_last(array, axis), kind, channels)
        return cls(
            x=values,
            groups=None if true is None else check_groups(true, values.shape[: -1 if channels > 1 else None]),
            classes=None if classes is None else check_classes(classes, len(values)),
            kind=found,
            details={name: check_detail(name, value, len(values)) for name, value in (details or {}).items()},
            channels=channels,
        )

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int | slice | Array) -> Scenes:
        """Some of the scenes, still as Scenes; a single number gives a set of one."""
        if isinstance(index, int | np.integer):
            if not -len(self) <= index < len(self):
                raise IndexError(f"scene {index} was asked for, but there are {len(self)}")
            index = np.array([index])

        def pick(array: Array | None) -> Array | None:
            return None if array is None else array[index]

        return Scenes(
            x=self.x[index],
            groups=pick(self.groups),
            classes=pick(self.classes),
            kind=self.kind,
            details={name: array[index] for name, array in self.details.items()},
            channels=self.channels,
            background=self.background,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one scene, without its channels."""
        return tuple(self.x.shape[1 : -1 if self.channels > 1 else None])

    @property
    def labelled(self) -> Array:
        """Which scenes have all their classes, bool of shape (n,)."""
        if self.classes is None:
            return np.zeros(len(self), bool)
        return np.asarray(self.classes.reshape(len(self), -1).min(1) >= 0)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write to .npz or .h5; ``load`` reads it back. An existing file is kept unless ``overwrite``."""
        arrays: dict[str, Array] = {"x": self.x}
        if self.groups is not None:
            arrays["groups"] = self.groups
        if self.classes is not None:
            arrays["classes"] = self.classes
        arrays |= {files.DETAIL + name: array for name, array in self.details.items()}
        files.write_arrays(Path(path), arrays, self.kind, overwrite=overwrite)


def load(path: str | os.PathLike[str], *, channels_axis: str | None = None, limit: int = files.LIMIT) -> Scenes:
    """Scenes from a .npz, .npy (x alone) or .h5 file, checked like arrays; ``limit`` bounds the bytes unpacked."""
    return scenes_of_file(path, files.read_arrays(Path(path), limit), channels_axis)[0]


def scenes_of_file(
    path: str | os.PathLike[str], arrays: Mapping[str, Array], channels_axis: str | None = None
) -> tuple[Scenes, Axis]:
    """Scenes from the arrays of a file, and where it has its channels."""
    kind, x, groups = arrays.get("kind"), arrays["x"], arrays.get("groups")
    details = {name: array for name, array in arrays.items() if name.startswith(files.DETAIL)}
    try:
        axis = channels_axis_of(x.shape, None if groups is None else groups.shape, channels_axis)
        scenes = Scenes.of(
            x,
            groups,
            arrays.get("classes"),
            kind=None if kind is None else str(kind[()]),
            details={name.removeprefix(files.DETAIL): array for name, array in details.items()},
            channels_axis=axis,
        )
    except (ValueError, TypeError) as error:
        raise type(error)(f"{path}: {error}") from None
    return scenes, axis


def infer_kind(x: object) -> Kind:
    """'binary' if every value is 0 or 1, otherwise 'real'."""
    return check_x(as_array("x", x), None)[1]


def channels_axis_of(shape: tuple[int, ...], groups: tuple[int, ...] | None = None, given: str | None = None) -> Axis:
    """Where the channels are in x of this shape: as ``given``, else as the shape of the true groups tells, else last
    or first where colour images (n, H, W, 3) or (n, 3, H, W) have them, else nowhere."""
    if given is not None:
        axis = cast(Axis, check_choice("channels_axis", given, AXES))
        if axis != "none" and len(shape) < 3:
            raise ValueError(
                f"channels_axis={given!r} was given, but x has shape {shape}, which leaves no position: give "
                "(n, *shape, channels) or (n, channels, *shape), or channels_axis='none'"
            )
        return axis
    if groups is not None:
        if groups == shape or len(shape) < 3:
            return "none"
        return "last" if groups == shape[:-1] else "first" if groups == (shape[0], *shape[2:]) else "none"
    if len(shape) != 4:
        return "none"
    return "last" if shape[-1] == COLOURS else "first" if shape[1] == COLOURS else "none"


def channels_last(array: Any, axis: Axis) -> Any:
    """Scenes with their channels in the last dimension; a single channel is no dimension of its own."""
    if axis == "first":
        array = np.moveaxis(array, 1, -1)
    return array[..., 0] if axis != "none" and array.shape[-1] == 1 else array


def labelled_subset(classes: object, count: int, seed: int = 0, n_classes: int = 10) -> Array:
    """The sorted indices of ``count`` scenes, equally many of each class (the first column decides).

    Scenes without a label (-1) are never chosen. A larger count with the same seed contains the smaller.
    """
    check_count("n_classes", n_classes, low=1)
    check_count("count", count, low=1)
    array = np.asarray(classes)
    first = check_classes(array, len(array) if array.ndim else 0).reshape(len(array), -1)[:, 0]
    if count % n_classes:
        raise ValueError(
            f"count={count} cannot be shared equally by {n_classes} classes: choose a multiple of {n_classes}"
        )
    if first.max() >= n_classes:
        raise ValueError(f"class {first.max()} was given, but n_classes={n_classes}: pass a larger n_classes")
    order = Key.of(seed).fold("labelled").permutation(len(first)).numpy()
    each = count // n_classes
    chosen = []
    for label in range(n_classes):
        members = order[first[order] == label]
        if len(members) < each:
            raise ValueError(
                f"count={count} needs {each} scenes of class {label}, but there are {len(members)}: "
                f"choose a smaller count"
            )
        chosen.append(members[:each])
    return np.sort(np.concatenate(chosen))


@contextmanager
def one_thread() -> Iterator[None]:
    """Generators run on one thread: it is enough, and two that wait for each other on a busy machine are
    up to thirty times slower."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
