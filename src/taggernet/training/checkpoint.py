"""Checkpoints that survive a crash at any moment: one folder per checkpoint, the last two kept.

    RUN/checkpoints/00005000/seed-3.safetensors   weights, moments, average of one seed
    RUN/checkpoints/00005000/state.json           step, configuration, digests of the files and of itself; written last

A folder is written under a temporary name, synced and renamed, and carries a digest of each file, so a checkpoint
that is cut short, damaged or another run's is noticed and the one before it is used. Random numbers need no state of
their own: they are a function of the seed and the step.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from taggernet.config.run import Config, differing_fields, from_json, is_longer, to_json
from taggernet.fileio import read_json, read_tensors, sync_folder, write_json, write_tensors
from taggernet.training.adam import TrainState

_PARTS = ("weights", "first_moment", "second_moment", "average")


def folder_of(run: Path) -> Path:
    return run / "checkpoints"


def name_of(step: int) -> str:
    return f"{step:08d}"


def save(run: Path, state: TrainState, config: Config, extra: dict[str, Any], before: int | None = None) -> Path:
    """Write a checkpoint of all seeds and drop all others but the one ``before`` it, the last known to be whole."""
    final, seeds = folder_of(run) / name_of(state.step), config.seed_list
    if final.exists():
        if _is_whole(final, config):
            return final
        shutil.rmtree(final)  # damaged: this run passed it over and has come here again
    temporary = final.with_name(final.name + ".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        digests = {}
        for index, seed in enumerate(seeds):
            tensors = {
                f"{part}.{name}": tensor[index] for part in _PARTS for name, tensor in getattr(state, part).items()
            }
            path = temporary / f"seed-{seed}.safetensors"
            write_tensors(path, tensors)
            digests[path.name] = digest(path)
        record = {
            "step": state.step, "seeds": seeds, "names": list(state.weights), "digests": digests,
            "config": to_json(config), **extra,
        }  # fmt: skip
        write_json(temporary / "state.json", record | {"digest": _digest_of(record)})
        os.replace(temporary, final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_folder(final.parent)
    kept = {final.name, name_of(state.step if before is None else before)}
    for other in folder_of(run).iterdir():
        if other.name.removesuffix(".tmp").isdigit() and other.name not in kept:
            shutil.rmtree(other, ignore_errors=True)
    return final


def kept(run: Path | None, config: Config) -> str:
    """What a run that fails can say about its checkpoints, after a look at them."""
    if run is None:
        return ""
    for folder in _newest_first(run):
        if _is_whole(folder, config):
            return f"; the last good checkpoint, after update {int(folder.name)}, is kept in {run}"
    return f"; there is no checkpoint in {run} yet"


def _newest_first(run: Path) -> list[Path]:
    if not folder_of(run).is_dir():
        return []
    return sorted((p for p in folder_of(run).iterdir() if p.name.isdigit()), reverse=True)


def _is_whole(folder: Path, config: Config) -> bool:
    try:
        load(folder, config, "cpu")
    except (OSError, ValueError):
        return False
    return True


def digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest_of(record: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def load_latest(run: Path, config: Config, device: torch.device | str) -> tuple[TrainState, dict[str, Any]] | None:
    """The newest whole checkpoint of this configuration, or None. Any other is reported and passed over."""
    for folder in _newest_first(run):
        try:
            return load(folder, config, device)
        except (OSError, ValueError) as problem:
            warnings.warn(f"checkpoint {folder} is not used ({problem}): trying the one before it", stacklevel=2)
    return None


def load(folder: Path, config: Config, device: torch.device | str) -> tuple[TrainState, dict[str, Any]]:
    """One checkpoint, every file checked against its digest."""
    record, seeds = _record(folder, config), config.seed_list
    digests = record["digests"]
    parts: dict[str, dict[str, list[Tensor]]] = {part: {} for part in _PARTS}
    for seed in seeds:
        path = folder / f"seed-{seed}.safetensors"
        if not path.is_file() or digest(path) != digests.get(path.name):
            raise ValueError(f"{path.name} is missing or damaged")
        for name, tensor in read_tensors(path, device).items():
            part, parameter = name.split(".", 1)
            parts[part].setdefault(parameter, []).append(tensor)
    # In the order they were saved in, which safetensors does not keep: a norm over all of them rounds by it.
    names = record["names"]
    if sorted(names) != sorted(parts["weights"]):
        raise ValueError("state.json is damaged")
    stacked = {
        part: {name: torch.stack(named[name]) for name in names if name in named} for part, named in parts.items()
    }
    return TrainState(**stacked, step=int(folder.name)), record


def _record(folder: Path, config: Config) -> dict[str, Any]:
    """state.json, if it is whole and of this configuration."""
    record = read_json(folder / "state.json")
    content = {name: value for name, value in record.items() if name != "digest"}
    if record.get("digest") != _digest_of(content):
        raise ValueError("state.json is damaged")
    if record.get("seeds") != config.seed_list:
        raise ValueError(f"it holds seeds {record.get('seeds')}, but {config.seed_list} are wanted")
    if not isinstance(record.get("digests"), dict) or record.get("step") != int(folder.name):
        raise ValueError("state.json is damaged")
    theirs = from_json(record["config"], "state.json")
    differing = differing_fields(config, theirs)
    if differing and not is_longer(config, theirs):
        raise ValueError(f"it is of another configuration: {', '.join(differing)} differ")
    return record
