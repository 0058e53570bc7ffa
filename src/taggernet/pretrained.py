"""Find a model by name: shipped with the package, in a folder, in a run, or on the Hugging Face Hub.

A shipped name or a local path never causes network access; huggingface_hub's own ``from_pretrained`` would ask the Hub
about any name that is not a folder.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from taggernet.fileio import read_json
from taggernet.hub import download, is_hub_id
from taggernet.model_io import CARD, WEIGHTS

SHIPPED = Path(__file__).parent / "weights"


def shipped() -> list[str]:
    """Names of the models that are shipped with the package."""
    return sorted(folder.parent.name for folder in SHIPPED.glob(f"*/{CARD}"))


def locate(name: str | os.PathLike[str], revision: str | None = None) -> Path:
    """The folder that holds the model; downloaded first if the name is a Hub id."""
    if isinstance(name, str):
        if name in shipped():
            return SHIPPED / name
        if not name.strip():
            raise ValueError(f"the name of the model is empty: {_choices()}")
    elif not isinstance(name, os.PathLike):
        raise TypeError(f"{name!r} is not the name of a model: {_choices()}")
    folder = Path(name).expanduser()
    if folder.exists():
        return _in_folder(folder)
    if isinstance(name, str) and is_hub_id(name) and not folder.parent.is_dir():
        return download(name, revision)
    if isinstance(name, str) and "/" not in name and os.sep not in name:
        near = difflib.get_close_matches(name, shipped(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else _choices()
        raise ValueError(f"there is no model {name!r}: {hint}")
    raise FileNotFoundError(f"the folder {folder} does not exist: {_choices()}")


def _choices() -> str:
    names = ", ".join(map(repr, shipped()))
    return f"give {names + ', ' if names else ''}a folder that holds a model or a run, or a Hub id (owner/name)"


def _in_folder(folder: Path) -> Path:
    """The model's own folder: this one, or the first seed of the run in it."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is a file: name the folder that holds {WEIGHTS} and {CARD}")
    if (folder / WEIGHTS).is_file():
        return folder
    seeds = [p for p in folder.glob("seed-*") if p.name.removeprefix("seed-").isdigit() and (p / WEIGHTS).is_file()]
    if seeds:
        return min(seeds, key=lambda p: int(p.name.removeprefix("seed-")))
    if (folder / CARD).is_file() and "optimiser" in read_json(folder / CARD):
        raise ValueError(f"{folder} holds a run that is not finished: run 'taggernet train' on it until it ends")
    raise FileNotFoundError(
        f"{folder} holds neither a model ({WEIGHTS}, {CARD}) nor a finished run: name another folder"
    )
