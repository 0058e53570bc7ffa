"""The scenes that the page offers: from a test set, made at random, or drawn by hand.

# H, W height and width of a scene · D digits

Which of the paper's data sets a model belongs to is read off its input: square binary ones are Shapes, real ones of
28 x 28 are TextureMNIST. Every other model shows the scenes it is given, or, if binary, what is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from taggernet import data
from taggernet.arrays import Array
from taggernet.config.model import TaggerConfig
from taggernet.config.validate import check_count
from taggernet.data import Scenes
from taggernet.data.shapes import KINDS, shape_masks
from taggernet.data.textures import GRID, MOVE, SIDE, compose

MAX_OBJECTS = 5
TEST_SCENES = 1000
MAX_SIDE = 128
"""The longest side of a scene that the page shows: beyond it neither canvas nor pictures are of use."""
SMALLEST = {"paper": 16, "small": 7}
"""The smallest canvas on which each style of Shapes is used."""


@dataclass(frozen=True, eq=False)
class Scene:
    """One scene, with its truth where there is one."""

    x: Array
    title: str
    groups: Array | None = None
    classes: tuple[int, ...] = ()


@runtime_checkable
class Source(Protocol):
    """Where a page's scenes come from."""

    name: str
    test: Scenes | None
    """The scenes to pick from."""
    things: str
    """What a random scene is made of, in the plural; '' if none can be made."""
    pens: tuple[str, ...]
    """What can be drawn with; () if nothing can be drawn."""
    stamps: dict[str, Array]
    """Masks that can be put down whole."""

    def random(self, objects: int, seed: int) -> Scene: ...

    def drawn(self, cells: Array, seed: int) -> Scene: ...


class ShapeScenes:
    """Shapes in the paper's style, or the small one where that does not fit."""

    things = "shapes"
    pens: tuple[str, ...] = ("Pen",)

    def __init__(self, size: int) -> None:
        self.size = size
        self.style = "paper" if size >= SMALLEST["paper"] else "small"
        objects = 3 if self.style == "paper" else 2
        self.name = f"Shapes, {size} × {size}"
        self.test: Scenes | None = data.shapes(TEST_SCENES, 0, objects, size, style=self.style, split="test")
        self.stamps = {kind.capitalize(): mask for kind, mask in zip(KINDS, shape_masks(self.style), strict=True)}

    def random(self, objects: int, seed: int) -> Scene:
        made = data.shapes(1, seed, objects, self.size, style=self.style, split="valid")
        assert made.groups is not None
        return Scene(made.x[0], _of(objects, "random shape"), made.groups[0])

    def drawn(self, cells: Array, seed: int) -> Scene:
        return Scene((cells > 0).astype(np.uint8), "drawn by hand")


class TextureScenes:
    """TextureMNIST of MNIST's test digits, or of those that travel with the package where MNIST is absent."""

    things = "digits"
    pens: tuple[str, ...] = ("Digit below", "Digit above")

    def __init__(self, digits: int = 2, images: Array | None = None, labels: Array | None = None) -> None:
        whole = images is None
        if images is None or labels is None:
            try:
                images, labels = data.mnist("test", download=False)
            except FileNotFoundError:
                images, labels = data.fixture_digits("test")
                whole = False
        self.digits = digits
        self.stamps: dict[str, Array] = {}
        self.name = f"TextureMNIST{digits}" + ("" if whole else ", the package's own digits")
        self.images, self.labels = images, labels
        self.test: Scenes | None = data.texture_mnist(digits, "test", 0, images=images, labels=labels, n=TEST_SCENES)
        self._bank = data.texture_bank().numpy()

    def random(self, objects: int, seed: int) -> Scene:
        """One digit as it is, two moved apart as in the data set, more moved at random."""
        chance = np.random.default_rng(seed)
        chosen = chance.integers(len(self.images), size=objects)
        moves = {1: np.zeros((1, 2), int), 2: np.array([[-MOVE, -MOVE], [MOVE, MOVE]])}.get(
            objects, chance.integers(-2 * MOVE, 2 * MOVE + 1, size=(objects, 2))
        )
        opacity = [_moved(self.images[i] / 255, *move) for i, move in zip(chosen, moves.tolist(), strict=True)]
        classes = tuple(int(self.labels[i]) for i in chosen)
        return self._textured(np.stack(opacity), chance, _of(objects, "random digit"), classes)

    def drawn(self, cells: Array, seed: int) -> Scene:
        """Each pen's strokes as a digit with a texture of its own; what is not drawn on is background."""
        pens = [pen for pen in range(1, len(self.pens) + 1) if (cells == pen).any()] or [1]
        opacity = np.stack([(cells == pen).astype(float) for pen in pens])
        return self._textured(opacity, np.random.default_rng(seed), "drawn by hand")

    def _textured(
        self, opacity: Array, chance: np.random.Generator, title: str, classes: tuple[int, ...] = ()
    ) -> Scene:
        layers = len(opacity) + 1
        corners = chance.integers(GRID - SIDE + 1, size=(layers, 2))
        textures = [
            self._bank[texture, row : row + SIDE, col : col + SIDE]
            for texture, (row, col) in zip(chance.permutation(len(self._bank))[:layers], corners, strict=True)
        ]
        x, groups = compose(_flat(opacity), _flat(np.stack(textures)))
        return Scene(x.numpy().reshape(SIDE, SIDE), title, groups.numpy().reshape(SIDE, SIDE), classes)


class OwnScenes:
    """A user's scenes, and for binary ones a canvas."""

    things = ""

    def __init__(self, scenes: Scenes | None, kind: str) -> None:
        self.test = scenes
        self.stamps: dict[str, Array] = {}
        self.name = "your scenes" if scenes is not None else "what you draw"
        self.pens: tuple[str, ...] = ("Pen",) if kind == "binary" else ()

    def random(self, objects: int, seed: int) -> Scene:
        raise ValueError("random scenes cannot be made for this model: pick one of the test set")

    def drawn(self, cells: Array, seed: int) -> Scene:
        return Scene((cells > 0).astype(np.uint8), "drawn by hand")


def check_shape(config: TaggerConfig) -> None:
    """The page shows pictures, and none that are too large."""
    if len(config.shape) != 2:
        raise ValueError(f"the model's inputs have shape {config.shape}: the page shows pictures, of shape (H, W)")
    if config.channels > 1:
        raise ValueError(f"the model's inputs have {config.channels} channels: the page shows pictures of one")
    if max(config.shape) > MAX_SIDE:
        raise ValueError(f"the model's inputs have shape {config.shape}: the page shows at most {MAX_SIDE} a side")


def source_for(config: TaggerConfig, scenes: Scenes | None = None, digits: int = 2) -> Source:
    """The scenes that fit a model, or one clear sentence."""
    check_shape(config)
    if scenes is not None:
        if scenes.shape != config.shape:
            raise ValueError(f"the scenes have shape {scenes.shape}, but the model's inputs have {config.shape}")
        return OwnScenes(scenes, config.kind)
    height, width = config.shape
    if config.kind == "binary" and height == width >= SMALLEST["small"]:
        return ShapeScenes(height)
    if config.kind == "real" and config.shape == (SIDE, SIDE):
        return TextureScenes(digits)
    if config.kind == "real":
        raise ValueError(f"no test set of shape {config.shape} is known: give scenes of your own to look at")
    return OwnScenes(None, config.kind)


def picked(source: Source, index: object) -> Scene:
    """A scene of the test set, counted from 0."""
    if source.test is None:
        raise ValueError("this model has no test set here: draw a scene")
    number = check_count("scene", index, low=0, high=len(source.test) - 1)
    one = source.test[number]
    classes = () if one.classes is None else tuple(int(c) for c in np.atleast_1d(one.classes[0]) if c >= 0)
    return Scene(one.x[0], f"test scene {number}", None if one.groups is None else one.groups[0], classes)


def made(source: Source, objects: object, seed: object) -> Scene:
    """A random scene of 1 to 5 objects."""
    return source.random(check_count("objects", objects, low=1, high=MAX_OBJECTS), check_count("seed", seed))


def drawn(source: Source, shape: tuple[int, ...], text: object, seed: object) -> Scene:
    """The scene of a canvas: one character per cell, 0 for paper, else the number of the pen."""
    if not source.pens:
        raise ValueError("scenes cannot be drawn for this model: pick one of the test set")
    allowed = "".join(str(pen) for pen in range(len(source.pens) + 1))
    size = shape[0] * shape[1]
    if not isinstance(text, str) or len(text) != size or text.strip(allowed):
        raise ValueError(f"the drawing must be {size} characters of {allowed}: draw it on the canvas")
    cells = np.frombuffer(text.encode(), np.uint8).reshape(shape) - ord("0")
    return source.drawn(cells, check_count("seed", seed))


def as_cells(x: Array) -> str:
    """A binary scene as the canvas holds it."""
    return "".join("1" if value > 0 else "0" for value in x.flatten())


def _of(count: int, thing: str) -> str:
    return f"{count} {thing}{'s' if count > 1 else ''}"


def _moved(image: Array, down: int, right: int) -> Array:
    """The image moved and cropped, zeros coming in."""
    room = max(abs(down), abs(right))
    wide = np.pad(image, room)
    return wide[room - down : room - down + SIDE, room - right : room - right + SIDE]


def _flat(layers: Array) -> Any:
    return torch.from_numpy(layers.astype(np.float32)).flatten(-2)
