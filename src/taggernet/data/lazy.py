"""A user's own file, left on disk if it is large: rows are read when they are needed.

# n scenes · *shape the shape of one scene's positions · C channels

Small and compressed files are read whole, by ``load``. A large .npy, .h5 or uncompressed .npz stays where it is: its
header is checked when it is opened, its values by ``survey`` (all of them, once) and whenever rows are read.
"""

from __future__ import annotations

import math
import zipfile
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from taggernet.arrays import Array
from taggernet.config.validate import check_choice
from taggernet.data import files
from taggernet.data.checks import KINDS, Kind, chunks, is_binary, is_one_hot, scene_not_finite
from taggernet.data.scenes import Axis, Scenes, channels_axis_of, channels_last, scenes_of_file


@dataclass(frozen=True, eq=False)
class LazyArrays:
    """x, groups and classes as arrays or as something on the disk that is indexed like one."""

    x: Any
    groups: Any = None
    classes: Array | None = None
    kind: Kind | None = None
    """As the file says; None where it says nothing."""
    name: str = "x"
    """Its name in error messages."""
    axis: Axis = "none"
    """Where the channels of x are; what is read of x has them last."""

    @classmethod
    def of(cls, scenes: Scenes, name: str = "x") -> LazyArrays:
        axis: Axis = "last" if scenes.channels > 1 else "none"
        return cls(scenes.x, scenes.groups, scenes.classes, scenes.kind, name, axis)

    def __len__(self) -> int:
        return int(self.x.shape[0])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one scene, without its channels."""
        whole = tuple(self.x.shape[1:])
        return {"none": whole, "first": whole[1:], "last": whole[:-1]}[self.axis]

    @property
    def channels(self) -> int:
        return 1 if self.axis == "none" else int(self.x.shape[1 if self.axis == "first" else -1])

    @property
    def elements(self) -> int:
        """Numbers in a scene."""
        return math.prod(self.x.shape[1:])

    @property
    def nbytes(self) -> int:
        """What x needs as float32."""
        return 4 * len(self) * self.elements

    def read(self, array: Any, rows: Array) -> Array:
        """Rows of one of the arrays, in this order and as often as named."""
        unique, back = np.unique(rows, return_inverse=True)  # HDF5 reads in its own order, each row once
        return np.asarray(array[unique])[back.reshape(rows.shape)]

    def scenes(self, rows: Array) -> Scenes:
        """These rows, in memory and checked."""
        pick = None if self.classes is None else self.classes[rows]
        groups = None if self.groups is None else self.read(self.groups, rows)
        x = self.read(self.x, rows)
        if not len(rows):  # a split may be empty, a user's array may not
            x = channels_last(x.astype(np.float32), self.axis)
            return Scenes(x, groups, pick, self.kind or "real", channels=self.channels)
        try:
            return Scenes.of(x, groups, pick, self.kind, channels_axis=self.axis)
        except (ValueError, TypeError) as error:
            raise type(error)(f"{self.name}: {error}") from None


@dataclass(frozen=True, eq=False)
class LazyRows:
    """Some rows of your data that stay where they are."""

    data: LazyArrays
    rows: Array

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def classes(self) -> Array | None:
        return None if self.data.classes is None else self.data.classes[self.rows]

    def take(self, index: Array) -> Array:
        """x of the index-th rows, float32 of shape (*index.shape, *shape), with channels (..., C)."""
        read = self.data.read(self.data.x, self.rows[index.reshape(-1)]).astype(np.float32, copy=False)
        rows: Array = channels_last(read, self.data.axis)
        return rows.reshape(*index.shape, *rows.shape[1:])


# --- opening ------------------------------------------------------------------------------------------------------


def open_data(path: str | PathLike[str], channels_axis: str | None = None) -> LazyArrays:
    """A .npy, .npz or .h5 file; large ones are left on the disk. ``channels_axis``: as in ``Scenes.of``."""
    path = Path(path)
    if path.is_file() and path.stat().st_size > files.MAPPED:
        mapped = {".npy": _map_npy, ".npz": _map_npz, ".h5": _map_h5, ".hdf5": _map_h5}.get(path.suffix.lower())
        arrays = None if mapped is None else mapped(path)
        if arrays is not None:
            return _checked(path, arrays, channels_axis)
    arrays = files.read_arrays(path)
    scenes, axis = scenes_of_file(path, arrays, channels_axis)
    # x as the file has it: what float64 tells apart and float32 does not is for ``survey`` to see.
    return LazyArrays(arrays["x"], scenes.groups, scenes.classes, scenes.kind, str(path), axis)


def _checked(path: Path, arrays: dict[str, Any], channels_axis: str | None) -> LazyArrays:
    """What ``load`` would check, as far as shapes and types go."""
    x, groups, kind = arrays["x"], arrays.get("groups"), arrays.get("kind")
    if len(x.shape) < 2 or math.prod(x.shape) == 0:
        raise ValueError(f"{path}: x has shape {tuple(x.shape)}, expected (n, ...) with one scene per row")
    axis = channels_axis_of(tuple(x.shape), None if groups is None else tuple(groups.shape), channels_axis)
    opened = LazyArrays(x, groups, name=str(path), axis=axis)
    if groups is not None and (groups.dtype.kind not in "iu" or tuple(groups.shape) != (len(x), *opened.shape)):
        raise ValueError(
            f"{path}: groups is {groups.dtype} of shape {tuple(groups.shape)}, but x has {tuple(x.shape)}: "
            "give one integer per position of x, 0 = unscored"
        )
    classes = arrays.get("classes")
    if classes is not None:
        try:
            classes = Scenes.of(np.zeros((len(x), 1), np.uint8), classes=classes[()]).classes
        except (ValueError, TypeError) as error:
            raise type(error)(f"{path}: {error}") from None
    named = None if kind is None else check_choice("kind", str(kind[()]), KINDS)
    return replace(opened, classes=classes, kind=cast(Kind | None, named))


def _map_npy(path: Path) -> dict[str, Any]:
    return {"x": _mapped(path, "x", 0, path.stat().st_size)}


def _mapped(path: Path, name: str, offset: int, size: int) -> Array:
    """The .npy array that lies at this place of a file, as a memory map."""
    with path.open("rb") as stream:
        stream.seek(offset)
        shape, dtype = files.read_header(path, name, stream)
        begin = stream.tell()
        stream.seek(offset)
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        fortran = read(stream)[1]
    if begin - offset + math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{path}: {name!r} was cut short or is damaged: write or fetch it again")
    return np.memmap(path, dtype, "r", begin, shape, "F" if fortran else "C")


def _map_npz(path: Path) -> dict[str, Any] | None:
    """The arrays of an uncompressed .npz; a compressed one can only be read whole."""
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as stream:
            members = archive.infolist()
            files.check_names(path, [files.member_name(path, member) for member in members])
            if any(member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1 for member in members):
                return None
            arrays: dict[str, Any] = {}
            for member in members:
                stream.seek(member.header_offset + 26)  # the local header: two lengths, name, extra, then the data
                lengths = np.frombuffer(stream.read(4), "<u2")
                begin = member.header_offset + 30 + int(lengths.sum())
                name = member.filename.removesuffix(".npy")
                arrays[name] = _mapped(path, name, begin, member.file_size)
            return arrays
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise ValueError(f"{path} is not a whole .npz file ({error}): write or fetch it again") from None


def _map_h5(path: Path) -> dict[str, Any]:
    import h5py

    if not h5py.is_hdf5(path):
        raise ValueError(f"{path} is not an HDF5 file: write or fetch it again")
    try:
        file = h5py.File(path, "r")  # closed with the last of its data sets
        files.check_names(path, [str(name) for name in file])
        arrays: dict[str, Any] = {name: files.check_dataset(path, name, file) for name in file}
        files.check_ratio(  # what is declared but not stored would be read, as zeros, for ever
            path,
            sum(math.prod(data.shape) * data.dtype.itemsize for data in arrays.values()),
            sum(data.id.get_storage_size() for data in arrays.values()),
        )
        if "kind" in file.attrs:
            arrays["kind"] = files.read_kind(path, file)
        return arrays
    except (OSError, RuntimeError, KeyError) as error:
        raise ValueError(f"{path} is not a whole HDF5 file ({error}): write or fetch it again") from None


# --- looking ------------------------------------------------------------------------------------------------------


class Survey(NamedTuple):
    """What one pass over all values finds."""

    kind: Kind
    low: float
    high: float
    mean: float
    deviation: float
    groups: int
    """The most groups in a scene, unscored elements as one more; 0 without true groups."""
    means: Array
    """Of each element (N,)."""
    deviations: Array


def survey(data: LazyArrays, kind: str | None = None) -> Survey:
    """Range, mean and standard deviation of x, also of each element, and whether it is binary; refuses what cannot be
    learned from."""
    wanted = data.kind if kind is None else check_choice("kind", kind, KINDS)
    binary, one_hot, low, high, most, scored = True, data.channels > 1, math.inf, -math.inf, 0, False
    count, means, squares = 0, np.zeros(data.elements), np.zeros(data.elements)
    for begin, part in chunks(data.x):
        odd = scene_not_finite(part)
        if odd is not None:
            raise ValueError(
                f"{data.name}: scene {begin + odd} holds NaN, infinity or a value too large, "
                "expected finite numbers: drop or fill such scenes first"
            )
        values = channels_last(part.astype(np.float64), data.axis)
        binary = binary and is_binary(values)
        one_hot = one_hot and binary and is_one_hot(values)
        low, high = min(low, float(values.min())), max(high, float(values.max()))
        rows, total = values.reshape(len(values), -1), count + len(values)
        delta = rows.mean(0) - means
        squares += rows.var(0) * len(rows) + delta**2 * count * len(rows) / total
        means, count = means + delta * len(rows) / total, total
    if data.groups is not None:
        for _, part in chunks(data.groups):
            if part.min() < 0:
                raise ValueError(f"{data.name}: groups holds {part.min()}, expected 0 (unscored) or more")
            most = max(most, *(len(np.unique(scene)) for scene in part[:200]))
            scored = scored or bool(part.any())
        if not scored:
            raise ValueError(
                f"{data.name}: groups holds 0 alone, which is not scored: number the groups from 1, or leave groups out"
            )
    if wanted == "binary" and not binary:
        raise ValueError(
            f"{data.name}: kind 'binary' was asked for, but x holds values other than 0 and 1: "
            "threshold x first, or choose kind 'real'"
        )
    if wanted == "categorical" and not one_hot:
        raise ValueError(
            f"{data.name}: kind 'categorical' was asked for, but x is not one-hot: give one channel per state, e.g. "
            "numpy.eye(states)[x], with channels_axis 'last'"
        )
    detected: Kind = "categorical" if one_hot else "binary" if binary else "real"
    found = cast(Kind, wanted or detected)
    variances = squares / count
    deviation = math.sqrt(variances.mean() + means.var())
    return Survey(found, low, high, float(means.mean()), deviation, most, means, np.sqrt(variances))
