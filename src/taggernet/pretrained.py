"""Finding a model by name: shipped with the package, in a folder, in a run, or on the Hugging Face Hub.

Only model.safetensors and config.json are ever read or fetched, and nothing is unpickled. A shipped name or a path of
this machine never causes network access; this is why huggingface_hub's mixin, whose ``from_pretrained`` asks the Hub
about any name that is no folder, is used for pushing (``hub``) and not for loading.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from taggernet.fileio import read_json
from taggernet.model_io import CARD, WEIGHTS, load_model, save_model

if TYPE_CHECKING:
    from taggernet.tagger import Tagger

SHIPPED = Path(__file__).parent / "weights"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def shipped() -> list[str]:
    """Names of the models that travel with the package."""
    return sorted(folder.parent.name for folder in SHIPPED.glob(f"*/{CARD}"))


def card_in(folder: Path) -> dict[str, Any]:
    """What the card of the model in a folder says of its making and its figures."""
    card = read_json(folder / CARD).get("card")
    return card if isinstance(card, dict) else {}


def load_pretrained(
    name: str | os.PathLike[str], device: torch.device | str = "cpu", revision: str | None = None
) -> Tagger:
    """The model of a shipped name, a folder, a run's folder (its first seed) or a Hub id."""
    return load_model(locate(name, revision), device)


def locate(name: str | os.PathLike[str], revision: str | None = None) -> Path:
    """The folder that holds the model; fetched first if the name is a Hub id."""
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
    if isinstance(name, str) and _HUB_ID.fullmatch(name) and not folder.parent.is_dir():
        return _fetched(name, revision)
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


def _fetched(hub_id: str, revision: str | None) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    try:
        folder = Path(snapshot_download(hub_id, revision=revision, allow_patterns=[WEIGHTS, CARD]))
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        what = f"model {hub_id!r}" if isinstance(error, RepositoryNotFoundError) else f"{revision!r} of {hub_id!r}"
        raise ValueError(
            f"the Hub has no {what} that you may read, and there is no such folder here: check the name, or log in "
            "with 'hf auth login'"
        ) from None
    except Exception as error:  # the Hub's client passes on whatever its transport raises
        raise OSError(
            f"{hub_id!r} is no folder here and could not be fetched from the Hub ({type(error).__name__}): connect to "
            "the network, or download it elsewhere and give its folder"
        ) from None
    if not ((folder / WEIGHTS).is_file() and (folder / CARD).is_file()):
        raise ValueError(f"{hub_id!r} is on the Hub but holds no {WEIGHTS} and {CARD}: it is not a taggernet model")
    for name in (WEIGHTS, CARD):
        _check_sum(folder / name, hub_id)
    return folder


def _check_sum(path: Path, hub_id: str) -> None:
    """The Hub's client checks the length of what came; its cache names each file by its checksum, which we check."""
    stored = path.resolve()
    if not path.is_symlink() or not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", stored.name):
        return  # a cache without links, or a name that is no checksum
    content = stored.read_bytes()
    if len(stored.name) == 64:
        found = hashlib.sha256(content).hexdigest()
    else:  # a file that git keeps itself
        found = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    if found != stored.name:
        path.unlink()
        stored.unlink()
        raise OSError(f"{path.name} of {hub_id!r} came with a wrong checksum and was not kept: fetch it again")


def push(model: Tagger, hub_id: str, card: dict[str, Any] | None, *, half: bool, private: bool, message: str) -> str:
    """Upload a model to the Hub, and return its address."""
    if not isinstance(hub_id, str) or not _HUB_ID.fullmatch(hub_id):
        raise ValueError(f"{hub_id!r} is not a Hub id: give owner/name, e.g. 'me/my-tagger'")
    from taggernet.hub import upload

    with tempfile.TemporaryDirectory() as folder:
        save_model(model, folder, card, half=half)
        try:
            upload(Path(folder), hub_id, private=private, message=message)
        except Exception as error:  # as above
            raise OSError(
                f"{hub_id!r} could not be uploaded to the Hub ({type(error).__name__}: {str(error).splitlines()[0]}): "
                "connect to the network and log in with 'hf auth login'"
            ) from None
    return f"https://huggingface.co/{hub_id}"
