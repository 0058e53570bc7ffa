"""Every recipe is whole, and names that are wrong get help. tests/training/test_golden.py trains all of them."""

from __future__ import annotations

import pytest

from taggernet.recipes import RECIPES, recipe, summary


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_explained_and_its_parts_fit(name: str) -> None:
    assert summary(name).endswith(".")
    config = recipe(name)
    side = 28 if config.data.name.startswith("texture") else config.data.size
    assert config.model.shape == (side, side)
    assert config.data.train >= config.optimiser.batch
    assert bool(config.class_cost) == bool(config.data.labels) == bool(config.model.classes)
    assert config.model.kind == ("binary" if config.data.name in ("shapes", "tetrominoes") else "real")
    assert config.model.channels == (3 if config.data.name in ("tetrominoes", "sprites") else 1)


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("shape", "shapes"), ("Small", "small"), ("shapes_layernorm", "shapes-layernorm"),
     ("texture-mnist2", "texture-mnist-2")],
)  # fmt: skip
def test_an_unknown_name_suggests_the_nearest(wrong: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"there is no recipe '{wrong}': did you mean {meant}\\?"):
        recipe(wrong)


def test_a_name_like_none_lists_them_all() -> None:
    with pytest.raises(ValueError, match="choose one of shapes, ") as caught:
        recipe("qqqq")
    assert all(name in str(caught.value) for name in RECIPES)
