"""Group the scenes of a file into another file: in parts, so that neither has to fit the memory.

# n scenes · K groups · *shape the shape of one scene · C classes

    labels               (n, *shape)      uint8    the most probable group of each position
    masks                (n, K, *shape)   float32
    reconstructions      (n, K, *shape)   float32  z, in the units of the file, with its channels
    class_probabilities  (n, C)           float32  of models with classes

Parts are written one by one into the folder OUT.parts, each whole or not there. A command that was killed goes on where
it was when it is repeated, with any number of processes; those that torchrun starts share the parts. At the end the
parts are joined in the file, and the folder is removed.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import torch

from taggernet.arrays import Array
from taggernet.config.validate import (
    MAX_GROUPS,
    MAX_ITERATIONS,
    MAX_STARTS,
    check_choice,
    check_count,
    check_integer,
)
from taggernet.data.lazy import LazyArrays, open_data
from taggernet.data.scenes import channels_last
from taggernet.fileio import make_folder, read_json, write_durably, write_json
from taggernet.model_io import WEIGHTS
from taggernet.pretrained import locate
from taggernet.rng import Key
from taggernet.tag import Grouping
from taggernet.tag.grouping import State, batches
from taggernet.tagger import Tagger
from taggernet.training.datasets import permutation
from taggernet.training.distributed import World, pick_device, wait_for_all, world
from taggernet.training.interruptions import interruptions
from taggernet.training.log import row_bar
from taggernet.training.run_dir import data_of, lock_run
from taggernet.training.validation import check_scenes

STARTS = 4
"""Random starts of each scene, of which the groups that explain it best are kept."""
ARRAYS = ("labels", "masks", "reconstructions", "class_probabilities")
ENDINGS = (".npz", ".h5", ".hdf5")
PART = 1 << 22
"""Numbers in the masks of one part, about: seconds of work and 16 MB for each array."""


def group_file(
    model: str | os.PathLike[str],
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    arrays: Sequence[str] = (),
    groups: int | None = None,
    iterations: int | None = None,
    seed: int = 0,
    starts: int = STARTS,
    batch_size: int = 100,
    device: str = "auto",
    overwrite: bool = False,
    progress: bool = True,
) -> Path:
    """Group every scene of a .npz, .npy or .h5 file with a model; the same numbers as ``Tagger.group`` of all of them.

    Of each scene's random ``starts`` the groups that explain it best are kept.

    ``model`` is a shipped name, the folder of a model or a run, or a Hub id; ``arrays`` are those of ``ARRAYS`` to
    keep, by default all that the model has. Returns the path of the .npz or .h5 file written.
    """
    target = Path(out)
    if target.suffix.lower() not in ENDINGS:
        raise ValueError(f"{target} has the ending {target.suffix!r}, expected .npz or .h5: choose one of them")
    if target.exists() and Path(data).exists() and os.path.samefile(target, data):
        raise ValueError(f"{target} is the file to group, which would be lost: choose another name for --out")
    if target.exists() and not overwrite:
        raise FileExistsError(f"{target} exists: choose another name for --out, or add --overwrite")
    check_count("batch_size", batch_size, low=1, high=10**6)
    with ExitStack() as stack:
        ranks = stack.enter_context(world(pick_device(device).type))
        chosen = pick_device(device, ranks.size, ranks.local_rank)
        folder = locate(model)
        tagger = Tagger.load(folder, chosen)
        scenes = open_data(data, tagger.config.channels_axis)
        check_scenes(tagger.config, scenes.shape, scenes.kind, scenes.channels)
        wanted = _arrays(tagger, arrays)
        k = check_count("groups", tagger.groups if groups is None else groups, low=1, high=MAX_GROUPS)
        steps = tagger.iterations if iterations is None else iterations
        t = check_count("iterations", steps, low=1, high=MAX_ITERATIONS)
        check_count("starts", starts, low=1, high=MAX_STARTS)
        order = _order(folder, tagger)
        work = Work(tagger, scenes, k, t, check_integer("seed", seed), batch_size, wanted, starts, order)
        parts = target.with_name(target.name + ".parts")
        if ranks.main:
            make_folder(target.parent)
            stack.enter_context(lock_run(parts))
            _begin(parts, work.described(folder, Path(data)), overwrite)
        wait_for_all(ranks)
        _write_parts(work, parts, ranks, progress)
        wait_for_all(ranks)
        if ranks.main:
            _join(parts, target, work)
        wait_for_all(ranks)
    if ranks.main:  # unlocked by now: Windows removes no file that is open
        shutil.rmtree(parts, ignore_errors=True)
    return target


def _arrays(model: Tagger, asked: Sequence[str]) -> tuple[str, ...]:
    for name in asked:
        check_choice("arrays", name, ARRAYS)
    if "class_probabilities" in asked and not model.config.classes:
        raise ValueError(
            "class_probabilities were asked for, but this model was trained without classes: leave them out"
        )
    has = ARRAYS if model.config.classes else ARRAYS[:-1]
    return tuple(name for name in has if name in asked or not asked)


@dataclass(frozen=True, eq=False)
class Work:
    """What is grouped, and how."""

    model: Tagger
    data: LazyArrays
    groups: int
    iterations: int
    seed: int
    batch: int
    arrays: tuple[str, ...]
    starts: int = STARTS
    order: Array | None = None
    """The permutation of the positions that the model was trained with, if it was."""

    def parts(self) -> list[tuple[int, int]]:
        """First row and end of every part: whole batches, so that BatchNorm sees those that it would see anyway."""
        numbers = self.batch * self.groups * self.data.elements
        rows = self.batch * max(1, PART // numbers)
        return [(first, min(first + rows, len(self.data))) for first in range(0, len(self.data), rows)]

    def described(self, model: Path, data: Path) -> dict[str, Any]:
        """All that the result depends on."""
        with open(model / WEIGHTS, "rb") as file:
            weights = file_digest(file, "sha256").hexdigest()
        about = data.stat()
        return {
            "model": weights, "configuration": json.loads(json.dumps(asdict(self.model.config))),
            "permuted": self.order is not None, "data": str(data.resolve()), "bytes": about.st_size,
            "modified": about.st_mtime_ns,
            "groups": self.groups, "iterations": self.iterations, "seed": self.seed, "batch": self.batch,
            "arrays": list(self.arrays), "starts": self.starts,
        }  # fmt: skip

    @torch.no_grad()
    def group(self, first: int, end: int) -> dict[str, Array]:
        """The arrays of these rows."""
        x, config = channels_last(np.asarray(self.data.x[first:end]), self.data.axis), self.model.config
        try:
            rows, _, _ = self.model.checked_rows(self._permuted(x.reshape(len(x), -1)))
        except (ValueError, TypeError) as error:
            raise type(error)(f"{self.data.name}, scenes {first} to {end - 1}: {error}") from None
        masks = Key.of(self.seed, self.model.w.device).fold("masks")
        last: list[State] = []
        at_once = self.model.inputs_at_once(self.batch, self.groups)
        for begin, part in batches(rows.to(self.model.w.device), at_once):
            *_, state = self.model.best_states(
                part, self.groups, self.iterations, masks, first + begin, None, self.starts
            )
            last.append(self._in_order(state))
        found = Grouping(
            (State.cat(last),), self.data.shape, True, self.model.units, config.channels, self.data.axis == "first"
        )
        makers: dict[str, Callable[[], Array]] = {
            "labels": lambda: found.labels.astype(np.uint8),
            "masks": lambda: found.masks.astype(np.float32),
            "reconstructions": lambda: found.reconstructions.astype(np.float32),
            "class_probabilities": lambda: self.model.class_probabilities(found.history[-1]).cpu().numpy(),
        }
        return {name: makers[name]() for name in self.arrays}

    def _permuted(self, rows: Array) -> Array:
        """x as the model was trained to see it."""
        if self.order is None:
            return rows
        return rows.reshape(len(rows), len(self.order), -1)[:, self.order].reshape(len(rows), -1)

    def _in_order(self, state: State) -> State:
        """The result with its positions as in the file."""
        if self.order is None:
            return state
        back = torch.from_numpy(np.argsort(self.order)).to(state.m.device)
        z = torch.unflatten(state.z, -1, (len(self.order), -1))[..., back, :].flatten(-2)
        return state._replace(z=z, m=state.m[..., back])


def _order(folder: Path, model: Tagger) -> Array | None:
    """The permutation of the positions that a model was trained with."""
    data = data_of(folder)
    return permutation(data, model.config.positions) if data and data.permuted else None


# --- parts --------------------------------------------------------------------------------------------------------


def _begin(parts: Path, described: dict[str, Any], overwrite: bool) -> None:
    """Keep the parts of the same work, if there are any; refuse those of other work."""
    path = parts / "work.json"
    there = read_json(path) if path.is_file() else described
    differing = [name for name in described if described[name] != there.get(name)]
    if differing and not overwrite:
        raise ValueError(
            f"{parts} holds parts of other work ({', '.join(differing)} differ): repeat that command to finish it, "
            "choose another --out, or add --overwrite to begin again"
        )
    if differing:
        for old in parts.glob("*.npz"):
            old.unlink()
    write_json(path, described)


def _write_parts(work: Work, parts: Path, ranks: World, progress: bool) -> None:
    """This process's share of the parts that are not there yet."""
    every = work.parts()
    missing = [number for number in range(len(every)) if not _path(parts, number).is_file()]
    mine = missing[ranks.rank :: ranks.size]
    rows = [end - first for first, end in every]
    with interruptions() as stopped, row_bar(len(work.data), progress and ranks.main) as bar:
        bar(_done(parts, rows))
        for number in mine:
            if stopped.is_set():
                done = f"stopped after {_done(parts, rows):,} of {len(work.data):,} scenes"
                print(f"{done}: repeat the command to go on", file=sys.stderr)
                raise KeyboardInterrupt
            found = work.group(*every[number])
            write_durably(_path(parts, number), lambda path, found=found: _save(path, found))
            bar(_done(parts, rows))


def _path(parts: Path, number: int) -> Path:
    return parts / f"{number:08d}.npz"


def _done(parts: Path, rows: list[int]) -> int:
    """Rows that any process has finished."""
    return sum(rows[int(path.stem)] for path in parts.glob("*.npz"))


def _save(path: Path, arrays: dict[str, Array]) -> None:
    with path.open("wb") as file:  # a file object, as numpy would add .npz to a name
        cast(Any, np.savez)(file, **arrays)


# --- joining ------------------------------------------------------------------------------------------------------


def _join(parts: Path, target: Path, work: Work) -> None:
    """One file of all parts, under its name only when it is whole."""
    paths = [_path(parts, number) for number in range(len(work.parts()))]
    join = _join_npz if target.suffix.lower() == ".npz" else _join_h5
    advice = "free some space and repeat the command, which will only join"
    write_durably(target, lambda temporary: join(paths, temporary, work), advice)


def _join_npz(paths: list[Path], partial: Path, work: Work) -> None:
    """Uncompressed, so that a large file can be read where it lies."""
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as archive:
        for name in work.arrays:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                for number, array in enumerate(_pieces(paths, name)):
                    if not number:
                        header = np.lib.format.header_data_from_array_1_0(array)
                        header["shape"] = (len(work.data), *array.shape[1:])
                        np.lib.format.write_array_header_1_0(cast(BinaryIO, stream), header)
                    stream.write(np.ascontiguousarray(array).data)


def _join_h5(paths: list[Path], partial: Path, work: Work) -> None:
    import h5py

    with h5py.File(partial, "w") as file:
        for name in work.arrays:
            first = 0
            for array in _pieces(paths, name):
                if not first:
                    file.create_dataset(name, (len(work.data), *array.shape[1:]), array.dtype)
                file[name][first : first + len(array)] = array
                first += len(array)


def _pieces(paths: list[Path], name: str) -> Iterator[Array]:
    for path in paths:
        with np.load(path, allow_pickle=False) as part:
            yield part[name]
