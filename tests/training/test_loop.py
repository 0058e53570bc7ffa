"""``train_to_end``: finished models, or KeyboardInterrupt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from taggernet.recipes import recipe
from taggernet.training import Run, loop
from taggernet.training.loop import train_to_end


def test_an_unfinished_run_is_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    config = recipe("small")
    config = replace(config, optimiser=replace(config.optimiser, updates=10))
    asked: list[Any] = []

    def stopped(*arguments: Any, start: Any) -> Run:
        asked.append((*arguments, start))
        return Run(config, {}, step, 1.0, {})

    monkeypatch.setattr(loop, "train", stopped)
    step = 9
    with pytest.raises(KeyboardInterrupt):
        train_to_end(config, "runs/mine", start={})
    step = 10
    assert train_to_end(config, "runs/mine", start={}).finished
    assert asked == [(config, "runs/mine", None, {})] * 2
