"""The baselines of Table 2: their recipes, their data, toy training of each, and the record they leave."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from paper.baselines import BASELINES, BaselineConfig, baseline, fresh, quick, run_baseline
from paper.baselines.classifiers import population_moments
from paper.baselines.model import errors, initial_weights, network
from paper.baselines.recipes import shorthand
from paper.baselines.sources import known_scenes, load_split, source, with_labels
from paper.baselines.whitening import Whitening
from taggernet.config.run import OptimiserConfig
from taggernet.data import Scenes, fixture_digits, texture_mnist
from taggernet.training import Diverged

CPU = torch.device("cpu")


def toy(name: str, **changes: Any) -> BaselineConfig:
    """On the fixture's digits, at a size that learns within seconds."""
    return replace(quick(baseline(name)), device="cpu", **changes)


def test_every_cell_of_table_2_has_a_recipe() -> None:
    cells = {
        f"{method}-texture-mnist-{digits}-{labels}"
        for method in ("mlp", "ladder", "convnet")
        for digits in (1, 2)
        for labels in ("50k", "1k")
    }
    assert cells | {"ladder-mnist-1k"} <= set(BASELINES)
    for name, config in BASELINES.items():
        assert config.recipe == name
        assert name.startswith(f"{config.method}-{config.data}-")
        assert shorthand(config.labels) in name.split("-")
        assert config.permuted == name.endswith("-permuted")
    assert baseline("mlp-texture-mnist-1-50k").widths == (2000, 2000, 2000)
    assert baseline("mlp-texture-mnist-2-1k").widths == (1000, 1000)
    assert baseline("ladder-texture-mnist-2-1k").widths == (3000, 2000, 1000, 500, 250)


def test_fresh_renews_what_a_method_sees() -> None:
    assert {(c.labelled, c.unlabelled) for name, c in BASELINES.items() if name.endswith("-fresh")} == {
        ("fresh", "fresh"),
        ("fresh", "fixed"),
    }
    few = fresh(baseline("ladder-texture-mnist-1-1k"))
    assert (few.labels, few.labelled, few.unlabelled) == (1_000, "fresh", "fresh")
    assert fresh(baseline("convnet-texture-mnist-1-1k")).unlabelled == "fixed"


def test_scenes_are_those_of_tagger() -> None:
    config = toy("mlp-texture-mnist-2-1k")
    images, labels = fixture_digits("train")
    expected = texture_mnist(2, "train", images=images, labels=labels)
    found = load_split(config, "train")
    np.testing.assert_array_equal(found.x, expected.x)
    np.testing.assert_array_equal(np.asarray(found.classes), np.asarray(expected.classes))
    shuffled = load_split(replace(config, permuted=True), "train")
    assert not np.array_equal(shuffled.x, found.x)
    np.testing.assert_array_equal(np.sort(shuffled.x.reshape(400, -1)), np.sort(found.x.reshape(400, -1)))


def test_few_labels_are_balanced_and_all_are_all() -> None:
    config = toy("mlp-texture-mnist-1-1k")
    classes = load_split(config, "train").classes
    assert classes is not None
    assert np.bincount(classes[with_labels(config, classes)]).tolist() == [10] * 10
    assert with_labels(replace(config, labels=400), classes).tolist() == list(range(400))
    with pytest.raises(ValueError, match="there are 400 training scenes"):
        with_labels(replace(config, labels=401), classes)


@pytest.mark.parametrize("digits", [1, 2])
@pytest.mark.parametrize("labelled", ["fixed", "fresh"])
@pytest.mark.parametrize("unlabelled", ["fixed", "fresh"])
@pytest.mark.parametrize("permuted", [False, True])
def test_labelled_batches_hold_only_what_has_labels(
    digits: int, labelled: Any, unlabelled: Any, permuted: bool
) -> None:
    config = toy(
        f"ladder-texture-mnist-{digits}-1k", labelled=labelled, unlabelled=unlabelled, permuted=permuted, seeds=3
    )
    train = load_split(config, "train")
    batches = source(config, train, CPU)
    batches.prepare(0)
    batch = batches.batch(torch.tensor(2))
    assert batch.labelled is not None
    assert batch.classes is not None
    assert batch.x.shape == batch.labelled.shape == (3, 20, 784)
    assert batch.classes.shape == (3, 20, digits)
    assert not torch.equal(batch.labelled[0], batch.labelled[1])
    if labelled == "fixed":
        assert train.classes is not None
        chosen = with_labels(config, train.classes)
        known = {row.tobytes(): c for row, c in zip(train.x[chosen].reshape(len(chosen), -1), chosen, strict=True)}
        for row, classes in zip(batch.labelled[0].numpy(), batch.classes[0].tolist(), strict=True):
            assert classes == np.atleast_1d(train.classes[known[row.tobytes()]]).tolist()


def test_supervised_batches_have_no_unlabelled_scenes() -> None:
    config = toy("mlp-texture-mnist-1-1k")
    batches = source(config, load_split(config, "train"), CPU)
    batches.prepare(0)
    batch = batches.batch(torch.tensor(0))
    assert batch.labelled is None
    assert batch.classes is not None
    assert batch.x.shape[:2] == batch.classes.shape[:2]


@pytest.mark.parametrize(
    ("name", "labelled", "expected"),
    [("ladder", "fixed", 400), ("mlp", "fixed", 100), ("mlp", "fresh", 64), ("convnet", "fixed", 100)],
)
def test_only_the_ladder_knows_scenes_without_labels(name: str, labelled: Any, expected: int) -> None:
    config = toy(f"{name}-texture-mnist-1-1k", labelled=labelled, statistics=64)
    train = load_split(config, "train")
    known = known_scenes(config, train, CPU)
    assert known.shape == (expected, 784)
    if labelled == "fixed" and name != "ladder":
        assert train.classes is not None
        np.testing.assert_array_equal(known, train.x[with_labels(config, train.classes)].reshape(100, -1))
    assert len(known_scenes(replace(config, labels=400), train, CPU)) == 400


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

    monkeypatch.setattr("paper.baselines.run.split", beforehand)
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


def test_errors_are_the_share_of_wrong_digits() -> None:
    """Untrained weights, the same computation by hand."""
    config = toy("mlp-texture-mnist-2-50k")
    model, scenes = network(config), load_split(config, "valid")
    weights = initial_weights(model, [0, 1], CPU)
    x = torch.from_numpy(scenes.x).reshape(len(scenes), -1)
    population = population_moments(model, weights, x)
    found = errors(model, weights, population, scenes, batch=30)
    assert found.shape == (2, 100)
    alone = network(config)
    alone.load_state_dict({name: w[1] for name, w in weights.items()})
    log_p = alone(x, population_moments(alone, dict(alone.named_parameters()), x))
    assert scenes.classes is not None
    for row in range(100):
        first, second = scenes.classes[row]
        best = log_p[row].argsort(descending=True)[:2].tolist()
        by_hand = float(best[0] != first) if first == second else ((first not in best) + (second not in best)) / 2
        assert found[1, row].item() == by_hand


def test_initial_weights_are_a_function_of_the_seed() -> None:
    model = network(toy("convnet-texture-mnist-1-50k"))
    both, alone = initial_weights(model, [5, 6], CPU), initial_weights(model, [6], CPU)
    for name, w in alone.items():
        assert torch.equal(both[name][1], w[0])
    wide = initial_weights(network(baseline("convnet-texture-mnist-1-50k")), [0], CPU)
    assert wide["convolutions.3.weight"].std().item() == pytest.approx((192 * 9) ** -0.5, rel=0.01)
    assert wide["out.weight"].std().item() == pytest.approx(250**-0.5, rel=0.05)


def test_a_cost_that_is_not_finite_ends_the_run() -> None:
    config = toy("ladder-texture-mnist-1-1k", optimiser=OptimiserConfig(lr=1e30, batch=20, updates=20))
    with pytest.raises(Diverged, match="learning rate 1e\\+30 is too high"):
        run_baseline(config, progress=False)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "svm"}, "method='svm' is not known: choose one of mlp, ladder, convnet"),
        ({"data": "cifar"}, "data='cifar' is not known"),
        ({"labels": 0}, "labels=0 must be at least 1"),
        ({"seeds": 0}, "seeds=0 must be at least 1"),
        ({"whiten": -0.1}, "whiten=-0.1 must not be negative"),
        ({"input_noise": -1.0}, "input_noise=-1.0 must not be negative"),
        ({"lambdas": (1.0,)}, "belong to the ladder, not to the mlp"),
        ({"unlabelled": "fresh"}, "belong to the ladder, not to the mlp"),
        ({"data": "mnist", "labelled": "fresh"}, "plain mnist has no compositions"),
    ],
)
@pytest.mark.usefixtures("without_typecheck")
def test_a_wrong_configuration_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        BaselineConfig(**changes)


PROGRAM = """
import torch
from dataclasses import replace
from paper.baselines import baseline, quick
from paper.baselines.model import ClassifierObjective, initial_weights, network
from paper.baselines.sources import source, load_split
from taggernet.rng import Key
from taggernet.training.sources import Part
from taggernet.training.update import TrainState, Update

config = replace(quick(baseline("ladder-texture-mnist-2-1k-fresh")), widths=(20, 10), lambdas=(), permuted=True)
model, device = network(config), torch.device("cpu")
state = TrainState.fresh(initial_weights(model, config.seed_list, device), ema=False)
batches = source(config, load_split(config, "train"), device)
update = Update(ClassifierObjective(model), batches, state, config.optimiser, Key.of(config.seed_list), Part.of(20))
batches.prepare(0)
plain = update._cost(update.live, update.step)
traced = torch.compile(update._cost, fullgraph=True, dynamic=False, backend="eager")(update.live, update.step)
assert all(torch.equal(one, other) for one, other in zip(plain, traced, strict=True))
print("same")
"""


@pytest.mark.slow
def test_an_update_compiles_without_a_break() -> None:
    """In a process of its own, as the shape checks of the other tests cannot be traced."""
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "same"
