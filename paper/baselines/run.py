"""A baseline from its configuration to its record: train all seeds at once, look at validation, test once.

# S seeds
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from paper.baselines.classifiers import Moments, population_moments
from paper.baselines.model import ClassifierObjective, Weights, errors, initial_weights, network
from paper.baselines.recipes import BaselineConfig
from paper.baselines.sources import known_scenes, source, split
from paper.baselines.whitening import Whitening
from taggernet.data import Scenes
from taggernet.rng import Key
from taggernet.training.distributed import pick_device
from taggernet.training.log import environment
from taggernet.training.loop import Diverged
from taggernet.training.sources import Part
from taggernet.training.update import TrainState, Update

Record = dict[str, Any]

_STRETCH = 100  # updates between two looks at the cost


def run_baseline(config: BaselineConfig, progress: bool = True) -> Record:
    """Train every seed of a baseline, choose weights as it says, and return the record of its errors.

    Figures are (S, 1): per seed, after its only iteration, so that they read like Tagger's.
    """
    begin = time.monotonic()
    training = Training(config, progress)
    curve = training.run()
    trained = time.monotonic() - begin
    weights = training.chosen
    population = population_moments(training.model, weights, training.x)
    test = split(config, "test")  # looked at once, with everything decided
    figures = {
        name: {"error": [[e] for e in training.error(weights, population, scenes)]}
        for name, scenes in (("valid", training.valid), ("test", test))
    }
    return {
        "config": config_record(config),
        "environment": environment(),
        "seeds": config.seed_list,
        "training_seconds": trained,
        "seconds": time.monotonic() - begin,
        "test_scenes": len(test),
        "parameters": sum(w[0].numel() for w in weights.values()),
        "chosen_update": training.chosen_at,
        "curve": curve,
        **figures,
    }


def config_record(config: BaselineConfig) -> dict[str, Any]:
    """The configuration as a record holds it: what was computed, not how it ran."""
    content = asdict(config)
    for name in ("device", "compile"):
        del content[name]
    found: dict[str, Any] = json.loads(json.dumps(content))
    return found


class Training:
    """All seeds of a baseline on their way: the update, and the weights of the best or the last look at validation."""

    def __init__(self, config: BaselineConfig, progress: bool) -> None:
        self.config, self.progress = config, progress
        self.device = pick_device(config.device)
        train = split(config, "train")
        self.valid = split(config, "valid")
        self.x = known_scenes(config, train, self.device)
        self.model = network(config).to(self.device)
        if config.whiten:
            self.model.whitening = Whitening.of(self.x, config.whiten)
        self.state = TrainState.fresh(
            initial_weights(self.model, config.seed_list, self.device), ema=config.optimiser.ema > 0
        )
        on_cuda = self.device.type == "cuda"
        self.update = Update(
            ClassifierObjective(self.model),
            source(config, train, self.device),
            self.state,
            config.optimiser,
            Key.of(config.seed_list, self.device),
            Part.of(config.optimiser.batch),
            half=config.precision == "bfloat16" or (config.precision == "auto" and on_cuda),
            compiled=config.compile == "yes" or (config.compile == "auto" and on_cuda),
        )
        self.chosen: Weights = {name: w.detach().clone() for name, w in self.state.evaluated.items()}
        self.chosen_at = [0] * config.seeds
        self.best = [float("inf")] * config.seeds

    def run(self) -> list[dict[str, Any]]:
        """All updates; the curve of cost and validation error."""
        config, state = self.config, self.state
        total, every = config.optimiser.updates, config.evaluate_every
        curve: list[dict[str, Any]] = []
        costs: list[Tensor] = []
        with self._bar() as bar:
            task = bar.add_task(config.recipe, total=total, cost="-", error="-") if bar else None
            while state.step < total:
                ends = [total, self.update.source.valid_until(state.step), state.step + _STRETCH]
                if every:
                    ends.append((state.step // every + 1) * every)
                costs.append(self.update.advance(int(min(ends)) - state.step))
                self._check(costs[-1])
                if bar and task is not None:
                    bar.update(task, completed=state.step, cost=f"{costs[-1][-1, 0].mean():.4g}")
                if state.step == total or (every and state.step % every == 0):
                    found = self._look()
                    mean = torch.cat(costs).mean(0)
                    curve.append(
                        {"step": state.step, "denoising": mean[1].tolist(), "classification": mean[2].tolist(),
                         "valid_error": found}
                    )  # fmt: skip
                    costs = []
                    if bar and task is not None:
                        bar.update(task, error=f"{100 * sum(found) / len(found):.2f} %")
        return curve

    def _bar(self) -> Any:
        if not self.progress:
            return nullcontext()
        columns = (
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("cost {task.fields[cost]}"),
            TextColumn("validation error {task.fields[error]}"),
            TimeRemainingColumn(),
        )
        return Progress(*columns, console=Console(stderr=True))

    def _check(self, costs: Tensor) -> None:
        bad = (~torch.isfinite(costs)).nonzero()
        if len(bad):
            row, _, seed = bad[0].tolist()
            raise Diverged(
                f"the cost of seed {self.config.seed_list[seed]} became {costs[tuple(bad[0])]:g} at update "
                f"{self.state.step - len(costs) + row}: most likely the learning rate {self.config.optimiser.lr:g} "
                f"is too high; lower it, or set optimiser.clip"
            )

    def _look(self) -> list[float]:
        """Errors on validation now; remembers the weights that ``select`` asks for."""
        now = {name: w.detach() for name, w in self.update.settled().evaluated.items()}
        population = population_moments(self.model, now, self.x[: self.config.statistics])
        found = self.error(now, population, self.valid)
        for seed, error in enumerate(found):
            if self.config.select == "last" or error < self.best[seed]:
                self.best[seed], self.chosen_at[seed] = error, self.state.step
                for name, w in now.items():
                    self.chosen[name][seed] = w[seed]
        return found

    def error(self, weights: Weights, population: Sequence[Moments], scenes: Scenes) -> list[float]:
        """Mean error per seed."""
        return [float(e) for e in errors(self.model, weights, population, scenes).mean(1)]
