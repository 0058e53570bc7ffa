"""The loop over updates, whatever is trained: stretches between records, evaluations and checkpoints.

# S seeds
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from datetime import timedelta

import torch
from torch import Tensor

from taggernet.config.run import OptimiserConfig, RuntimeConfig
from taggernet.training.distributed import World, agree, average
from taggernet.training.interruptions import interruptions
from taggernet.training.log import progress_bar
from taggernet.training.step import Update
from taggernet.training.time_spent import TimeSpent

MEASURED = 1.0
"""Seconds of updates from which the time of the rest is estimated."""


class Diverged(ArithmeticError):
    """The loss became NaN or infinite."""


class Pace:
    """Seconds per update, without the first stretch, in which things are compiled."""

    def __init__(self) -> None:
        self.begin: tuple[float, int] | None = None
        self.each: float | None = None

    def known(self, step: int) -> bool:
        """True once, after the first update at which enough were measured."""
        now = time.monotonic()
        if self.begin is None:
            self.begin = now, step
        if self.each is not None or now - self.begin[0] < MEASURED:
            return False
        self.each = (now - self.begin[0]) / (step - self.begin[1])
        return True

    def seconds_for(self, updates: int) -> float:
        return (self.each or 0.0) * updates


class UpdateLoop:
    """All updates of a run. A subclass says what is recorded, how to evaluate, and where to save."""

    metric = "AMI"
    """Of the validation, as the progress bar names it."""

    def __init__(
        self,
        update: Update,
        optimiser: OptimiserConfig,
        runtime: RuntimeConfig,
        seeds: list[int],
        ranks: World | None = None,
        *,
        longest: int = 1_000,
    ) -> None:
        self.update, self.optimiser, self.runtime, self.seeds = update, optimiser, runtime, seeds
        self.ranks, self.longest = ranks or World(), longest
        self.spent = TimeSpent()
        self.unlogged: list[Tensor] = []
        """Costs (updates, 3, S) that the next record will average."""
        self.done_early = False
        """Set by ``evaluate`` when more updates would bring nothing."""
        self.stopped: threading.Event | None = None
        """Ends the updates; of its own unless given, set by Ctrl-C and SIGTERM."""

    # --- what a subclass defines -------------------------------------------------------------------------

    def log(self, costs: Tensor) -> None:
        """Record the costs (updates, 3, S) since the last record."""

    def evaluate(self) -> float | None:
        """Evaluate the weights on validation; returns what the progress bar shows of it."""

    def announce(self, seconds: float) -> None:
        """Say how long the updates that remain will take; called once, as soon as their pace is known."""

    def save(self) -> None:
        """Keep the state: whenever a checkpoint is due, and at the end. It may be written while updates go on."""

    def wait_until_saved(self) -> None:
        """Return once the state is kept for good; called at the end."""

    def what_is_kept(self) -> str:
        """For the message of a run that diverges: where to resume."""
        return ""

    # --- the loop ----------------------------------------------------------------------------------------

    @property
    def step(self) -> int:
        return self.update.state.step

    @property
    def finished(self) -> bool:
        return self.done_early or self.step >= self.optimiser.updates

    @property
    def seconds_trained(self) -> float:
        """Spent on updates so far, since this call began; compiling, which a cache may shorten, is not counted."""
        return self.spent.seconds["updates"]

    def run_updates(self) -> float:
        """Update to the end, or until an interruption; returns the seconds it took."""
        runtime, total = self.runtime, self.optimiser.updates
        begin, first, compiled = time.monotonic(), self.step, self.spent.seconds["compiling"]
        pace = Pace()
        with ExitStack() as stack:
            stopped = self.stopped or stack.enter_context(interruptions())
            shown = runtime.progress and self.ranks.main
            bar = stack.enter_context(progress_bar(total, first, shown, self.metric))
            while not self.finished and not agree(stopped.is_set(), self.ranks, self.update.device):
                costs = average(self._advance(), self.ranks, self.update.device)
                self._check_costs(costs)
                self.unlogged.append(costs)
                if pace.known(self.step):
                    self.announce(pace.seconds_for(total - self.step))
                compiling = self.spent.seconds["compiling"] - compiled
                each = (time.monotonic() - begin - compiling) / (self.step - first)
                left = str(timedelta(seconds=round(each * (total - self.step))))
                bar(self.step, loss=f"{costs[:, 0].mean():.4f}", rate=f"{1 / each:.3g}/s", left=left)
                if self._due(runtime.log_every) or self.finished:
                    self.log(torch.cat(self.unlogged))
                    self.unlogged = []
                if self._due(runtime.evaluate_every) or self.finished:
                    with self.spent.on("evaluation"):
                        found = self.evaluate()
                    if found is not None:
                        bar(self.step, metric=f"{found:.3f}")
                    if self.optimiser.patience:
                        self.done_early = agree(self.done_early, self.ranks, self.update.device)
                if self._due(runtime.checkpoint_every) and not self.finished:
                    self._check_and_save()
            if self.done_early and self.unlogged:
                self.log(torch.cat(self.unlogged))
                self.unlogged = []
            self._check_and_save()
            with self.spent.on("checkpoints"):
                self.wait_until_saved()
        return time.monotonic() - begin

    def _advance(self) -> Tensor:
        """Updates until something is due; returns their costs."""
        compiled = self.update.compiling
        with self.spent.on("updates"):
            costs = self.update.advance(self._stretch())
            self.spent.seconds["compiling"] += self.update.compiling - compiled
        return costs

    def _stretch(self) -> int:
        """Updates until something is due: a record, an evaluation, a checkpoint, an epoch, the end."""
        step, runtime = self.step, self.runtime
        ends = [self.optimiser.updates, self.update.source.valid_until(step), step + self.longest]
        for every in (runtime.log_every, runtime.evaluate_every, runtime.checkpoint_every):
            if every:
                ends.append((step // every + 1) * every)
        if self.update.device.type == "cpu":
            ends.append(step + 5)  # so that an interruption is heard within a second or so
        return int(min(ends)) - step

    def _due(self, every: int) -> bool:
        return every > 0 and self.step % every == 0

    def _check_costs(self, costs: Tensor) -> None:
        bad = (~torch.isfinite(costs)).nonzero()
        if len(bad):
            row, _, seed = bad[0].tolist()
            step = self.step - len(costs) + row
            raise self._diverged(f"the loss of seed {self.seeds[seed]} became {costs[tuple(bad[0])]:g}", step)

    def _check_and_save(self) -> None:
        with self.spent.on("checkpoints"):
            # The last update may have ruined the weights after its loss was still a number.
            state = self.update.current_state()
            if not state.is_finite:
                raise self._diverged("weights or Adam's moments became NaN or infinite, at the latest", state.step - 1)
            self.save()

    def _diverged(self, what: str, step: int) -> Diverged:
        return Diverged(
            f"{what} at update {step}{self.what_is_kept()}: "
            f"most likely the learning rate {self.optimiser.lr:g} is too high; lower it, or set --clip"
        )
