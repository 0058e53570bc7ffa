"""A model as the page gets it: its two files, BatchNorm's statistics frozen, and the scenes that fit it.

Which scenes fit is read off the run that made the model, or off its card, or off its input: square binary inputs are
Shapes, in colour Tetrominoes; real ones of 28 x 28 are TextureMNIST, in colour Sprites. A user's own data is shown from
its validation split.
"""

from __future__ import annotations

import tempfile
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import save

from taggernet import data
from taggernet.arrays import Array
from taggernet.config.model import TaggerConfig
from taggernet.config.run import DataConfig
from taggernet.data import Scenes
from taggernet.data.sprites import MIN_SIZE
from taggernet.data.tetrominoes import CANVAS
from taggernet.data.textures import SIDE
from taggernet.model_io import CARD, WEIGHTS, read_card, read_model_config
from taggernet.pretrained import SHIPPED, locate
from taggernet.recipes import RECIPES
from taggernet.tagger import Tagger
from taggernet.training.datasets import BUILT_IN, load_split
from taggernet.training.run_dir import data_of

MAX_SIDE = 128
"""The longest side of a scene that the page shows."""
OWN_SCENES, OWN_BYTES = 500, 16 << 20
"""A user's scenes that the page gets, at most, and the bytes that they may take."""
SMALLEST = {"paper": 16, "small": 7}
"""The smallest canvas on which each style of Shapes is used."""
COLOURS = 3
"""Channels of the built-in data sets in colour."""
FREEZE_ON = 1_000
"""Scenes on which a model without frozen statistics is frozen for the page."""

Content = bytes | Path
World = Literal["shapes", "textures", "sprites", "tetrominoes", "own"]
OBJECTS = {"shapes": 3, "textures": 2, "sprites": 5, "tetrominoes": 3, "own": 0}
"""Objects of a test scene where neither a run nor a card says it."""


@dataclass(frozen=True)
class ShownModel:
    """What the page needs of a model."""

    name: str
    weights: Content
    card: Content
    world: World
    """Which scenes the page makes for it; own: those in ``scenes``."""
    objects: int
    """Shapes, digits, sprites or pieces in a test scene, at most."""
    scenes: bytes | None = None
    details: dict[str, Any] = field(default_factory=dict)
    """What else the page's list of models says."""


def shown_model(model: Tagger | str | Path, scenes: Scenes | None = None) -> ShownModel:
    """The model that a user named, or one clear sentence."""
    if isinstance(model, Tagger):
        check_pictures(model.config)
        return _shown(model, None, "model", scenes)
    folder = locate(model)
    config = read_model_config(folder)
    check_pictures(config)
    name = folder.name if folder.parent == SHIPPED else str(model)
    tagger = Tagger.load(folder)  # a damaged file is found here, not in the browser
    return _shown(tagger, folder, name, scenes)


def check_pictures(config: TaggerConfig) -> None:
    """The page shows pictures, and none that are too large."""
    if len(config.shape) != 2:
        raise ValueError(f"the model's inputs have shape {config.shape}: the page shows pictures, of shape (H, W)")
    if max(config.shape) > MAX_SIDE:
        raise ValueError(f"the model's inputs have shape {config.shape}: the page shows at most {MAX_SIDE} a side")


def as_tensors(**arrays: Array) -> bytes:
    """Arrays as the content of a safetensors file."""
    return save({name: torch.from_numpy(array).contiguous() for name, array in arrays.items()})


def _shown(model: Tagger, folder: Path | None, name: str, scenes: Scenes | None) -> ShownModel:
    source = None if folder is None else data_of(folder) or _data_of_recipe(folder)
    own = _own_scenes(source) if scenes is None else scenes
    if own is not None:
        _check_fit(own, model.config)
    world = "own" if own is not None else _world(model.config, source)
    objects, fewest = _objects(world, source)
    weights: Content
    card: Content
    if folder is not None and not model.config.sees_the_batch:
        weights, card = folder / WEIGHTS, folder / CARD
    else:
        if model.config.sees_the_batch:
            model = deepcopy(model).freeze_statistics(_to_freeze_on(model.config, world, objects, own))
        weights, card = _saved(model)
    details = {
        "fewest": fewest,
        "one_colour": source is not None and source.variant == "one-colour",
        "draws": source is None or not source.permuted,
        "background": None if own is None else own.background,
    }
    return ShownModel(name, weights, card, world, objects, None if own is None else _packed(own), details)


def _check_fit(scenes: Scenes, config: TaggerConfig) -> None:
    """Raise ValueError unless the scenes are such as the model takes."""
    if (scenes.shape, scenes.channels) != (config.shape, config.channels):
        given, expected = (
            f"shape {shape}" + (f" with {channels} channels" if channels > 1 else "")
            for shape, channels in ((scenes.shape, scenes.channels), (config.shape, config.channels))
        )
        raise ValueError(f"the scenes have {given}, but the model's inputs have {expected}: give scenes like those")
    if scenes.kind != config.kind and config.kind != "real":
        raise ValueError(
            f"the scenes are {scenes.kind}, but the model's inputs are {config.kind}: give scenes like those"
        )


def _data_of_recipe(folder: Path) -> DataConfig | None:
    """What the recipe that a model's card names is trained on."""
    name = read_card(folder).get("recipe")
    return RECIPES[name]().data if isinstance(name, str) and name in RECIPES else None


def _world(config: TaggerConfig, source: DataConfig | None) -> World:
    """The scenes that the page can make for inputs like these."""
    height, width = config.shape
    square, built_in = height == width, source is None or source.name in BUILT_IN
    if config.kind == "binary" and config.channels == 1 and square and height >= SMALLEST["small"]:
        return "shapes"
    if config.kind == "binary" and config.channels == COLOURS and square and not height % CANVAS and built_in:
        return "tetrominoes"
    if config.kind == "real" and config.channels == COLOURS and square and height >= MIN_SIZE and built_in:
        return "sprites"
    if config.kind == "real" and config.channels == 1 and config.shape == (SIDE, SIDE):
        return "textures"
    if config.kind != "real":
        return "own"  # an empty canvas to draw on
    raise ValueError(f"no scenes of shape {config.shape} are known: give scenes of your own to look at")


def _objects(world: World, source: DataConfig | None) -> tuple[int, int]:
    """Objects in a test scene, at most and at least."""
    if source is not None and source.name == "texture-mnist-1":
        return 1, 1
    if source is not None and source.name == world:
        return source.objects, source.min_objects or source.objects
    return OBJECTS[world], 2 if world == "sprites" else OBJECTS[world]


def _own_scenes(source: DataConfig | None) -> Scenes | None:
    """Validation scenes of a run on a user's own file, where the file is there, and of those that the page cannot make:
    permuted pictures and sprites with textures."""
    if source is None:
        return None
    made = source.name in BUILT_IN and not source.permuted and source.variant != "texture"
    if made or (source.name not in BUILT_IN and not Path(source.name).is_file()):
        return None
    if source.name in BUILT_IN:
        source = replace(source, valid=min(source.valid, OWN_SCENES))
    scenes = load_split(source, "valid")
    return scenes[: max(1, min(OWN_SCENES, OWN_BYTES // (4 * scenes.x[0].size)))]


def _to_freeze_on(config: TaggerConfig, world: World, objects: int, own: Scenes | None) -> Array:
    """Scenes for the statistics of a BatchNorm model: training scenes where the page can make them."""
    x: Array
    if world == "shapes":
        style = "paper" if config.shape[0] >= SMALLEST["paper"] else "small"
        x = data.shapes(FREEZE_ON, 0, objects if style == "paper" else 2, config.shape[0], style=style).x
    elif world == "textures":
        images, labels = data.fixture_digits("train")
        x = data.texture_mnist(objects, "train", 0, images=images, labels=labels, n=FREEZE_ON).x
    elif world == "sprites":
        x = data.sprites(FREEZE_ON, 0, objects, config.shape[0], min_objects=min(2, objects)).x
    elif world == "tetrominoes":
        x = data.tetrominoes(FREEZE_ON, 0, objects, config.shape[0]).x
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
    arrays: dict[str, Array] = {"x": scenes.x.astype("float32" if scenes.kind == "real" else "uint8")}
    if scenes.groups is not None:
        arrays["groups"] = scenes.groups.astype("uint8" if scenes.groups.max() < 256 else "int32")
    if scenes.classes is not None:
        arrays["classes"] = scenes.classes.astype("int32")
    return as_tensors(**arrays)
