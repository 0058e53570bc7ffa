"""A model as the page gets it: its two files, BatchNorm's statistics frozen, and the scenes that fit it.

Which scenes fit is read off the run that made the model, or off its input: square binary inputs are Shapes, real ones
of 28 x 28 are TextureMNIST. A user's own data is shown from its validation split.
"""

from __future__ import annotations

import tempfile
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from safetensors.torch import save

from taggernet import data
from taggernet.arrays import Array
from taggernet.config.model import TaggerConfig
from taggernet.config.run import Config
from taggernet.data import Scenes
from taggernet.data.textures import SIDE
from taggernet.model_io import CARD, WEIGHTS, read_card, read_model_config
from taggernet.pretrained import SHIPPED, locate
from taggernet.tagger import Tagger
from taggernet.training.datasets import BUILT_IN, load_split
from taggernet.training.run_dir import read_config

MAX_SIDE = 128
"""The longest side of a scene that the page shows."""
OWN_SCENES, OWN_BYTES = 500, 16 << 20
"""A user's scenes that the page gets, at most, and the bytes that they may take."""
SMALLEST = {"paper": 16, "small": 7}
"""The smallest canvas on which each style of Shapes is used."""
FREEZE_ON = 1_000
"""Scenes on which a model without frozen statistics is frozen for the page."""

Content = bytes | Path
World = Literal["shapes", "textures", "own"]


@dataclass(frozen=True)
class ShownModel:
    """What the page needs of a model."""

    name: str
    weights: Content
    card: Content
    world: World
    """Which scenes the page makes for it; own: those in ``scenes``."""
    objects: int
    """Shapes or digits in a test scene."""
    scenes: bytes | None = None


def shown_model(model: Tagger | str | Path, scenes: Scenes | None = None) -> ShownModel:
    """The model that a user named, or one clear sentence."""
    if isinstance(model, Tagger):
        check_pictures(model.config)
        return _shown(model, None, "model", None, scenes)
    folder = locate(model)
    config = read_model_config(folder)
    check_pictures(config)
    run = _run_of(folder)
    name = folder.name if folder.parent == SHIPPED else str(model)
    tagger = Tagger.load(folder)  # a damaged file is found here, not in the browser
    return _shown(tagger, folder, name, run, scenes)


def check_pictures(config: TaggerConfig) -> None:
    """The page shows pictures, and none that are too large."""
    if len(config.shape) != 2:
        raise ValueError(f"the model's inputs have shape {config.shape}: the page shows pictures, of shape (H, W)")
    if config.channels > 1:
        raise ValueError(f"the model's inputs have {config.channels} channels: the page shows pictures of one")
    if config.mapping != "ladder":
        raise ValueError(f"the model has mapping={config.mapping!r}: the page runs the Ladder only")
    if config.group_attention:
        raise ValueError("the model's groups talk (group_attention): the page runs models without that")
    if max(config.shape) > MAX_SIDE:
        raise ValueError(f"the model's inputs have shape {config.shape}: the page shows at most {MAX_SIDE} a side")


def as_tensors(**arrays: Array) -> bytes:
    """Arrays as the content of a safetensors file."""
    return save({name: torch.from_numpy(array).contiguous() for name, array in arrays.items()})


def _shown(model: Tagger, folder: Path | None, name: str, run: Config | None, scenes: Scenes | None) -> ShownModel:
    own = _own_scenes(run) if scenes is None else scenes
    if own is not None and own.shape != model.config.shape:
        raise ValueError(f"the scenes have shape {own.shape}, but the model's inputs have {model.config.shape}")
    world = "own" if own is not None else _world(model.config)
    digits = 1 if _recipe(folder, run).startswith("texture-mnist-1") else 2
    objects = {"shapes": run.data.objects if run is not None else 3, "textures": digits, "own": 0}[world]
    weights: Content
    card: Content
    if folder is not None and not _unfrozen(model.config):
        weights, card = folder / WEIGHTS, folder / CARD
    else:
        if _unfrozen(model.config):
            model = deepcopy(model).freeze_statistics(_to_freeze_on(model.config, world, objects, own))
        weights, card = _saved(model)
    return ShownModel(name, weights, card, world, objects, None if own is None else _packed(own))


def _run_of(folder: Path) -> Config | None:
    """The configuration of the run that a model lies in."""
    return read_config(folder.parent) if (folder.parent / "config.json").is_file() else None


def _recipe(folder: Path | None, run: Config | None) -> str:
    if run is not None:
        return run.data.name
    return "" if folder is None else str(read_card(folder).get("recipe", ""))


def _world(config: TaggerConfig) -> World:
    """The scenes that the page can make for inputs like these."""
    height, width = config.shape
    if config.kind == "binary" and height == width >= SMALLEST["small"]:
        return "shapes"
    if config.kind == "real" and config.shape == (SIDE, SIDE):
        return "textures"
    if config.kind == "binary":
        return "own"  # an empty canvas to draw on
    raise ValueError(f"no scenes of shape {config.shape} are known: give scenes of your own to look at")


def _own_scenes(run: Config | None) -> Scenes | None:
    """The validation scenes of a run on a user's own file, where the file is there, or on permuted pictures."""
    if run is None or (run.data.name in BUILT_IN and not run.data.permuted):
        return None
    if run.data.name not in BUILT_IN and not Path(run.data.name).is_file():
        return None
    scenes = load_split(run.data, "valid")
    return scenes[: max(1, min(OWN_SCENES, OWN_BYTES // (4 * scenes.x[0].size)))]


def _unfrozen(config: TaggerConfig) -> bool:
    return config.norm == "batch" and not config.frozen_iterations


def _to_freeze_on(config: TaggerConfig, world: World, objects: int, own: Scenes | None) -> Array:
    """Scenes for the statistics of a BatchNorm model: training scenes where the page can make them."""
    x: Array
    if world == "shapes":
        style = "paper" if config.shape[0] >= SMALLEST["paper"] else "small"
        x = data.shapes(FREEZE_ON, 0, objects if style == "paper" else 2, config.shape[0], style=style).x
    elif world == "textures":
        images, labels = data.fixture_digits("train")
        x = data.texture_mnist(objects, "train", 0, images=images, labels=labels, n=FREEZE_ON).x
    elif own is not None and len(own) > 1:
        x = own.x
    else:
        raise ValueError(
            "this BatchNorm model has no frozen statistics and no scenes to take them from: call freeze_statistics"
        )
    return x


def _saved(model: Tagger) -> tuple[bytes, bytes]:
    """The files that ``save`` writes, in memory."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)
        return (Path(folder) / WEIGHTS).read_bytes(), (Path(folder) / CARD).read_bytes()


def _packed(scenes: Scenes) -> bytes:
    x = scenes.x.astype("uint8" if scenes.kind == "binary" else "float32")
    arrays: dict[str, Array] = {"x": x}
    if scenes.groups is not None:
        arrays["groups"] = scenes.groups.astype("uint8")
    if scenes.classes is not None:
        arrays["classes"] = scenes.classes.astype("int32")
    return as_tensors(**arrays)
