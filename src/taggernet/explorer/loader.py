"""The model to show, from what the user named."""

from __future__ import annotations

from pathlib import Path

from taggernet.data import Scenes
from taggernet.explorer.scenes import TEST_SCENES, check_shape
from taggernet.model_io import read_card, read_model_config
from taggernet.pretrained import locate
from taggernet.tagger import Tagger
from taggernet.training.datasets import BUILT_IN, load_split
from taggernet.training.run_dir import read_config


def open_model(model: Tagger | str | Path) -> tuple[Tagger, str, str]:
    """The model, its name for the page, and the recipe on its card ('' if unknown)."""
    if isinstance(model, Tagger):
        return model, "model", ""
    folder = locate(model)
    recipe = str(read_card(folder).get("recipe", ""))
    return Tagger.load(folder), recipe or folder.name, recipe


def check_model(model: Tagger | str | Path) -> None:
    """Whether there is such a model and the page can show it: known from its card, long before gradio is loaded."""
    if isinstance(model, Tagger):
        check_shape(model.config)
    else:
        folder = locate(model)
        check_shape(read_model_config(folder))


def own_scenes(model: Tagger | str | Path) -> Scenes | None:
    """The held-out scenes of a run on a user's own file, where the run and the file are there."""
    if isinstance(model, Tagger):
        return None
    run = locate(model).parent
    if not (run / "config.json").is_file():
        return None
    data = read_config(run).data
    if data.name in BUILT_IN or not Path(data.name).is_file():
        return None
    return load_split(data, "test")[:TEST_SCENES]
