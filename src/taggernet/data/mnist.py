"""The MNIST files: find them, or download and verify them.

Looked for in this order: the folder that the environment variable TAGGERNET_DATA names (and ``mnist``
inside it), the cache folder, the mirrors. A file is used only if its unpacked bytes have the checksum of
the original, so a truncated or altered file is never used; packed (.gz) and unpacked files are both accepted.

The splits follow the paper's public code: train is 0 .. 49,999, valid 50,000 .. 59,999, test the 10,000.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import zlib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
import platformdirs
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from taggernet.arrays import Array
from taggernet.config.validate import check_choice
from taggernet.errors import first_line

VARIABLE = "TAGGERNET_DATA"
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
SPLITS = ("train", "valid", "test", "train+valid")
TIMEOUT = 30.0  # seconds without a byte after which a mirror is given up
_CHUNK = 1 << 16
_VALID_BEGINS = 50_000


@dataclass(frozen=True)
class _File:
    """One of the four original files: its checksums and its size when unpacked."""

    name: str
    packed_md5: str
    packed_bytes: int
    md5: str
    bytes: int


_FILES = {
    "train images": _File(
        "train-images-idx3-ubyte",
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        9_912_422,
        "6bbc9ace898e44ae57da46a324031adb",
        47_040_016,
    ),
    "train labels": _File(
        "train-labels-idx1-ubyte",
        "d53e105ee54ea40749a09fcbcd1e9432",
        28_881,
        "a25bea736e30d166cdddb491f175f624",
        60_008,
    ),
    "test images": _File(
        "t10k-images-idx3-ubyte",
        "9fb629c4189551a2d022fa330f9573f3",
        1_648_877,
        "2646ac647ad5339dbf082846283269ea",
        7_840_016,
    ),
    "test labels": _File(
        "t10k-labels-idx1-ubyte",
        "ec29112dd5afa0611ce80d1b7f02629c",
        4_542,
        "27ae3e4e09519cfbb04c329615203637",
        10_008,
    ),
}


def mnist(split: str = "train", *, download: bool = True) -> tuple[Array, Array]:
    """Images uint8 (n, 28, 28) and labels int64 (n,) of 'train', 'valid', 'test' or 'train+valid'."""
    check_choice("split", split, SPLITS)
    half = "test" if split == "test" else "train"
    images = parse_idx(_content(_FILES[f"{half} images"], download), f"the {half} images")
    labels = parse_idx(_content(_FILES[f"{half} labels"], download), f"the {half} labels").astype(np.int64)
    part = {
        "train": slice(0, _VALID_BEGINS),
        "valid": slice(_VALID_BEGINS, None),
    }.get(split, slice(None))
    return images[part], labels[part]


def fixture_digits(split: str = "train") -> tuple[Array, Array]:
    """Bundled digits, a balanced few of MNIST: 400 of train, 100 of valid, 100 of test."""
    check_choice("split", split, SPLITS)
    with resources.files("taggernet.data").joinpath("digits.npz").open("rb") as file:
        with np.load(file, allow_pickle=False) as digits:
            images, labels = ([digits[f"{one}_{what}"] for one in split.split("+")] for what in ("images", "labels"))
            return np.concatenate(images), np.concatenate(labels).astype(np.int64)


def cache_folder() -> Path:
    """Where downloads are kept: the platform's cache folder for taggernet."""
    return platformdirs.user_cache_path("taggernet", appauthor=False)


def parse_idx(content: bytes, name: str) -> Array:
    """The array in an idx file of unsigned bytes; a header that does not fit the content is refused."""
    rank = content[3] if len(content) >= 4 else 0
    if len(content) < 4 + 4 * rank or content[:3] != b"\x00\x00\x08" or not 1 <= rank <= 4:
        raise ValueError(f"{name} is not an idx file of unsigned bytes: fetch the original file again")
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", count=rank, offset=4))
    count = math.prod(shape)
    if len(content) - 4 - 4 * rank != count:
        raise ValueError(
            f"{name} should hold {count} bytes for shape {shape}, but holds {len(content) - 4 - 4 * rank}: "
            f"it was cut short or is damaged, fetch it again"
        )
    return np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(shape).copy()


def _content(file: _File, download: bool) -> bytes:
    """The verified, unpacked bytes of a file, from the first place that has it."""
    for folder in _user_folders():
        for path in _candidates(folder, file):
            return _read(path, file)
    cached = cache_folder() / "mnist" / f"{file.name}.gz"
    for path in _candidates(cached.parent, file):
        try:
            return _read(path, file)
        except ValueError:
            if not download:
                raise
            path.unlink()  # ours, and of no use to anyone: fetch it again
    if not download:
        raise FileNotFoundError(f"{file.name}.gz was not found and download=False was given. {_advice()}")
    _download(file, cached)
    return _read(cached, file)


def _user_folders() -> list[Path]:
    named = os.environ.get(VARIABLE)
    if not named:
        return []
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{VARIABLE} is set to {named!r}, which is not a folder: create it, correct it or unset it"
        )
    return [folder, folder / "mnist"]


def _candidates(folder: Path, file: _File) -> list[Path]:
    dotted = file.name.replace("-idx", ".idx")  # how some archives spell the unpacked files
    return [path for name in (f"{file.name}.gz", file.name, dotted) if (path := folder / name).is_file()]


def _read(path: Path, file: _File) -> bytes:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            content = stream.read(file.bytes + 1)  # a larger one is wrong anyway, and might be a bomb
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} was cut short or is damaged ({error}): delete it and fetch it again") from None
    if hashlib.md5(content, usedforsecurity=False).hexdigest() != file.md5:
        raise ValueError(f"{path} is not the original MNIST file (md5 differs): delete it and fetch it again")
    return content


def _download(file: _File, target: Path) -> None:
    """Download from the first mirror that has the original file; it appears under its name only when whole."""
    import pooch

    problems = []
    for mirror in MIRRORS:
        with _Bar(file) as bar:
            downloader = pooch.HTTPDownloader(
                bar, _CHUNK, timeout=TIMEOUT, headers={"User-Agent": "taggernet", "Accept-Encoding": "identity"}
            )
            try:
                pooch.retrieve(
                    mirror + target.name, f"md5:{file.packed_md5}", target.name, target.parent, downloader=downloader
                )
                return
            except (OSError, ValueError) as error:  # requests' errors are OSErrors, a wrong checksum is a ValueError
                problems.append(f"{mirror}: {first_line(error).partition(' Deleted')[0]}")
    raise ConnectionError(f"{target.name} could not be downloaded ({'; '.join(problems)}). {_advice()}")


class _Bar:
    """A progress bar for pooch, which stops a mirror that sends more than the original file."""

    total = 0  # set by pooch

    def __init__(self, file: _File) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self.progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self.task = self.progress.add_task(file.name, total=file.packed_bytes)
        self.received, self.expected = 0, file.packed_bytes

    def update(self, count: int) -> None:
        self.received += count  # pooch counts whole chunks, also for the last one
        if self.received >= self.expected + _CHUNK:
            raise ValueError(f"more than the {self.expected} bytes of the original came")
        self.progress.update(self.task, completed=self.received)

    def reset(self) -> None:
        self.received = 0

    def close(self) -> None:
        self.progress.stop()

    def __enter__(self) -> _Bar:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _advice() -> str:
    names = ", ".join(f"{file.name}.gz" for file in _FILES.values())
    return (
        f"Put the four original files ({names}) into a folder and set the environment variable "
        f"{VARIABLE} to it, or put them into {cache_folder() / 'mnist'}."
    )
