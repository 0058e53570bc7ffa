"""Tetrominoes and sprites as they were published, and what their recipes share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from taggernet.config.run import differing_fields
from taggernet.recipes import recipe
from taggernet.training.datasets import load_split


def test_sizes_and_numbers_of_objects_are_the_published_ones() -> None:
    for name, size, objects, fewest in (("tetrominoes", 35, 3, 0), ("sprites", 64, 5, 2)):
        c = recipe(name)
        assert (c.data.size, c.data.objects, c.data.min_objects) == (size, objects, fewest)
        assert c.groups == c.test_groups == objects + 1, "a group for each object and one for the background"


def test_z_starts_at_the_mean_or_at_the_background() -> None:
    c = recipe("tetrominoes")
    scenes = load_split(replace(c.data, train=500), "train")
    assert scenes.x.mean() == pytest.approx(c.model.mean, abs=0.015)
    model = recipe("sprites").model
    assert (model.origin, model.mean) == ("scene", 0)


def test_variants_differ_in_their_data_and_in_what_keeps_their_masks() -> None:
    colour, one, texture = (recipe(name) for name in ("sprites", "sprites-one-colour", "sprites-texture"))
    starts = ("place_weight", "start_apart", "start_sizes", "start_smooth")
    masks = {f"model.{name}" for name in (*starts, "tie", "masks", "v_start")}
    masks |= {"test_starts", *(f"optimiser.{name}" for name in ("updates", "warmup", "v_rate"))}
    assert set(differing_fields(one, texture)) <= {"recipe", "data.variant", *masks}
    assert set(differing_fields(colour, one)) <= {"recipe", "data.variant", *masks}
    flat = (recipe(name) for name in ("sprites-ladder", "sprites-ladder-permuted"))
    assert set(differing_fields(*flat)) == {"recipe", "data.permuted"}
