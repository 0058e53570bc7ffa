"""Where x comes from: generated data sets, MNIST, and arrays of your own."""

from taggernet.data.mnist import fixture_digits, mnist
from taggernet.data.scenes import Scenes, infer_kind, labelled_subset, load
from taggernet.data.shapes import Placements, coincident, fresh_shapes, placements, shapes
from taggernet.data.sprites import fresh_sprites, sprites
from taggernet.data.tetrominoes import fresh_tetrominoes, tetrominoes
from taggernet.data.textures import fresh_texture_mnist, texture_bank, texture_mnist

__all__ = [
    "Placements",
    "Scenes",
    "coincident",
    "fixture_digits",
    "fresh_shapes",
    "fresh_sprites",
    "fresh_tetrominoes",
    "fresh_texture_mnist",
    "infer_kind",
    "labelled_subset",
    "load",
    "mnist",
    "placements",
    "shapes",
    "sprites",
    "tetrominoes",
    "texture_bank",
    "texture_mnist",
]
