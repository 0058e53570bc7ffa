"""The model to show, from what the user named."""

from __future__ import annotations

from pathlib import Path

from taggernet.pretrained import card_in, locate
from taggernet.tagger import Tagger


def open_model(model: Tagger | str | Path) -> tuple[Tagger, str, str]:
    """The model, its name for the page, and the recipe on its card ('' if unknown)."""
    if isinstance(model, Tagger):
        return model, "model", ""
    folder = locate(model)
    recipe = str(card_in(folder).get("recipe", ""))
    return Tagger.load(folder), recipe or folder.name, recipe
