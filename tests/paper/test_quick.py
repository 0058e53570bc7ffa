"""Runs at another size: every recipe becomes small, and nothing else of it changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paper.quick import quick_config, sized_config
from taggernet.recipes import RECIPES, recipe


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_at_toy_size(name: str) -> None:
    full, small = recipe(name), quick_config(recipe(name))
    assert max(small.model.widths) <= 80
    assert len(small.model.widths) == len(full.model.widths)
    assert (small.data.train, small.data.valid, small.data.test) <= (400, 100, 100)
    assert small.optimiser.updates == small.optimiser.batch == 20
    assert bool(small.data.labels) == bool(full.data.labels)
    assert small.data.labels <= small.data.train
    assert small.data.labels % 10 == 0, "as many of each class"
    assert (small.data.digits == "fixture") == name.startswith("texture"), "no MNIST is needed"


def test_nothing_but_the_size_changes() -> None:
    full = recipe("texture-mnist-2-labels-1k")
    small = quick_config(full)
    back = replace(
        small,
        model=replace(small.model, widths=full.model.widths, class_widths=full.model.class_widths),
        data=full.data,
        optimiser=replace(
            small.optimiser,
            **{name: getattr(full.optimiser, name) for name in ("batch", "updates", "warmup", "lower_wait")},
        ),
        runtime=full.runtime,
    )
    assert back == full
    assert small.data.mode == full.data.mode


def test_seeds_and_device_are_set_at_any_size() -> None:
    full, small = (sized_config(recipe("shapes"), 3, "cpu", quick) for quick in (False, True))
    assert (full.seeds, full.runtime.device) == (small.seeds, small.runtime.device) == (3, "cpu")
    assert full == replace(recipe("shapes"), seeds=3, runtime=full.runtime)
    assert small == quick_config(full)
