"""The paper's numbers are what the recipes say. tests/training/test_golden.py trains every one of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from taggernet.recipes import RECIPES, recipe, summary
from taggernet.training.datasets import load_split


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


def test_the_papers_recipes() -> None:
    """Batch 100, K = 4, T = 3 and 5, or 4 with labels; epochs x scenes / batch updates."""
    for name, widths, epochs, rate, noise, schedule in (
        ("shapes", (2000, 1000, 500), 100, 4e-4, 0.2, "constant"),
        ("shapes-layernorm", (2000, 1000, 500), 100, 4e-4, 0.2, "cosine"),
        ("texture-mnist-1", (3000, 2000, 1000), 150, 1e-3, 0.2, "constant"),
        ("texture-mnist-2", (3000, 2000, 1000), 150, 1e-3, 0.2, "constant"),
        ("texture-mnist-2-labels-1k", (3000, 2000, 1000, 500, 250), 40, 1e-3, 0.15, "cosine"),
        ("texture-mnist-1-labels-50k", (3000, 2000, 1000, 500, 250), 40, 5e-4, 0.18, "cosine"),
        ("texture-mnist-2-reader-labels-50k", (3000, 2000, 1000), 50, 1e-3, 0.18, "cosine"),
    ):
        c = recipe(name)
        assert (c.model.widths, c.optimiser.lr, c.model.noise) == (widths, rate, noise), name
        assert c.optimiser.updates == epochs * c.data.train // c.optimiser.batch, name
        assert (c.optimiser.batch, c.data.valid, c.data.test) == (100, 10_000, 10_000)
        assert c.data.train in (50_000, 60_000)
        test_iterations = 4 if name.endswith("labels-1k") or name == "texture-mnist-1-labels-50k" else 5
        assert (c.iterations, c.test_iterations) == (4 if c.class_cost else 3, test_iterations), name
        assert (c.groups, c.test_groups, c.optimiser.schedule, c.data.mode) == (4, 4, schedule, "fixed")
        assert c.data.depth == "up-left"
        assert c.data.label_subset == ("per-seed" if c.class_cost else "shared")
    assert recipe("shapes").model.norm == "batch"
    assert recipe("shapes-layernorm").model.norm == "layer"
    assert recipe("texture-mnist-2-labels-1k").data.labels == 1_000
    assert recipe("texture-mnist-2-labels-1k").model.classes == 10


def test_the_start_of_z_is_the_mean_of_the_data() -> None:
    for name in ("shapes", "small", "tetrominoes"):
        c = recipe(name)
        scenes = load_split(replace(c.data, train=4000 if c.model.channels == 1 else 500), "train")
        assert scenes.x.mean() == pytest.approx(c.model.mean, abs=0.015), name
    model = recipe("sprites").model
    assert (model.origin, model.mean) == ("scene", 0), "z starts at the background of each scene"


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
