"""A run's folder: its lock, its configuration, its trained models.

config.json  environment.json  metrics.jsonl  tensorboard/  checkpoints/  seed-0/ ... (the trained models)  report.html
timing.json: where the time went
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from taggernet.config.run import Config, DataConfig, build, differing_fields, from_json, is_longer, to_json
from taggernet.errors import cannot_write
from taggernet.fileio import read_json, write_json
from taggernet.model_io import WEIGHTS, read_card
from taggernet.tagger import Tagger
from taggernet.training.failures import not_written
from taggernet.training.log import environment
from taggernet.training.time_spent import TRAINING

LOCK = ".lock"
TIMING, TUNING = "timing.json", "tuning.json"
OF_FILE = {"data.name", "recipe", "optimiser.updates", "optimiser.patience"}
"""Settings in which a run differs from itself once its file was moved, and perhaps more updates are asked for."""
MOST_SHOWN = 8
"""Numbers of a setting that an error shows."""


@dataclass(frozen=True)
class RunLock:
    """A run's folder while this process holds the lock in it."""

    folder: Path
    stat: os.stat_result
    """Of the lock file when it was locked; it stays open, so that no other file gets its number."""

    @contextmanager
    def writing(self, what: str, kept: Callable[[], str] = str) -> Iterator[None]:
        """Write into the folder if it is still the one that was locked; an error says what failed and what is kept."""
        try:
            self._check()
            yield
        except OSError as problem:
            raise OSError(not_written(what, self.folder, problem) + kept()) from problem

    def _check(self) -> None:
        try:
            same = os.path.samestat(self.stat, os.stat(self.folder / LOCK))
        except FileNotFoundError:
            same = False
        if not same:
            raise OSError("the folder was deleted, moved or replaced while the run was using it")


@contextmanager
def lock_run(folder: Path) -> Iterator[RunLock]:
    """Lock the folder for this process: a second run in it is refused at once; a crash releases the lock."""
    lock = FileLock(folder / LOCK, mode=0o644)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout:
        raise ValueError(f"another run is using {folder}: wait for it, or choose another --out") from None
    except OSError as problem:
        raise cannot_write(folder, problem, "choose another --out") from None
    try:
        yield RunLock(folder, os.stat(folder / LOCK))
    finally:
        lock.release()


def write_or_check_config(folder: Path, config: Config) -> None:
    """Write the configuration, or check that the run already here has the same one, or one of fewer updates.

    A run that ended before its first update, for instance because its data were not there, is no run.
    """
    path = folder / "config.json"
    begun = any((folder / part).exists() for part in ("checkpoints", "metrics.jsonl")) or models_of(folder)
    if begun and not path.exists():
        raise ValueError(f"{folder} holds parts of a run but no config.json: choose another --out")
    if begun:
        existing = from_json(read_json(path), path)
        differing = differing_fields(config, existing)
        own = Path(existing.data.name).is_absolute()
        if own and "data.name" in differing and set(differing) <= OF_FILE:
            raise ValueError(_other_file(folder, existing.data.name, config.data.name))
        if existing.optimiser.updates > config.optimiser.updates and is_longer(existing, config):
            raise ValueError(
                f"{folder} holds a run of {existing.optimiser.updates:,} updates, more than the "
                f"{config.optimiser.updates:,} asked for: set --updates to {existing.optimiser.updates} or more, "
                "or choose another --out"
            )
        if differing and not is_longer(config, existing):
            details = ", ".join(
                f"{name} is {_shown(_at(existing, name))} there, {_shown(_at(config, name))} here" for name in differing
            )
            raise ValueError(f"{folder} holds a run of another configuration ({details}): choose another --out")
    write_json(path, to_json(config))
    write_json(folder / "environment.json", environment())


def _shown(value: object) -> str:
    """A setting in an error; of one number for each element the first few."""
    if isinstance(value, tuple) and len(value) > MOST_SHOWN:
        return f"({', '.join(map(repr, value[:3]))}, ... {len(value):,} in all)"
    return repr(value)


def _other_file(folder: Path, there: str, here: str) -> str:
    """The error of a run that is repeated with a file of another name, for instance because it was moved."""
    if not Path(there).exists():
        return (
            f"{folder} holds a run trained on {there}, which is not there any more: if {here} is that file, move or "
            "copy it back and repeat the command with the old path to resume the run, or choose another --out"
        )
    return (
        f"{folder} holds a run trained on {there}, not on {here}: repeat the command with that file to resume the run, "
        "or choose another --out"
    )


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


def save_models(folder: Path, models: Iterable[tuple[int, Tagger]], card: dict[str, object]) -> None:
    """One loadable model per seed."""
    for seed, model in models:
        model.save(folder / f"seed-{seed}", {**card, "seed": seed})


def add_times(folder: Path, times: dict[str, float]) -> None:
    """Where the time of a call went, below those of the calls before it."""
    rounded = {name: round(seconds, 3) for name, seconds in times.items()}
    write_json(folder / TIMING, {"calls": [*_calls(folder), rounded]})


def seconds_before(folder: Path) -> float:
    """Spent on training by the calls that worked on a run before this one."""
    return float(sum(call.get(part, 0.0) for call in _calls(folder) for part in TRAINING))


def _calls(folder: Path) -> list[dict[str, float]]:
    path = folder / TIMING
    found: list[dict[str, float]] = read_json(path).get("calls", []) if path.is_file() else []
    return found


def models_of(folder: Path) -> list[Path]:
    """The trained models of a run, in the order of their seeds."""
    found = [p.parent for p in folder.glob(f"seed-*/{WEIGHTS}") if p.parent.name.removeprefix("seed-").isdigit()]
    return sorted(found, key=lambda p: int(p.name.removeprefix("seed-")))


def run_of(model: Path) -> Path | None:
    """The folder of the run that a model is a seed of; None for a model that stands alone."""
    return model.parent if model.name.startswith("seed-") and (model.parent / "config.json").is_file() else None


def data_of(model: Path) -> DataConfig | None:
    """What the model in a folder was trained on, as its run says, or its card; None where neither does."""
    run = run_of(model)
    if run is not None:
        return read_config(run).data
    noted = read_card(model).get("data")
    return build(DataConfig, noted, model) if noted else None
