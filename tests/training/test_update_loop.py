"""The loop over updates with an update that only counts: what is called when, and how it ends."""

from __future__ import annotations

import signal
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from taggernet.config.run import OptimiserConfig, RuntimeConfig
from taggernet.training import update_loop
from taggernet.training.update_loop import Diverged, UpdateLoop


class Counting:
    """Stands in for an Update of two seeds whose cost is the number of the update."""

    def __init__(self, period: float = float("inf"), bad: int = -1, device: str = "cuda") -> None:
        self.state = SimpleNamespace(step=0, is_finite=True)
        self.source = SimpleNamespace(valid_until=lambda step: (step // period + 1) * period)
        self.device = torch.device(device)
        self.compiling = 0.0
        self.bad = bad
        self.stretches: list[int] = []

    def advance(self, count: int) -> Tensor:
        first = self.state.step
        self.state.step += count
        self.stretches.append(count)
        costs = torch.arange(first, first + count, dtype=torch.float32)
        costs[costs == self.bad] = torch.nan
        return costs[:, None, None].expand(count, 3, 2)

    def current_state(self) -> Any:
        return self.state


class Watched(UpdateLoop):
    """Keeps what it is asked to do."""

    def __init__(self, update: Any, updates: int, longest: int = 1_000, **runtime: Any) -> None:
        options = RuntimeConfig(**{"evaluate_every": 0, "checkpoint_every": 0, "progress": False, **runtime})
        super().__init__(update, OptimiserConfig(updates=updates, lr=0.5), options, [7, 8], longest=longest)
        self.logged: list[tuple[int, list[float]]] = []
        self.evaluated: list[int] = []
        self.saved: list[int] = []

    def log(self, costs: Tensor) -> None:
        assert costs.shape[1:] == (3, 2)
        self.logged.append((self.step, costs[:, 0, 0].tolist()))

    def evaluate(self) -> float:
        self.evaluated.append(self.step)
        return 0.0

    def save(self) -> None:
        self.saved.append(self.step)


@pytest.mark.usefixtures("without_typecheck")
def test_everything_happens_when_it_is_due_and_at_the_end() -> None:
    loop = Watched(Counting(period=4), 10, log_every=3, evaluate_every=5, checkpoint_every=4)
    loop.run_updates()
    assert loop.update.stretches == [3, 1, 1, 1, 2, 1, 1]  # type: ignore[attr-defined]
    assert loop.logged == [(3, [0, 1, 2]), (6, [3, 4, 5]), (9, [6, 7, 8]), (10, [9])]
    assert loop.evaluated == [5, 10]
    assert loop.saved == [4, 8, 10]
    assert loop.finished


@pytest.mark.usefixtures("without_typecheck")
@pytest.mark.parametrize(("device", "longest", "expected"), [("cuda", 7, [7, 5]), ("cpu", 1_000, [5, 5, 2])])
def test_stretches_are_bounded(device: str, longest: int, expected: list[int]) -> None:
    loop = Watched(Counting(device=device), 12, longest)
    loop.run_updates()
    assert loop.update.stretches == expected  # type: ignore[attr-defined]


@pytest.mark.usefixtures("without_typecheck")
def test_the_time_is_estimated_once_without_the_first_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first stretch takes 100 s, every later one of 5 updates 0.4 s: 1.2 s are measured, then 80 updates remain."""
    loop = Watched(Counting(device="cpu"), 100)
    monkeypatch.setattr(
        update_loop.time, "monotonic", lambda: 100 + 0.08 * (loop.step - 5) if loop.step else 0.0
    )  # fmt: skip
    said: list[float] = []
    monkeypatch.setattr(loop, "announce", said.append)
    loop.run_updates()
    assert said == [pytest.approx(80 * 0.08)]


@pytest.mark.usefixtures("without_typecheck")
def test_rate_and_time_left_are_without_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first stretch compiles for 100 s; every update takes 0.08 s."""
    update = Counting(device="cpu")
    loop = Watched(update, 100, progress=True)
    advance, shown = update.advance, []

    def compile_first(count: int) -> Tensor:
        update.compiling = 100.0
        return advance(count)

    monkeypatch.setattr(update, "advance", compile_first)
    monkeypatch.setattr(update_loop.time, "monotonic", lambda: (100 + 0.08 * loop.step) if loop.step else 0.0)
    monkeypatch.setattr(
        update_loop, "progress_bar", lambda *_: nullcontext(lambda step, **values: shown.append((step, values)))
    )
    loop.run_updates()
    assert {values["rate"] for _, values in shown if "rate" in values} == {"12.5/s"}
    assert shown[0][0] == 5
    assert shown[0][1]["left"] == "0:00:08"


@pytest.mark.usefixtures("without_typecheck")
def test_an_evaluation_can_end_it_early() -> None:
    class Content(Watched):
        def evaluate(self) -> float:
            self.done_early = self.step == 6
            return super().evaluate()

    loop = Content(Counting(), 20, log_every=4, evaluate_every=3, checkpoint_every=5)
    loop.run_updates()
    assert (loop.step, loop.finished) == (6, True)
    assert loop.logged == [(4, [0, 1, 2, 3]), (6, [4, 5])]
    assert loop.saved == [5, 6]


@pytest.mark.usefixtures("without_typecheck")
def test_an_interruption_ends_it_after_the_stretch_and_saves() -> None:
    update = Counting()
    advance = update.advance

    def interrupted(count: int) -> Tensor:
        signal.raise_signal(signal.SIGTERM)
        return advance(count)

    update.advance = interrupted  # type: ignore[method-assign]
    loop = Watched(update, 10, log_every=4)
    before = signal.getsignal(signal.SIGTERM)
    loop.run_updates()
    assert (loop.step, loop.saved, loop.evaluated, loop.finished) == (4, [4], [], False)
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.usefixtures("without_typecheck")
def test_a_loss_that_is_not_a_number_names_seed_and_update() -> None:
    loop = Watched(Counting(bad=5), 10, log_every=4)
    with pytest.raises(Diverged, match=r"loss of seed 7 became nan at update 5: most likely the learning rate 0\.5"):
        loop.run_updates()
    assert loop.saved == []


@pytest.mark.usefixtures("without_typecheck")
def test_weights_that_are_not_finite_are_not_saved() -> None:
    update = Counting()
    update.state.is_finite = False
    loop = Watched(update, 3)
    with pytest.raises(Diverged, match=r"became NaN or infinite, at the latest at update 2"):
        loop.run_updates()
    assert loop.saved == []
