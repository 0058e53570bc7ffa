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


def test_of_speech_only_other_recordings_are_known(oracle: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each word was recorded twice: the oracle knows the other time, and not what nobody said again."""
    random = np.random.default_rng(0)
    words = random.random((8, 5, 6)) * (random.random((8, 5, 6)) < 0.4)
    again = words * random.uniform(0.8, 1.25, words.shape)
    scene, wanted = np.log(0.03 + words[0] + words[3]), (words[0] < words[3]).astype(int)
    heard = (words[0] > 0) | (words[3] > 0)
    monkeypatch.setattr(oracle, "_recordings", lambda bands, frames: np.concatenate([words, again]))
    found = oracle.spoken_digits(scene[None], likely=6)[0]
    assert (found == wanted)[heard].mean() in (0.0, 1.0), "up to the names of the groups"
    monkeypatch.setattr(oracle, "_recordings", lambda bands, frames: words)
    lost = oracle.spoken_digits(scene[None], likely=6)[0]
    assert 0 < (lost == wanted)[heard].mean() < 1
