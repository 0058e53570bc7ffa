"""A finished run is evaluated with its own settings, or with others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from toys import records, toy

import taggernet
from taggernet.data import Scenes
from taggernet.evaluation import evaluate_weights
from taggernet.tagger import Tagger
from taggernet.training.datasets import load_split
from taggernet.training.loop import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two seeds."""
    return taggernet.train(toy(seeds=2), tmp_path_factory.mktemp("run") / "run")


def folder(run: Run) -> Path:
    assert run.folder is not None
    return run.folder


def test_the_validation_split_gives_what_training_recorded(run: Run) -> None:
    found = taggernet.evaluate(folder(run), split="valid", device="cpu")
    assert (found["groups"], found["iterations"], found["objects"]) == (3, 2, 2)
    assert found["seeds"] == ["seed-0", "seed-1"]
    last = records(folder(run))[-1]["valid"]
    assert set(found["figures"]) == set(last)
    for name, values in found["figures"].items():
        np.testing.assert_allclose(values, last[name], rtol=1e-5, atol=1e-6)
    assert taggernet.evaluate(folder(run), device="cpu")["figures"] != found["figures"], "the test split is another"


def test_other_groups_iterations_and_objects(run: Run) -> None:
    found = taggernet.evaluate(folder(run), groups=2, iterations=3, objects=1, device="cpu")
    assert (found["groups"], found["iterations"], found["objects"]) == (2, 3, 1)
    scenes: Scenes = load_split(replace(run.config.data, objects=1), "test")
    model = Tagger(run.config.model)
    expected = evaluate_weights(model, run.weights, scenes, groups=2, iterations=3, batch=10).metrics()
    for name, values in expected.items():
        np.testing.assert_allclose(found["figures"][name], values, rtol=1e-5, atol=1e-6)


def test_a_folder_without_a_finished_model_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes((folder(run) / "config.json").read_bytes())
    with pytest.raises(ValueError, match="holds no finished model: run 'taggernet train' on it until it ends"):
        taggernet.evaluate(tmp_path, device="cpu")


@pytest.mark.parametrize("name", ["groups", "iterations", "objects"])
def test_numbers_below_one_are_refused(name: str, run: Run) -> None:
    with pytest.raises(ValueError, match=f"{name}=0"):
        taggernet.evaluate(folder(run), device="cpu", **{name: 0})
