"""Settings for your own data, found without the true groups: many short trainings at once, then the best one in full.

# S settings, in the place of seeds · n scenes · N elements

Settings that differ in numbers alone (noise, learning rate, v and its rate, seed) are trained as one stack of models,
like seeds; those that differ in norm, widths or K are stacks of their own. Which is best is decided by what needs no
truth (``score``): docs/what-makes-groups-form.md shows how well that ranks settings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from taggernet.config.run import Config
from taggernet.data import Scenes
from taggernet.data.lazy import LazyRows
from taggernet.grouping_report import grouping_report
from taggernet.rng import Key
from taggernet.tagger import Tagger
from taggernet.tagger_parts import corruption_for, likelihood_for
from taggernet.training import datasets
from taggernet.training.adam import TrainState, by_seed
from taggernet.training.distributed import in_bfloat16, pick_device
from taggernet.training.objective import Objective
from taggernet.training.seeds import initial_weights
from taggernet.training.sources import Part
from taggernet.training.step import Update
from taggernet.training.update_loop import UpdateLoop

SCENES = 100
"""Validation scenes that settings are compared on."""
STARTS = 2
"""Random starts per model."""


@dataclass(frozen=True)
class Trial:
    """One setting, trained shortly with each of a few seeds."""

    config: Config
    agreement: float
    """Mean AMI of the labels from two random starts of a model, or of two models with different seeds."""
    confidence: float
    used: float
    """As in ``GroupingReport``."""

    @property
    def score(self) -> float:
        return score(self.agreement, self.confidence, self.used)


@dataclass(frozen=True)
class Tuning:
    """All trials, the best first."""

    trials: list[Trial]

    @property
    def best(self) -> Config:
        return self.trials[0].config

    def record(self) -> list[dict[str, Any]]:
        """For tuning.json: what was tried, and how it did."""
        return [
            {**setting(trial.config), "score": trial.score, "agreement": trial.agreement,
             "confidence": trial.confidence, "used": trial.used}
            for trial in self.trials
        ]  # fmt: skip


def score(agreement: float, confidence: float, used: float) -> float:
    """How well groups formed, without the truth: the same at every start, decided, and more than one."""
    return max(0.0, agreement) * confidence * min(1.0, max(0.0, used - 1))


def setting(config: Config) -> dict[str, Any]:
    """What trials differ in."""
    model, adam = config.model, config.optimiser
    return {
        "norm": model.norm, "widths": model.widths, "noise": model.noise, "v_start": model.v_start,
        "v_rate": adam.v_rate, "lr": adam.lr, "groups": config.groups,
    }  # fmt: skip


def candidates(config: Config) -> list[Config]:
    """The configuration and others around it."""
    model = config.model
    found = [config]
    for share in (0.5, 2.0):
        found.append(
            replace(
                config,
                model=replace(
                    model, noise=min(0.4, model.noise * share) if model.kind == "binary" else model.noise * share
                ),
            )
        )
    return found


def tune(config: Config, scenes: Scenes | None = None, *, updates: int = 500, seeds: int = 2) -> Tuning:
    """Try settings around a configuration for this many updates each; ``scenes`` as for ``train``."""
    device = pick_device(config.runtime.device)
    train = datasets.training_set(config, scenes)
    valid = datasets.load_split(config.data, "valid", scenes)[:SCENES]
    if len(valid) < 2:
        raise ValueError(f"tuning compares settings on validation scenes, but there are {len(valid)}: give more scenes")
    trials: list[Trial] = []
    stacks: dict[tuple[object, ...], list[Config]] = {}
    for candidate in candidates(config):
        key = (candidate.model.norm, candidate.model.widths, candidate.groups)
        stacks.setdefault(key, []).append(candidate)
    for stack in stacks.values():
        trials += _Stack(stack, train, device, updates, seeds).trials(valid)
    return Tuning(sorted(trials, key=lambda trial: -trial.score))


class _Stack(UpdateLoop):
    """Settings in training that differ in numbers alone, each with several seeds: setting by setting, seed by seed."""

    metric = "score"

    def __init__(
        self, settings: Sequence[Config], train: Scenes | LazyRows, device: torch.device, updates: int, seeds: int
    ) -> None:
        self.settings, self.repeats = settings, seeds
        config = settings[0]
        each = [setting for setting in settings for _ in range(seeds)]
        numbers = [setting.first_seed + i for setting in settings for i in range(seeds)]

        def column(values: list[float]) -> Tensor:
            return torch.tensor(values, device=device)

        self.model = model = Tagger(config.model).to(device)
        model.use_kernels(config.runtime.kernels)
        noise = column([c.model.noise for c in each])
        model.corruption = corruption_for(config.model, noise.reshape(-1, 1, 1))
        model.likelihood = likelihood_for(config.model, noise.reshape(-1, 1, 1, 1))
        weights = initial_weights(config.model, numbers, device)
        weights["w"] = by_seed(column([math.sinh(math.log(c.model.v_start)) for c in each]), weights["w"])
        adam = replace(config.optimiser, updates=updates, warmup=updates // 40)
        part = Part.of(adam.batch)
        update = Update(
            Objective(model, config.groups, config.iterations, discount=config.discount),
            datasets.source(replace(config, class_cost=0.0), device, numbers, part, train),
            TrainState.fresh(weights, ema=False),
            adam,
            Key.of(numbers, device),
            part,
            half=in_bfloat16(config.precision, device),
        )
        rate = column([c.optimiser.lr / adam.lr for c in each])
        v_rate = column([c.optimiser.v_rate * c.optimiser.lr / adam.lr for c in each])
        update.adam.rates = [by_seed(v_rate if name == "w" else rate, w) for name, w in weights.items()]
        runtime = replace(config.runtime, log_every=updates, evaluate_every=0, checkpoint_every=0)
        super().__init__(update, adam, runtime, numbers)

    def trials(self, valid: Scenes) -> list[Trial]:
        """Train all, and compare their groups of the validation scenes."""
        self.run_updates()
        if not self.finished:
            raise KeyboardInterrupt
        config, weights = self.settings[0], self.update.current_state().weights
        report = grouping_report(
            self.model, weights, valid, groups=config.test_groups, iterations=config.test_iterations,
            batch=config.evaluation_batch, starts=STARTS,
        )  # fmt: skip
        return [
            Trial(config, *(fmean(values[i * self.repeats : (i + 1) * self.repeats]) for values in
                            (report.agreement, report.confidence, report.used)))
            for i, config in enumerate(self.settings)
        ]  # fmt: skip
