"""Checkpoints that survive a crash at any moment: one folder per checkpoint, the last two kept.

    RUN/checkpoints/00005000/seed-3.safetensors   weights, moments, average of one seed
    RUN/checkpoints/00005000/state.json           step, digests of the files; written last

A folder is written under a temporary name, synced and renamed, and carries a digest of each file, so a checkpoint
that is cut short or damaged is noticed and the one before it is used. Random numbers need no state of their own:
they are a function of the seed and the step.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from taggernet.storage import read_json, read_tensors, sync_folder, write_json, write_tensors
from taggernet.training.update import TrainState

KEEP = 2
_PARTS = ("weights", "first_moment", "second_moment", "average")


def folder_of(run: Path) -> Path:
    return run / "checkpoints"


def save(run: Path, state: TrainState, seeds: list[int], extra: dict[str, Any]) -> Path:
    """Write a checkpoint of all seeds and drop all but the last two."""
    final = folder_of(run) / f"{state.step:08d}"
    if final.exists():
        if _is_whole(final, seeds):
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
        record = {"step": state.step, "seeds": seeds, "names": list(state.weights), "digests": digests, **extra}
        write_json(temporary / "state.json", record)
        os.replace(temporary, final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_folder(final.parent)
    for old in sorted(p for p in folder_of(run).iterdir() if p.name.isdigit())[:-KEEP]:
        shutil.rmtree(old, ignore_errors=True)
    return final


def _is_whole(folder: Path, seeds: list[int]) -> bool:
    try:
        load(folder, seeds, "cpu")
    except (OSError, ValueError):
        return False
    return True


def digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def load_latest(run: Path, seeds: list[int], device: torch.device | str) -> tuple[TrainState, dict[str, Any]] | None:
    """The newest whole checkpoint of these seeds, or None. A damaged one is reported and passed over."""
    if not folder_of(run).is_dir():
        return None
    for folder in sorted((p for p in folder_of(run).iterdir() if p.name.isdigit()), reverse=True):
        try:
            return load(folder, seeds, device)
        except (OSError, ValueError) as problem:
            warnings.warn(f"checkpoint {folder} is not used ({problem}): trying the one before it", stacklevel=2)
    return None


def load(folder: Path, seeds: list[int], device: torch.device | str) -> tuple[TrainState, dict[str, Any]]:
    """One checkpoint, every file checked against its digest."""
    record = read_json(folder / "state.json")
    if record.get("seeds") != seeds:
        raise ValueError(f"it holds seeds {record.get('seeds')}, but {seeds} are wanted")
    digests, step = record.get("digests"), record.get("step")
    if not isinstance(digests, dict) or step != int(folder.name):
        raise ValueError("state.json is damaged")
    parts: dict[str, dict[str, list[Tensor]]] = {part: {} for part in _PARTS}
    for seed in seeds:
        path = folder / f"seed-{seed}.safetensors"
        if not path.is_file() or digest(path) != digests.get(path.name):
            raise ValueError(f"{path.name} is missing or damaged")
        for name, tensor in read_tensors(path, device).items():
            part, parameter = name.split(".", 1)
            parts[part].setdefault(parameter, []).append(tensor)
    # In the order they were saved in, which safetensors does not keep: a norm over all of them rounds by it.
    names = record.get("names", list(parts["weights"]))
    if sorted(names) != sorted(parts["weights"]):
        raise ValueError("state.json is damaged")
    stacked = {
        part: {name: torch.stack(named[name]) for name in names if name in named} for part, named in parts.items()
    }
    return TrainState(**stacked, step=int(folder.name)), record
