"""The model to show, from what the user named."""

from __future__ import annotations

from pathlib import Path

from taggernet.storage import CARD, WEIGHTS, read_json
from taggernet.tagger import Tagger
from taggernet.training.folder import models_of


def open_model(model: Tagger | str | Path) -> tuple[Tagger, str, str]:
    """The model, its name for the page, and the recipe on its card ('' if unknown)."""
    if isinstance(model, Tagger):
        return model, "model", ""
    folder = Path(model)
    if not (folder / WEIGHTS).is_file():
        seeds = models_of(folder) if folder.is_dir() else []
        if seeds:
            return open_model(seeds[0])
        shipped = getattr(Tagger, "from_pretrained", None)
        if shipped is not None and not folder.exists():
            return shipped(str(model)), str(model), str(model)
        raise FileNotFoundError(f"{folder} holds no model ({WEIGHTS} is missing): name a folder that one was saved to")
    recipe = str(read_json(folder / CARD).get("card", {}).get("recipe", ""))
    return Tagger.load(folder), recipe or folder.name, recipe
