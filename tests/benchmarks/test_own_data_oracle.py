"""The oracles of own data know how scenes are made: against the scenes, and a brute force over paths."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def oracle() -> ModuleType:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import own_data_oracle
    finally:
        sys.path.remove(str(BENCHMARKS))
    module: ModuleType = own_data_oracle
    return module


@pytest.mark.parametrize(("kind", "least"), [("letters", 0.999), ("tones", 0.98), ("signals", 0.85), ("baskets", 0.8)])
def test_who_knows_how_scenes_are_made_finds_their_groups(kind: str, least: float, oracle: ModuleType) -> None:
    scenes = oracle.make(kind, 20, seed=3)
    assert oracle.ami(scenes, oracle.ORACLES[kind]) > least


def test_the_cheapest_path_is_that_of_all_paths(oracle: ModuleType) -> None:
    costs = np.random.default_rng(0).random((8, 2))

    def price(path: tuple[int, ...]) -> float:
        return float(costs[np.arange(8), path].sum() + 0.3 * np.abs(np.diff(path)).sum())

    best = min(product((0, 1), repeat=8), key=price)
    assert oracle._path(costs, 0.3).tolist() == list(best)
