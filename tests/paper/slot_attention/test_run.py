"""Slot Attention at toy size: it learns, and is scored like Tagger."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score

from paper.slot_attention import SlotAttentionRun, data_of, of_length, quick_slots, run_slot_attention
from paper.slot_attention.run import SlotObjective, Training, summary_lines
from taggernet.config.run import OptimiserConfig
from taggernet.rng import Key
from taggernet.training.datasets import load_split
from taggernet.training.objective import Batch


def toy(name: str = "tetrominoes", **changes: object) -> SlotAttentionRun:
    run = quick_slots(replace(SlotAttentionRun(data=data_of(name)), device="cpu", progress=False))
    return replace(run, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["tetrominoes", "texture-mnist-2"])
def test_a_record_holds_what_a_table_needs(name: str) -> None:
    record = json.loads(json.dumps(run_slot_attention(toy(name, seeds=2 if name == "tetrominoes" else 1))))
    assert record["slots"] == 4
    assert record["environment"]["torch"] == torch.__version__
    for number, seed in enumerate(record["seeds"]):
        assert seed["seed"] == number
        assert [point["step"] for point in seed["curve"]] == [5, 10]
        assert {"cost", "ami", "ari", "ari_foreground"} <= set(seed["test"])
    mean = np.mean([seed["test"]["ari_foreground"] for seed in record["seeds"]])
    assert record["summary"]["test"]["ari_foreground"]["mean"] == pytest.approx(mean)
    shown = "\n".join(summary_lines(record))
    assert f"ari_foreground {mean:.3f}" in shown
    assert "ms per update" in shown


def test_the_length_of_a_run_sets_its_warm_up_and_its_looks() -> None:
    for updates, warmup, every in ((6_000, 300, 100), (20, 1, 1)):
        run = of_length(SlotAttentionRun(), updates, 1e-3)
        optimiser = run.optimiser
        assert (optimiser.updates, optimiser.warmup, optimiser.lr, run.evaluate_every) == (updates, warmup, 1e-3, every)


def test_toy_training_learns_and_the_test_split_can_be_left_alone() -> None:
    optimiser = OptimiserConfig(lr=2e-3, batch=16, updates=40)
    record = run_slot_attention(toy(optimiser=optimiser, evaluate_every=10, test=False))
    losses = [point["loss"] for point in record["seeds"][0]["curve"]]
    assert losses[-1] < 0.6 * losses[0]
    assert set(record["summary"]) == {"valid"}


def test_scores_are_those_of_scikit_learn_for_the_largest_mask() -> None:
    run = toy()
    scenes = load_split(run.data, "valid")
    training = Training(run, 3, torch.device("cpu"), scenes)
    weights = dict(training.model.named_parameters())
    found = training.score(scenes, weights)
    assert found == training.score(scenes, weights), "scoring starts the slots alike every time"
    torch.manual_seed(3)
    x = torch.from_numpy(scenes.x).flatten(1).float() * 2 - 1
    with torch.no_grad():
        decoded = training.model(x)
    labels = decoded.masks.argmax(1).numpy()
    assert scenes.groups is not None
    true = scenes.groups.reshape(len(scenes), -1)
    ari = [adjusted_rand_score(t[t > 0], p[t > 0]) for t, p in zip(true, labels, strict=True)]
    assert found["ari_foreground"] == pytest.approx(np.mean(ari), abs=1e-6)
    assert found["cost"] == pytest.approx(((decoded.whole.flatten(1) - x) ** 2).mean().item(), rel=1e-5)


def test_the_weights_that_are_best_on_validation_are_scored() -> None:
    """Training on, which makes groups worse here, does not spoil the score."""
    optimiser = OptimiserConfig(lr=2e-3, batch=8, updates=40)
    (seed,) = run_slot_attention(toy(optimiser=optimiser, evaluate_every=4, evaluate_scenes=40))["seeds"]
    scores = {point["step"]: point["valid"]["ari_foreground"] for point in seed["curve"]}
    assert scores[seed["chosen_update"]] == max(scores.values()) > scores[40]
    assert seed["valid"]["ari_foreground"] == pytest.approx(max(scores.values()), abs=1e-6)


def test_the_cost_is_the_squared_error_with_and_without_a_dimension_of_seeds() -> None:
    run = toy()
    model = Training(run, 0, torch.device("cpu"), load_split(run.data, "valid")).model
    objective, key = SlotObjective(model, half=False), Key.of(0)
    x = torch.rand(4, 14 * 14 * 3)
    torch.manual_seed(5)
    plain = objective(Batch(x), key, key).total
    stacked = {f"model.{name}": w[None] for name, w in model.named_parameters()}
    torch.manual_seed(5)
    one = torch.func.functional_call(objective, stacked, (Batch(x[None]), key, key)).total
    torch.manual_seed(5)
    expected = ((model(x * 2 - 1).whole.flatten(1) - (x * 2 - 1)) ** 2).mean()
    torch.testing.assert_close(plain, expected)
    torch.testing.assert_close(one, expected[None])


def test_slots_follow_the_objects() -> None:
    assert [SlotAttentionRun(data=data_of(name)).groups for name in ("sprites", "shapes", "texture-mnist-1")] == [
        6,
        4,
        4,
    ]
    assert SlotAttentionRun(slots=9).groups == 9
    with pytest.raises(ValueError, match="data='clevr' is not known: choose one of shapes"):
        data_of("clevr")
