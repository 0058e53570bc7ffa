"""A run's folder: who owns it, what it was configured as, what it holds in the end.

config.json  environment.json  metrics.jsonl  tensorboard/  checkpoints/  seed-0/ ... (the trained models)
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from taggernet.config.run import Config, differing_fields, from_json, to_json
from taggernet.fileio import read_json, write_json
from taggernet.training.failures import not_written
from taggernet.training.log import environment
from taggernet.training.seeds import one_seed


@dataclass(frozen=True)
class RunLock:
    """A folder that this process holds, by a lock on a file in it."""

    folder: Path
    lock: int

    @contextmanager
    def writing(self, what: str, kept: Callable[[], str] = str) -> Iterator[None]:
        """Write into the folder, if it is still the one that was claimed; say what failed and what is kept."""
        try:
            self._check()
            yield
        except OSError as problem:
            raise OSError(not_written(what, self.folder, problem) + kept()) from problem

    def _check(self) -> None:
        try:
            here = os.path.samestat(os.fstat(self.lock), os.stat(self.folder / ".lock"))
        except FileNotFoundError:
            here = False
        if not here:
            raise OSError("the folder was deleted, moved or replaced while the run was using it")


@contextmanager
def lock_run(folder: Path) -> Iterator[RunLock]:
    """Hold the folder for this process: a second run in it is refused, and a crash releases it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as problem:
        raise OSError(f"{folder} cannot be written ({problem.strerror}): choose another --out") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"another run is using {folder}: wait for it, or choose another --out") from None
        yield RunLock(folder, lock)
    finally:
        os.close(lock)


def write_or_check_config(folder: Path, config: Config) -> None:
    """Write the configuration, or check that the run already here has the same one."""
    path = folder / "config.json"
    if path.exists():
        existing = from_json(read_json(path), path)
        differing = differing_fields(config, existing)
        if differing:
            details = ", ".join(
                f"{name} is {_at(existing, name)!r} there, {_at(config, name)!r} here" for name in differing
            )
            raise ValueError(f"{folder} holds a run of another configuration ({details}): choose another --out")
    elif (folder / "checkpoints").exists() or (folder / "metrics.jsonl").exists():
        raise ValueError(f"{folder} holds parts of a run but no config.json: choose another --out")
    write_json(path, to_json(config))
    write_json(folder / "environment.json", environment())


def _at(config: object, name: str) -> object:
    for part in name.split("."):
        config = getattr(config, part)
    return config


def read_config(folder: Path) -> Config:
    """The configuration of the run in a folder."""
    path = folder / "config.json"
    if not path.is_file():
        raise FileNotFoundError(f"{folder} holds no run (config.json is missing): name the folder given as --out")
    return from_json(read_json(path), path)


def save_models(folder: Path, config: Config, weights: dict[str, Tensor], card: dict[str, object]) -> None:
    """One loadable model per seed."""
    for index, seed in enumerate(config.seed_list):
        one_seed(config.model, weights, index).save(folder / f"seed-{seed}", {**card, "seed": seed})


def models_of(folder: Path) -> list[Path]:
    """The trained models of a run, in the order of their seeds."""
    found = [p for p in folder.glob("seed-*") if p.is_dir() and p.name.removeprefix("seed-").isdigit()]
    return sorted(found, key=lambda p: int(p.name.removeprefix("seed-")))
