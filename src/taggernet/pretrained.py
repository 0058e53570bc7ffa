"""Find a model by name: shipped with the package, in a folder, in a run, or on the Hugging Face Hub.

A shipped name or a local path never causes network access; huggingface_hub's own ``from_pretrained`` would ask the Hub
about any name that is not a folder.
"""

from __future__ import annotations

import difflib
import json
import os
import warnings
from pathlib import Path
from typing import Any

from taggernet.fileio import read_json
from taggernet.hub import download, is_hub_id
from taggernet.model_io import CARD, WEIGHTS, read_card

SHIPPED = Path(__file__).parent / "weights"


def shipped() -> list[str]:
    """Names of the models that are shipped with the package."""
    return sorted(folder.parent.name for folder in SHIPPED.glob(f"*/{CARD}"))


def local_folder(name: str | os.PathLike[str]) -> Path | None:
    """The folder that a name means if it is one; None for a shipped model, whose name comes first."""
    return None if isinstance(name, str) and name in shipped() else Path(name).expanduser()


def locate(name: str | os.PathLike[str], revision: str | None = None) -> Path:
    """The folder that holds the model; downloaded first if the name is a Hub id."""
    if not isinstance(name, str | os.PathLike):
        raise TypeError(f"{name!r} is not the name of a model: {_choices()}")
    if isinstance(name, str) and not name.strip():
        raise ValueError(f"the name of the model is empty: {_choices()}")
    folder = local_folder(name)
    if folder is None:
        return SHIPPED / name
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
    """The model's own folder: this one, or the best seed of the run in it."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is a file: name the folder that holds {WEIGHTS} and {CARD}")
    if (folder / WEIGHTS).is_file():
        return folder
    seeds = sorted(
        int(p.parent.name.removeprefix("seed-"))
        for p in folder.glob(f"seed-*/{WEIGHTS}")
        if p.parent.name.removeprefix("seed-").isdigit()
    )
    if seeds:
        return folder / f"seed-{_best(folder, seeds) if len(seeds) > 1 else seeds[0]}"
    if (folder / CARD).is_file() and "optimiser" in read_json(folder / CARD):
        raise ValueError(f"{folder} holds a run that is not finished: run 'taggernet train' on it until it ends")
    raise FileNotFoundError(
        f"{folder} holds neither a model ({WEIGHTS}, {CARD}) nor a finished run: name another folder"
    )


def _best(run: Path, seeds: list[int]) -> int:
    """The seed of a run that is best on validation; a warning says which one and by what."""
    valid, first = _validation(run, seeds), int(read_json(run / CARD).get("first_seed", 0))
    metric = next((name for name in ("error", "ami", "agreement", "cost") if name in valid), None)
    scores = {} if metric is None else {first + i: of_seed[-1] for i, of_seed in enumerate(valid[metric])}
    scores = {seed: score for seed, score in scores.items() if seed in seeds}
    if scores:
        chosen = (max if metric in ("ami", "agreement") else min)(scores, key=lambda seed: scores[seed])
        words = {"error": "class error", "ami": "AMI", "agreement": "agreement of random starts"}.get(
            str(metric), metric
        )
        why = f"the best of {len(seeds)} by its {words} on validation, {scores[chosen]:.3f}"
    else:
        chosen, why = seeds[0], f"the first of {len(seeds)}, as no validation is recorded"
    warnings.warn(f"{run}: using seed {chosen}, {why} (name {run / 'seed-N'} for another)", stacklevel=1)
    return chosen


def _validation(run: Path, seeds: list[int]) -> dict[str, Any]:
    """The last metrics on validation that the run recorded before it saved its models: name -> (S, T)."""
    updates = read_card(run / f"seed-{seeds[0]}").get("updates")
    found: dict[str, Any] = {}
    for record in evaluations(run):
        if updates is None or record["step"] <= updates:
            found = record["valid"]
            if "grouping" in record:
                found = found | {"agreement": [[of_seed] for of_seed in record["grouping"]["agreement"]]}
    return found


def evaluations(folder: Path) -> list[dict[str, Any]]:
    """The records of a run that hold metrics on validation, in order."""
    path = folder / "metrics.jsonl"
    found = []
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        try:
            record = json.loads(line)
        except ValueError:
            continue  # a line that a killed run did not finish, or that is damaged
        if "valid" in record:
            found.append(record)
    return found
