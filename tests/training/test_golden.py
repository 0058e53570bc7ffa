"""Every recipe, trained at toy size, follows its stored loss curve: a silent change of the mathematics shows here.

After a change that is meant: ``python tests/helpers/toys.py`` writes them again.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from toys import GOLDEN, STEPS, curve, records, shrunk

from taggernet.recipes import RECIPES
from taggernet.tagger import Tagger

EARLY, EARLY_OF_MASKS, CLOSE, ROUGH = 8, 5, 2e-5, 2e-2
"""Sums are rounded otherwise on another CPU, and every update makes more of it: so many of them are compared closely,
fewer where a class head sees masks through convolutions. A mapping of convolutions and scenes that k-means starts from
are rough from the first on."""


@pytest.mark.parametrize("name", RECIPES)
def test_recipe_follows_its_golden_curve(name: str, tmp_path: Path) -> None:
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    found = curve(name, tmp_path)
    assert set(found) == set(golden)
    config = shrunk(name)
    early = EARLY_OF_MASKS if config.model.class_conv_channels else EARLY
    if config.model.mapping == "conv" or config.model.start != "random":
        early = 0
    for key, values in golden.items():
        assert len(values) == STEPS
        assert found[key][:early] == pytest.approx(values[:early], rel=CLOSE, abs=CLOSE), key
        assert found[key][early:] == pytest.approx(values[early:], rel=ROUGH, abs=CLOSE), key
    assert config.recipe == name
    metrics = records(tmp_path)[-1]["valid"]
    assert {"cost", "ami", "ami_arithmetic", "ari"} <= set(metrics)
    assert ("error" in metrics) == bool(config.class_cost)
    assert len(metrics["cost"][0]) == config.test_iterations
    model = Tagger.load(tmp_path / "seed-0")
    assert model.config == config.model
    assert all(torch.isfinite(weights).all() for weights in model.parameters())


def test_no_curve_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(RECIPES)
