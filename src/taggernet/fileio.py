"""Files that are whole or not there: written under a temporary name, synced, renamed; JSON and safetensors alone."""

from __future__ import annotations

import json
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from taggernet.errors import CHOOSE, cannot_write

LARGEST_JSON = 64 << 20
"""Bytes; a card needs a few thousand, a checkpoint's record of many seeds a few million."""


def write_durably(path: Path, write: Any, advice: str = CHOOSE) -> None:
    """Write to a temporary name, sync, rename: the path holds the old content or the new, never a part."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        try:
            write(temporary)
            with open(temporary, "r+b") as file:  # Windows syncs only what is open for writing
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            with suppress(OSError):  # where nothing can be written there is nothing to remove
                temporary.unlink(missing_ok=True)
    except (OSError, SafetensorError) as problem:
        raise cannot_write(path, problem, advice) from None
    sync_folder(path.parent)


def make_folder(path: Path) -> None:
    """Make the folder and its parents; called before long work, so that an unwritable path fails first."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise cannot_write(path, problem) from None


def sync_folder(path: Path) -> None:
    """Make renames inside a folder durable, where folders can be opened (not on Windows)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_json(path: Path, content: Any) -> None:
    write_durably(path, lambda temporary: temporary.write_text(json.dumps(content, indent=2) + "\n", "utf-8"))


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    ready = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}

    def write(temporary: Path) -> None:
        temporary.touch()
        mode = temporary.stat().st_mode  # safetensors makes files that only their owner can read
        try:
            save_file(ready, temporary, {"format": "pt"})
            os.chmod(temporary, stat.S_IMODE(mode))
        except SafetensorError as error:  # which is what it makes of a full disk too
            code = re.search(r"os error (\d+)", str(error))
            if code is None:
                raise
            raise OSError(int(code[1]), os.strerror(int(code[1])), str(path)) from None

    write_durably(path, write)


def read_tensors(path: Path, device: torch.device | str = "cpu") -> dict[str, Tensor]:
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: name a folder that holds {path.name}")
    try:
        return load_file(path, device=str(device))
    except SafetensorError as error:
        raise ValueError(f"{path} is not a whole safetensors file ({error}): copy or train it again") from None


def read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: name a folder that holds {path.name}")
    size = path.stat().st_size
    if size > LARGEST_JSON:
        raise ValueError(f"{path} holds {size:,} bytes, but at most {LARGEST_JSON:,} are expected: is it a card?")
    try:
        content = json.loads(path.read_text("utf-8"))
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply to be a card: copy or write it again") from None
    except ValueError as error:  # also of text that is not UTF-8 and of numbers too long to read
        raise ValueError(f"{path} is not JSON ({error}): copy or write it again") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}, but an object with fields is expected")
    return content
