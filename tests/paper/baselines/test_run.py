"""Toy training of each baseline, and the record it leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from paper.baselines import BaselineConfig, baseline, quick, run_baseline
from paper.baselines.sources import known_scenes, load_split
from paper.baselines.whitening import Whitening
from taggernet.config.run import OptimiserConfig
from taggernet.data import Scenes
from taggernet.training import Diverged

CPU = torch.device("cpu")


def toy(name: str, **changes: Any) -> BaselineConfig:
    """On the fixture's digits, at a size that learns within seconds."""
    return replace(quick(baseline(name)), device="cpu", **changes)


@pytest.mark.parametrize(
    ("name", "updates", "changes", "bound"),
    [
        ("ladder-mnist-1k", 150, {"widths": (60, 30)}, 0.4),
        ("mlp-texture-mnist-1-50k", 100, {"widths": (60, 60), "data": "mnist"}, 0.3),
        ("convnet-texture-mnist-1-50k", 60, {"widths": (4, 4, 8, 8, 8, 8, 10), "data": "mnist"}, 0.4),
    ],
)
def test_toy_training_learns(name: str, updates: int, changes: dict[str, Any], bound: float) -> None:
    """On plain digits: chance is 0.9. The Ladder has 100 labels, the others 400."""
    optimiser = OptimiserConfig(lr=5e-3, batch=50, updates=updates, schedule="cosine")
    plain: dict[str, Any] = {"whiten": 0.0, "input_noise": 0.1, "layer_noise": 0.1, "lambdas": ()}
    config = toy(name, optimiser=optimiser, evaluate_every=0, seeds=1, **plain, **changes)
    record = run_baseline(config, progress=False)
    assert record["test"]["error"][0][0] < bound


def test_a_record_holds_what_a_table_needs() -> None:
    config = toy("ladder-texture-mnist-2-1k", seeds=2, first_seed=3, select="last")
    record = json.loads(json.dumps(run_baseline(config, progress=False)))
    assert record["seeds"] == [3, 4]
    assert record["config"]["recipe"] == "ladder-texture-mnist-2-1k"
    assert record["config"]["optimiser"]["updates"] == 20
    assert record["environment"]["torch"] == torch.__version__
    assert record["test_scenes"] == 100
    assert 0 < record["training_seconds"] <= record["seconds"]
    assert [point["step"] for point in record["curve"]] == [10, 20]
    assert record["chosen_update"] == [20, 20]
    for part in ("valid", "test"):
        assert np.shape(record[part]["error"]) == (2, 1)
        assert 0 < np.mean(record[part]["error"]) <= 1


@pytest.mark.parametrize("name", ["mlp-texture-mnist-1-1k", "ladder-texture-mnist-2-1k"])
def test_whitening_is_of_the_scenes_that_the_method_knows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same run on scenes that were whitened beforehand."""
    config = toy(name, seeds=1, select="last", whiten=0.0)
    whitened = run_baseline(replace(config, whiten=0.5), progress=False)
    by_hand = Whitening.of(known_scenes(config, load_split(config, "train"), CPU), 0.5)

    def beforehand(config: BaselineConfig, part: str) -> Scenes:
        scenes = load_split(config, part)
        x = by_hand(torch.from_numpy(scenes.x).reshape(len(scenes), -1)).reshape(scenes.x.shape)
        return replace(scenes, x=x.numpy())

    monkeypatch.setattr("paper.baselines.run.load_split", beforehand)
    expected = run_baseline(config, progress=False)
    assert whitened["test"] == expected["test"]
    for point, other in zip(whitened["curve"], expected["curve"], strict=True):
        np.testing.assert_allclose(point["classification"], other["classification"], rtol=1e-3)
        np.testing.assert_allclose(point["denoising"], other["denoising"], rtol=1e-3)


def test_seeds_together_are_the_seeds_alone() -> None:
    config = toy("mlp-texture-mnist-1-50k", seeds=2)
    together = run_baseline(config, progress=False)
    alone = run_baseline(replace(config, seeds=1, first_seed=1), progress=False)
    assert alone["test"]["error"][0] == together["test"]["error"][1]
    np.testing.assert_allclose(
        alone["curve"][-1]["classification"][0], together["curve"][-1]["classification"][1], rtol=1e-4
    )


def test_best_keeps_each_seed_where_validation_was_lowest() -> None:
    optimiser = OptimiserConfig(lr=0.02, batch=20, updates=60)
    config = toy("mlp-texture-mnist-1-50k", optimiser=optimiser, evaluate_every=5, data="mnist", seeds=2)
    record = run_baseline(replace(config, select="best"), progress=False)
    for seed in range(2):
        curve = {point["step"]: point["valid_error"][seed] for point in record["curve"]}
        assert record["chosen_update"][seed] == min(curve, key=lambda step: curve[step])
        assert record["valid"]["error"][seed][0] == pytest.approx(min(curve.values()))


def test_a_cost_that_is_not_finite_ends_the_run() -> None:
    config = toy("ladder-texture-mnist-1-1k", optimiser=OptimiserConfig(lr=1e30, batch=20, updates=20))
    with pytest.raises(Diverged, match="learning rate 1e\\+30 is too high"):
        run_baseline(config, progress=False)


PROGRAM = """
import torch
from dataclasses import replace
from paper.baselines import baseline, quick
from paper.baselines.model import ClassifierObjective, initial_weights, network
from paper.baselines.sources import source, load_split
from taggernet.rng import Key
from taggernet.training.adam import TrainState
from taggernet.training.sources import Part
from taggernet.training.step import Update

config = replace(quick(baseline("ladder-texture-mnist-2-1k-fresh")), widths=(20, 10), lambdas=(), permuted=True)
model, device = network(config), torch.device("cpu")
state = TrainState.fresh(initial_weights(model, config.seed_list, device), ema=False)
batches = source(config, load_split(config, "train"), device)
update = Update(ClassifierObjective(model), batches, state, config.optimiser, Key.of(config.seed_list), Part.of(20))
batches.prepare(0)
def results(trace):
    batch = trace(batches.batch)(update.step)
    return trace(update.cost)(update.adam.weights, batch, update.step)

plain = results(lambda part: part)
traced = results(lambda part: torch.compile(part, fullgraph=True, dynamic=False, backend="eager"))
assert all(torch.equal(one, other) for one, other in zip(plain, traced, strict=True))
print("same")
"""


@pytest.mark.slow
def test_an_update_compiles_without_a_break() -> None:
    """In a process of its own, as the shape checks of the other tests cannot be traced."""
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "same"
