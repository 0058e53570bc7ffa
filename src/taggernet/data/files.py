"""Files of scenes as named arrays: .npz, .npy and .h5, never unpickling and never trusting what a file declares.

A file may come from anywhere, so before a byte is unpacked its declared sizes are compared with what is
stored and with ``limit``; references out of the file (HDF5 links, external or virtual storage) are refused.
A .npz or .h5 holds x and, if known, groups, classes, kind, and whatever a generator adds as details_NAME.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from io import BufferedIOBase
from pathlib import Path
from typing import Any, cast

import numpy as np

from taggernet.arrays import Array
from taggernet.data.checks import how_to_convert
from taggernet.fileio import write_durably

LIMIT = 16 << 30  # bytes unpacked; more is most likely a mistake or malice
MAPPED = 64 << 20  # a .npy larger than this stays on the disk and is read where it is looked at
_MODEST = 256 << 20  # below this, unpacking cannot hurt, however well it is packed
_RATIO = 200  # scenes pack 10 to 30 times; what packs better than this and is not modest is a bomb
_NAMES = ("x", "groups", "classes", "kind")
DETAIL = "details_"


def read_arrays(path: Path, limit: int = LIMIT) -> dict[str, Array]:
    """The arrays of a .npz, .npy (x alone) or .h5 file by name: x, and perhaps groups, classes, kind, details_NAME."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: check the path")
    if not path.is_file():
        raise ValueError(f"{path} is not a file: pass a .npz, .npy or .h5 file")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty: write it again")
    readers = {".npz": _read_npz, ".npy": _read_npy, ".h5": _read_h5, ".hdf5": _read_h5}
    if path.suffix.lower() not in readers:
        text = path.suffix.lower() in (".csv", ".txt", ".tsv")
        how = ", e.g. numpy.save('x.npy', numpy.loadtxt(FILE, delimiter=',', skiprows=1))" if text else " first"
        raise ValueError(f"{path} has the ending {path.suffix!r}, expected .npz, .npy or .h5: convert it{how}")
    return readers[path.suffix.lower()](path, limit)


def write_arrays(path: Path, arrays: dict[str, Array], kind: str, *, overwrite: bool = False) -> None:
    """Write to .npz or .h5; the file appears under its name only when it is complete."""
    writers = {".npz": _write_npz, ".h5": _write_h5, ".hdf5": _write_h5}
    if path.suffix.lower() not in writers:
        raise ValueError(f"{path} has the ending {path.suffix!r}, expected .npz or .h5: choose one of them")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist: create it first")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists already: choose another name, or pass overwrite=True")
    write_durably(path, lambda temporary: writers[path.suffix.lower()](temporary, arrays, kind))


def _write_npz(path: Path, arrays: dict[str, Array], kind: str) -> None:
    with path.open("wb") as file:  # a file object, as numpy would add .npz to a name
        cast(Any, np.savez_compressed)(file, kind=np.array(kind), **arrays)


def _write_h5(path: Path, arrays: dict[str, Array], kind: str) -> None:
    import h5py

    with h5py.File(path, "w", libver=("v110", "v110")) as file:  # its metadata carry checksums
        file.attrs["kind"] = np.bytes_(kind)  # of fixed length, see read_kind
        for name, array in arrays.items():
            file.create_dataset(name, data=array, compression="gzip", compression_opts=4, fletcher32=True)


def _read_npz(path: Path, limit: int) -> dict[str, Array]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            check_names(path, [member_name(path, member) for member in members])
            for member in members:
                _check_packing(path, member)
            _check_sizes(
                path,
                sum(member.file_size for member in members),
                sum(member.compress_size for member in members),
                limit,
            )
            arrays = {}
            for member in members:
                with archive.open(member) as stream:
                    name = member.filename.removesuffix(".npy")
                    arrays[name] = _read_stream(path, name, cast(BufferedIOBase, stream), member.file_size)
            return arrays
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"{path} is not a whole .npz file ({error}): write or fetch it again") from None


def member_name(path: Path, member: zipfile.ZipInfo) -> str:
    if not member.filename.endswith(".npy") or "/" in member.filename or "\\" in member.filename:
        raise ValueError(f"{path} holds {member.filename!r}, expected arrays only: write it with numpy.savez")
    return member.filename.removesuffix(".npy")


def _check_packing(path: Path, member: zipfile.ZipInfo) -> None:
    if member.flag_bits & 1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{path} is encrypted or packed in an unusual way: write it with numpy.savez_compressed")


def check_names(path: Path, names: list[str]) -> None:
    if len(names) != len(set(names)):
        raise ValueError(f"{path} holds an array twice: write it again")
    if "x" not in names:
        held = ", ".join(map(repr, names[:10])) or "nothing"
        raise ValueError(
            f"{path} holds {held}, but no array 'x': save the scenes as x, and only true groups and classes with them, "
            "as groups and classes"
        )
    for name in names:
        if name not in _NAMES and not name.startswith(DETAIL):
            raise ValueError(
                f"{path} holds {name!r}, but only arrays x, groups and classes are expected: rename or drop it"
            )


def _check_sizes(path: Path, unpacked: int, stored: int, limit: int) -> None:
    if unpacked > limit:
        raise ValueError(
            f"{path} unpacks to {unpacked:,} bytes, the limit is {limit:,}: split it, or pass a larger limit"
        )
    check_ratio(path, unpacked, stored)


def check_ratio(path: Path, unpacked: int, stored: int) -> None:
    if unpacked > _MODEST and unpacked > _RATIO * max(stored, 1):
        raise ValueError(
            f"{path} would unpack {stored:,} bytes to {unpacked:,}, as no real scenes do: write it uncompressed"
        )


def _check_dtype(path: Path, name: str, dtype: np.dtype[Any]) -> None:
    if dtype.kind not in ("biufU" if name == "kind" else "biuf") or dtype.itemsize > 64:
        raise TypeError(
            f"{path}: {name!r} has dtype {dtype}, expected numbers (nothing is ever unpickled): {how_to_convert(name)}"
        )


def read_header(path: Path, name: str, stream: BufferedIOBase) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype that the .npy header declares."""
    try:
        version = np.lib.format.read_magic(stream)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read is None:
            raise ValueError(f"version {version}")
        shape, _, dtype = read(stream)
    except (ValueError, SyntaxError, TypeError, EOFError) as error:
        raise ValueError(f"{path}: {name!r} is not a whole .npy array ({error}): write or fetch it again") from None
    _check_dtype(path, name, dtype)
    if any(size < 0 for size in shape):
        raise ValueError(f"{path}: {name!r} declares the shape {shape}: write it again")
    return shape, dtype


def _read_stream(path: Path, name: str, stream: BufferedIOBase, total: int) -> Array:
    shape, dtype = read_header(path, name, stream)
    expected = math.prod(shape) * dtype.itemsize
    if stream.tell() + expected != total:
        raise ValueError(
            f"{path}: {name!r} declares {expected:,} bytes but {total - stream.tell():,} are there: write it again"
        )
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)


def _read_npy(path: Path, limit: int) -> dict[str, Array]:
    total = path.stat().st_size
    _check_sizes(path, total, total, limit)
    with path.open("rb") as stream:
        array = _read_stream(path, "x", stream, total) if total <= MAPPED else None
        if array is None:
            shape, dtype = read_header(path, "x", stream)
            if stream.tell() + math.prod(shape) * dtype.itemsize != total:
                raise ValueError(f"{path} was cut short or is damaged: write or fetch it again")
    return {"x": np.load(path, mmap_mode="r", allow_pickle=False) if array is None else array}


def _read_h5(path: Path, limit: int) -> dict[str, Array]:
    import h5py

    if not h5py.is_hdf5(path):
        raise ValueError(f"{path} is not an HDF5 file: write or fetch it again")
    try:
        with h5py.File(path, "r") as file:
            check_names(path, [str(name) for name in file])  # a damaged name comes as bytes
            sets = {name: check_dataset(path, name, file) for name in file}
            unpacked = sum(math.prod(data.shape) * data.dtype.itemsize for data in sets.values())
            _check_sizes(path, unpacked, sum(data.id.get_storage_size() for data in sets.values()), limit)
            arrays: dict[str, Array] = {name: data[()] for name, data in sets.items()}
            if "kind" in file.attrs:
                arrays["kind"] = read_kind(path, file)
            return arrays
    except (OSError, RuntimeError, KeyError) as error:
        raise ValueError(f"{path} is not a whole HDF5 file ({error}): write or fetch it again") from None


def read_kind(path: Path, file: Any) -> Array:
    """Only a string of fixed length: a variable one lets a damaged file send HDF5 round for ever."""
    attribute = file.attrs.get_id("kind")
    if attribute.shape != () or attribute.dtype.kind != "S" or attribute.dtype.itemsize > 16:
        raise TypeError(f"{path}: the attribute 'kind' is not a short string: write it as numpy.bytes_('real')")
    return np.array(file.attrs["kind"].decode("ascii", "replace"))


def check_dataset(path: Path, name: str, file: Any) -> Any:
    import h5py

    data = file.get(name) if isinstance(file.get(name, getlink=True), h5py.HardLink) else None
    if not isinstance(data, h5py.Dataset) or data.external or data.is_virtual:
        raise ValueError(f"{path}: {name!r} is not an array stored in the file itself: write it as a plain dataset")
    if data.shape is None:
        raise ValueError(f"{path}: {name!r} is empty: write it again")
    _check_dtype(path, name, data.dtype)
    return data
