"""Stored loss curves of every recipe at toy size: a silent change of the mathematics shows here.

After a change that is meant: ``python tests/training/toys.py`` writes them again.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from toys import GOLDEN, STEPS, curve

from taggernet.recipes import RECIPES


@pytest.mark.parametrize("name", RECIPES)
def test_recipe_follows_its_golden_curve(name: str, tmp_path: Path) -> None:
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    found = curve(name, tmp_path)
    assert set(found) == set(golden)
    for key, values in golden.items():
        assert len(values) == STEPS
        assert found[key] == pytest.approx(values, rel=2e-5, abs=2e-5), key


def test_no_curve_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(RECIPES)
