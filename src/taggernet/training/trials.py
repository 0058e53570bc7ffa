"""Settings in a short training, side by side.

# S settings, each with several first weights, in the place of seeds

Settings that differ in numbers alone (noise, learning rate, v and its rate) are trained as one stack of models, like
seeds; those that differ in anything else are stacks of their own, which share the cores of a CPU.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from statistics import fmean

import torch
from torch import Tensor

from taggernet.config.run import Config
from taggernet.data import Scenes
from taggernet.data.lazy import LazyRows
from taggernet.grouping_report import grouping_report
from taggernet.rng import Key
from taggernet.tagger import Tagger
from taggernet.training import datasets
from taggernet.training.adam import TrainState, by_seed
from taggernet.training.interruptions import interruptions
from taggernet.training.log import Bar, progress_bar
from taggernet.training.objective import Objective
from taggernet.training.precision import in_bfloat16, is_captured
from taggernet.training.seeds import initial_weights
from taggernet.training.sources import Part
from taggernet.training.step import Update
from taggernet.training.update_loop import UpdateLoop

STARTS, TWINS = 2, 2
"""Of each setting: random starts that it is judged by, and first weights."""
SHOWN = 20
"""Updates between two looks at the progress."""
JUDGED = ("score", "agreement", "confidence", "used", "elsewhere", "reproduced", "by_value")


@dataclass(frozen=True)
class Trial:
    """One setting after a short training."""

    config: Config
    """With the number of updates of the full training."""
    score: float
    agreement: float
    confidence: float
    used: float
    elsewhere: float
    reproduced: float
    by_value: float
    """As in ``GroupingReport``, the mean over the first weights; 0 where it does not say."""
    weights: dict[str, Tensor]
    """(twins, ...), after the short training."""


def train_stacks(
    stacks: Sequence[Sequence[Config]], train: Scenes | LazyRows, valid: Scenes, device: torch.device, updates: int
) -> list[Trial]:
    """The trials of all stacks. On a CPU each stack has a core: updates are so small that two cores gain nothing."""
    threads = torch.get_num_threads()
    workers = min(len(stacks), threads) if device.type == "cpu" else 1

    making = threading.Lock()

    def trials(settings: Sequence[Config]) -> list[Trial]:
        torch.set_num_threads(max(1, threads // workers))
        with making:  # finding parts silences warnings, which no two threads may do at once
            stack = Stack(settings, train, device, updates, stopped, progress)
        return stack.trials(valid)

    shown = stacks[0][0].runtime.progress
    with (
        interruptions() as stopped,
        progress_bar(len(stacks) * updates, 0, shown, what="tuning") as bar,
        ThreadPoolExecutor(workers) as pool,
    ):
        progress = _Progress(bar)
        try:
            found = list(pool.map(trials, stacks))
        finally:
            stopped.set()  # where one failed, for the others
            torch.set_num_threads(threads)
    return [trial for of_stack in found for trial in of_stack]


class _Progress:
    """One bar for several threads."""

    def __init__(self, bar: Bar) -> None:
        self.bar, self.done, self.lock = bar, 0, threading.Lock()

    def add(self, updates: int, loss: float) -> None:
        with self.lock:
            self.done += updates
            self.bar(self.done, loss=f"{loss:.4f}")


class Stack(UpdateLoop):
    """Settings that differ in numbers alone, in training; each ``TWINS`` times, with other first weights."""

    def __init__(
        self,
        settings: Sequence[Config],
        train: Scenes | LazyRows,
        device: torch.device,
        updates: int,
        stopped: threading.Event | None = None,
        progress: _Progress | None = None,
    ) -> None:
        self.settings = settings = [one for one in settings for _ in range(TWINS)]
        config, seeds = settings[0], [one.first_seed + i % TWINS for i, one in enumerate(settings)]

        def column(values: list[float]) -> Tensor:
            return torch.tensor(values, device=device)

        self.model = Tagger(config.model).to(device)
        self.model.use_kernels(config.runtime.kernels)
        noise = column([one.model.noise for one in settings])
        self.model.use_noise(noise)
        weights = initial_weights(config.model, seeds, device, datasets.scenes_to_start_from(config, train))
        weights["w"] = by_seed(column([math.sinh(math.log(one.model.v_start)) for one in settings]), weights["w"])
        adam = replace(config.optimiser, updates=updates, warmup=updates // 40)
        part = Part.of(adam.batch)
        update = Update(
            Objective(self.model, config.groups, config.iterations, discount=config.discount),
            datasets.source(replace(config, class_cost=0.0), device, seeds, part, train),
            TrainState.fresh(weights, ema=False),
            adam,
            Key.of(seeds, device),
            part,
            per_seed=True,
            half=in_bfloat16(config.precision, device),
            captured=is_captured(config.runtime.compile, device),
        )
        rate = column([one.optimiser.lr / adam.lr for one in settings])
        v_rate = rate * column([one.optimiser.v_rate for one in settings])
        update.adam.rates = [by_seed(v_rate if name == "w" else rate, w) for name, w in weights.items()]
        runtime = replace(config.runtime, log_every=SHOWN, evaluate_every=0, checkpoint_every=0, progress=False)
        super().__init__(update, adam, runtime, seeds)
        self.stopped, self.progress = stopped, progress

    def log(self, costs: Tensor) -> None:
        if self.progress:
            self.progress.add(len(costs), costs[:, 0].mean().item())

    def trials(self, valid: Scenes) -> list[Trial]:
        """Train all, then judge their groups of the validation scenes."""
        self.run_updates()
        if not self.finished:
            raise KeyboardInterrupt
        config, weights = self.settings[0], self.update.current_state().weights
        report = grouping_report(
            self.model, weights, valid, groups=config.test_groups, iterations=config.test_iterations,
            batch=config.evaluation_batch, starts=STARTS, twins=TWINS,
        )  # fmt: skip

        def trial(first: int) -> Trial:
            models = slice(first, first + TWINS)
            numbers = {name: fmean(getattr(report, name)[models] or [0.0]) for name in JUDGED}
            return Trial(self.settings[first], **numbers, weights={n: w[models].detach() for n, w in weights.items()})

        return [trial(first) for first in range(0, len(self.settings), TWINS)]
