"""Stacks of settings: each trained as it would be alone, several at once, and what ends all of them."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest
import torch
from own_files import own

import taggernet as tn
from taggernet.training import datasets, trials, tune

CPU = torch.device("cpu")


@pytest.mark.parametrize("kind", ["real", "binary"])
def test_a_setting_in_a_stack_is_trained_as_it_is_alone(kind: str) -> None:
    scenes, config = own(kind)
    settings = [config, replace(config, model=replace(config.model, noise=0.35, v_start=0.1))]
    settings.append(replace(config, optimiser=replace(config.optimiser, lr=3e-3, v_rate=5.0)))
    stack = trials.Stack(settings, datasets.training_set(config, scenes), CPU, updates=4)
    stack.run_updates()
    together = stack.update.current_state().weights
    for i, setting in enumerate(settings):
        for name, weight in tn.train(replace(setting, seeds=trials.TWINS), scenes=scenes).weights.items():
            mine = slice(i * trials.TWINS, (i + 1) * trials.TWINS)
            torch.testing.assert_close(together[name][mine], weight, rtol=1e-2, atol=1e-4)


def test_threads_share_the_stacks_and_change_nothing() -> None:
    scenes, config = own("real")
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(tune.tune(config, scenes, updates=3))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    for alone, beside in zip(*found, strict=True):
        assert tune.setting(alone.config) == tune.setting(beside.config)
        assert alone.score == pytest.approx(beside.score, abs=1e-5)


def test_a_stack_that_fails_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    scenes, config = own("real")
    seen = []

    def fails(self: trials.Stack, costs: torch.Tensor) -> None:
        seen.append(self)
        if self.settings[0].model.masks == "posterior":
            raise ArithmeticError("the loss became nan")

    monkeypatch.setattr(trials.Stack, "log", fails)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(ArithmeticError, match="the loss became nan"):
            trials.train_stacks([[c] for c in tune.candidates(config)[1::-1]], scenes, scenes[:4], CPU, 100_000)
    finally:
        torch.set_num_threads(before)
    assert not any(stack.finished for stack in seen)


def test_an_interruption_ends_tuning(monkeypatch: pytest.MonkeyPatch) -> None:
    scenes, config = own("real")
    monkeypatch.setattr(trials.Stack, "log", lambda self, costs: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(KeyboardInterrupt):
        tune.tune(config, scenes, updates=100_000)
