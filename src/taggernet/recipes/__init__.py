"""One plain function per kind of run: it returns the whole configuration.

A variant calls another recipe and changes a field. ``RECIPES`` maps the names used on the command line.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial

from taggernet.config.run import Config
from taggernet.recipes.objects import (
    sprites,
    sprites_ladder,
    sprites_ladder_permuted,
    sprites_one_colour,
    sprites_texture,
    tetrominoes,
)
from taggernet.recipes.shapes import (
    shapes,
    shapes_any,
    shapes_any_refined,
    shapes_best,
    shapes_layernorm,
    shapes_permuted,
    shapes_wide,
    small,
)
from taggernet.recipes.texture_mnist import (
    texture_mnist,
    texture_mnist_2_either,
    texture_mnist_2_small,
    texture_mnist_2_small_labels_50k,
    texture_mnist_best,
    texture_mnist_labels,
    texture_mnist_reader,
)

_ALL: tuple[Callable[[], Config], ...] = (
    shapes,
    shapes_layernorm,
    shapes_wide,
    shapes_best,
    shapes_any,
    shapes_any_refined,
    shapes_permuted,
    small,
    partial(texture_mnist, 1),
    partial(texture_mnist, 2),
    *(
        partial(second, digits, labels)
        for second in (texture_mnist_labels, texture_mnist_reader)
        for digits in (1, 2)
        for labels in (1_000, 50_000)
    ),
    *(partial(texture_mnist_best, digits, labels) for digits in (1, 2) for labels in (100, 1_000, 10_000, 50_000)),
    texture_mnist_2_either,
    texture_mnist_2_small,
    texture_mnist_2_small_labels_50k,
    tetrominoes,
    sprites,
    sprites_one_colour,
    sprites_texture,
    sprites_ladder,
    sprites_ladder_permuted,
)
RECIPES: dict[str, Callable[[], Config]] = {make().recipe: make for make in _ALL}


def summary(name: str) -> str:
    """What a recipe is, in one line."""
    make = RECIPES[name]
    return (getattr(make, "func", make).__doc__ or "").splitlines()[0]


def recipe(name: str) -> Config:
    """The configuration of a recipe by its name."""
    if name not in RECIPES:
        near = difflib.get_close_matches(name, RECIPES, n=1, cutoff=0.6)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(RECIPES)}"
        raise ValueError(f"there is no recipe {name!r}: {hint}")
    return RECIPES[name]()
