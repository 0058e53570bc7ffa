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


@pytest.mark.parametrize("name", RECIPES)
def test_recipe_follows_its_golden_curve(name: str, tmp_path: Path) -> None:
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    found = curve(name, tmp_path)
    assert set(found) == set(golden)
    config = shrunk(name)
    close = 1e-2 if config.model.mapping == "conv" else 2e-5  # sums of convolutions differ from CPU to CPU
    for key, values in golden.items():
        assert len(values) == STEPS
        assert found[key] == pytest.approx(values, rel=close, abs=2e-5), key
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
