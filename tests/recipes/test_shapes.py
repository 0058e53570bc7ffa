"""The paper's numbers are what the recipes of Shapes say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from taggernet.recipes import recipe
from taggernet.training.datasets import load_split


@pytest.mark.parametrize(
    ("name", "norm", "schedule"), [("shapes", "batch", "constant"), ("shapes-layernorm", "layer", "cosine")]
)
def test_the_papers_rows(name: str, norm: str, schedule: str) -> None:
    """Batch 100, K = 4, T = 3 and 5; 100 epochs of 60,000 scenes."""
    c = recipe(name)
    assert (c.model.widths, c.model.noise, c.model.norm) == ((2000, 1000, 500), 0.2, norm)
    assert (c.optimiser.lr, c.optimiser.batch, c.optimiser.schedule) == (4e-4, 100, schedule)
    assert c.optimiser.updates == 100 * c.data.train // c.optimiser.batch
    assert (c.data.mode, c.data.train, c.data.valid, c.data.test) == ("fixed", 60_000, 10_000, 10_000)
    assert (c.groups, c.test_groups, c.iterations, c.test_iterations, c.test_starts) == (4, 4, 3, 5, 1)


@pytest.mark.parametrize("name", ["shapes", "small", "shapes-any"])
def test_the_start_of_z_is_the_mean_of_the_data(name: str) -> None:
    c = recipe(name)
    scenes = load_split(replace(c.data, train=4000), "train")
    assert scenes.x.mean() == pytest.approx(c.model.mean, abs=0.015)
