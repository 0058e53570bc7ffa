"""The benchmark of own data: records of several seeds are one, and what was not measured again stays."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def own_data() -> ModuleType:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return importlib.import_module("own_data")
    finally:
        sys.path.remove(str(BENCHMARKS))


def record(seed: int) -> dict[str, object]:
    tagger = {"ami": [0.5 + 0.1 * seed], "seconds_tuning": [10.0 * seed], "seconds_training": [1.0], "updates": [3]}
    trials = [{"seed": seed, "score": 0.1, "ami": 0.2}, {"seed": seed, "score": 0.3, "ami": 0.4}]
    return {"kind": "grey", "tagger": {**tagger, "trials": trials}, "classical": {"NMF": {"ami": [0.1 * seed]}}}


def test_seeds_that_were_measured_apart_are_one_record(own_data: ModuleType) -> None:
    found = own_data.joined([record(0), record(1), record(2)])
    assert found["tagger"]["ami"] == pytest.approx([0.5, 0.6, 0.7])
    assert found["tagger"]["seconds_tuning"] == [0.0, 10.0, 20.0]
    assert found["tagger"]["updates"] == [3, 3, 3]
    assert [trial["seed"] for trial in found["tagger"]["trials"]] == [0, 0, 1, 1, 2, 2]
    assert found["classical"]["NMF"]["ami"] == pytest.approx([0.0, 0.1, 0.2])
    assert own_data.joined([record(1)]) == record(1)
    assert "Tagger 0.600 +- 0.100 in 1 s" in own_data.words(found)


def test_a_part_that_is_not_measured_again_stays(own_data: ModuleType, tmp_path: Path) -> None:
    own_data.save(tmp_path, record(0))
    own_data.save(tmp_path, {"kind": "grey", "classical": {"ICA": {"ami": [1.0]}}})
    found = json.loads((tmp_path / "grey.json").read_text())
    assert found["tagger"] == record(0)["tagger"]
    assert list(found["classical"]) == ["ICA"]
