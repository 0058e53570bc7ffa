"""A configuration whose model does not fit its data is refused before a run begins."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from taggernet.config.run import DataConfig
from taggernet.data import Scenes
from taggernet.recipes import RECIPES, recipe
from taggernet.training.validation import check_built_in, check_data

SMALL = recipe("small")


FIXED = replace(SMALL, data=replace(SMALL.data, mode="fixed"))


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_fits_its_data(name: str) -> None:
    check_data(recipe(name))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"shape": (5, 5)}, r"the scenes have shape \(12, 12\), but the model's inputs have \(5, 5\)"),
        ({"shape": (145,)}, r"but the model's inputs have \(145,\)"),
    ],
)
def test_another_shape_is_refused(model: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_data(replace(SMALL, model=replace(SMALL.model, **model)))


def test_a_shape_of_as_many_elements_fits() -> None:
    check_data(replace(SMALL, model=replace(SMALL.model, shape=(144,))))


def test_real_scenes_do_not_fit_a_binary_model_but_binary_ones_fit_a_real_one() -> None:
    real = Scenes.of(np.full((30, 12, 12), 0.5))
    with pytest.raises(ValueError, match="train with kind=real"):
        check_data(FIXED, real)
    check_data(replace(FIXED, model=replace(FIXED.model, kind="real")), Scenes.of(np.eye(144).reshape(144, 12, 12)))


@pytest.mark.usefixtures("without_typecheck")
def test_an_array_has_to_become_scenes() -> None:
    with pytest.raises(TypeError, match=r"scenes is of type ndarray: give Scenes\.of\(x\)"):
        check_data(SMALL, np.zeros((30, 12, 12)))  # type: ignore[arg-type]


def test_fresh_scenes_of_ones_own_data_are_refused() -> None:
    with pytest.raises(ValueError, match=r"mode=fresh draws new scenes, .* set mode to fixed"):
        check_data(SMALL, Scenes.of(np.eye(144).reshape(144, 12, 12)))


def test_classes_that_the_model_does_not_have_are_refused() -> None:
    config = replace(FIXED, model=replace(FIXED.model, classes=3), class_cost=0.5)
    scenes = Scenes(np.eye(144).reshape(144, 12, 12), None, np.arange(144) % 3, "binary")
    check_data(config, scenes)
    with pytest.raises(ValueError, match=r"classes holds 5, but the model has classes=3, .* set classes to 6"):
        check_data(config, replace(scenes, classes=np.arange(144) % 6))


def test_a_classification_cost_needs_labels() -> None:
    config = replace(SMALL, model=replace(SMALL.model, classes=3), class_cost=0.5)
    with pytest.raises(ValueError, match="labels=0: say how many training scenes have labels"):
        check_data(config)


@pytest.mark.parametrize("name", ["shapes", "tetrominoes", "sprites"])
def test_a_classification_cost_needs_scenes_with_classes(name: str) -> None:
    config = next(make() for make in RECIPES.values() if make().data.name == name)
    model = replace(config.model, classes=3)
    with pytest.raises(ValueError, match=f"{name} scenes have no classes: set it to 0"):
        check_data(replace(config, model=model, class_cost=0.5, data=replace(config.data, labels=1_000_000)))


@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_scene_has_one_or_two_classes(width: int) -> None:
    """No error is defined for more, so that the first evaluation would fail."""
    config = replace(FIXED, model=replace(FIXED.model, classes=3), class_cost=0.5)
    scenes = Scenes(np.eye(144).reshape(144, 12, 12), None, np.zeros((144, width), np.int64), "binary")
    with nullcontext() if width < 3 else pytest.raises(ValueError, match=r"shape \(144, 3\), .* give \(n,\)"):
        check_data(config, scenes)


@pytest.mark.parametrize("name", ["valid", "test"])
def test_a_built_in_data_set_has_scenes_in_every_split(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}=0 is out of range: give an integer of at least 1"):
        check_built_in(replace(SMALL.data, **{name: 0}))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (DataConfig(name="tetrominoes", size=20), "size=20 is not a multiple of 7"),
        (DataConfig(name="tetrominoes", size=35, objects=5), "objects=5 is out of range"),
        (DataConfig(name="sprites", size=9), "size=9 is out of range"),
        (DataConfig(name="sprites", size=16, objects=3, min_objects=4), "min_objects=4 is out of range"),
        (DataConfig(min_objects=4), "min_objects=4 is out of range: give an integer from 0 to 3"),
    ],
)
def test_scenes_that_cannot_be_made_are_refused(data: DataConfig, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_built_in(data)


def test_objects_that_would_hide_each_other_are_refused() -> None:
    check_built_in(replace(SMALL.data, objects=5))
    with pytest.raises(ValueError, match="objects=99 is too many: only about 6 of them are visible on 12 x 12"):
        check_built_in(replace(SMALL.data, objects=99))
