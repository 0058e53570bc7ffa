"""Sweeps of second phases: every setting is what a run of its own would be."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from paper.__main__ import main
from paper.phase2_sweep import check_settings, phase2_sweep, ranking
from paper.quick import quick_config
from taggernet.config.run import Config
from taggernet.recipes import recipe
from taggernet.training import Run, train

NAME = "texture-mnist-2-labels-1k"
SEEDS = 2


def tiny(name: str, updates: int) -> Config:
    config = quick_config(recipe(name))
    optimiser = replace(config.optimiser, updates=updates, lower_wait=0)
    runtime = replace(config.runtime, device="cpu", progress=False)
    return replace(config, optimiser=optimiser, runtime=runtime, seeds=SEEDS)


@pytest.fixture(scope="module")
def first() -> Run:
    return train(tiny("texture-mnist-2", 3))


def test_each_setting_is_a_run_of_its_own(first: Run) -> None:
    config = tiny(NAME, 4)
    settings = {
        "as it is": {}, "others": {"lr": 3e-3, "class_cost": 1.0}, "old": {"old_rate": 4.0}, "later": {"old_wait": 2},
        "dropout": {"class_dropout": 0.5}, "little noise": {"noise": 0.05},
    }  # fmt: skip
    record = phase2_sweep(config, first.weights, settings)
    found = record["curve"][-1]
    lower = replace(config.optimiser, lower_layers=3, lower_rate=4.0, v_rate=4.0)
    alone = [
        config,
        replace(config, class_cost=1.0, optimiser=replace(config.optimiser, lr=3e-3)),
        replace(config, optimiser=lower),
        replace(config, optimiser=replace(config.optimiser, lower_wait=2)),
        replace(config, class_dropout=0.5),
        replace(config, model=replace(config.model, noise=0.05)),
    ]
    for setting, other in enumerate(alone):
        metrics = train(other, start=first.weights).metrics
        for metric in ("error", "ami"):
            torch.testing.assert_close(
                torch.tensor(found[metric][setting]), torch.tensor(metrics[metric]), rtol=0, atol=2e-2
            )
    groups = config.test_groups * config.data.valid
    assert [sum(map(sum, counts)) for counts in record["groups"]["counts"]] == [groups] * SEEDS * len(settings)


@pytest.mark.parametrize("name", ["texture-mnist-1-best-labels-50k", "texture-mnist-2-best-labels-1k"])
def test_our_own_recipe_keeps_what_it_minimises(first: Run, name: str) -> None:
    """Distorted masks, twins and a cost that stays in the reader are part of a sweep too."""
    config = replace(tiny(name, 4), test_iterations=4)
    found = phase2_sweep(config, first.weights, {"as it is": {}})["curve"][-1]
    torch.testing.assert_close(
        torch.tensor(found["error"][0]),
        torch.tensor(train(config, start=first.weights).metrics["error"]),
        rtol=0,
        atol=2e-2,
    )


def test_the_command_ranks_settings(
    first: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for seed in range(SEEDS):
        first.model(seed).save(f"first/seed-{seed}")
    Path("settings.json").write_text(json.dumps({"a": {}, "b": {"lr": 0.01}}))
    options = (
        "first --seeds 2 --updates 4 --ema 0.9 --digit-pool shared --ratio-variance v+sigma2 "
        "--quick --device cpu --out made/sweep.json"
    )
    assert main(["phase2-sweep", NAME, "settings.json", *options.split()]) == 0
    record = json.loads(Path("made/sweep.json").read_text())
    assert [look["step"] for look in record["curve"]] == [1, 2, 3, 4]
    assert (record["config"]["data"]["depth"], record["config"]["data"]["digit_pool"]) == ("up-left", "shared")
    assert record["config"]["model"]["ratio_variance"] == "v+sigma2"
    shown = capsys.readouterr().out.splitlines()
    assert shown == ranking(record)
    errors = [float(line.split()[0]) for line in shown]
    assert errors == sorted(errors)
    assert all("averaged" in line for line in shown)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "there are no settings"),
        ({"a": {"batch": 1}}, "give an object with some of lr, class_cost, class_dropout, noise, old_rate, old_wait"),
        ({"a": {"class_dropout": 1}}, "class_dropout=1: give less than 1"),
        ({"a": 3}, "give an object"),
        ({"a": {"lr": "fast"}}, "lr='fast': give a number"),
        ({"a": {"lr": -1.0}}, "0 or more"),
    ],
)
def test_what_is_no_setting_is_refused(settings: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_settings(settings)
