"""Several settings of Tagger's second phase at once, from the same first phases, so that validation can choose.

# S models: every setting with every seed, in the place of seeds

Only what is a number per model can differ; all settings share seeds, data and order. The test split is not used.
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor

from paper.class_analysis import answers_record
from paper.records import Record
from taggernet.config.run import Config
from taggernet.evaluation import evaluate_weights
from taggernet.rng import Key
from taggernet.tagger import Tagger
from taggernet.training import datasets
from taggernet.training.adam import TrainState, by_seed
from taggernet.training.assembly import objective_for
from taggernet.training.distributed import pick_device
from taggernet.training.log import environment
from taggernet.training.precision import in_bfloat16, is_compiled
from taggernet.training.seeds import carry_over, initial_weights
from taggernet.training.sources import Part
from taggernet.training.step import Update
from taggernet.training.update_loop import UpdateLoop

FREE = ("lr", "class_cost", "class_dropout", "noise", "old_rate", "old_wait")
"""What a setting may change; old_rate is the learning rate of the first phase's layers, relative to the fresh ones, and
old_wait the number of updates for which they stay as they are."""
EVALUATIONS, EARLY_SCENES, GROUPED_SCENES = 4, 2_000, 1_000
"""How often validation is evaluated, how many scenes of it before the end, and how many for AMI."""
Settings = dict[str, dict[str, float]]
"""Name -> what it changes of the configuration."""


def phase2_sweep(config: Config, first: dict[str, Tensor], settings: Settings) -> Record:
    """Train a second phase per setting and seed, all at once, from the weights (seeds, ...) of first phases.

    Returns the errors after every iteration and AMI on validation along the way, (settings, seeds, T), and in the end
    what the groups answer; with ``optimiser.ema``, also the figures of the averaged weights.
    """
    check_settings(settings)
    begin = time.monotonic()
    training = _Sweep(config, first, settings)
    training.run_updates()
    if not training.finished:
        raise KeyboardInterrupt
    return {
        "config": asdict(config), "settings": settings, "environment": environment(),
        "seconds": time.monotonic() - begin, "curve": training.curve, "groups": training.answers,
    }  # fmt: skip


def check_settings(settings: Any) -> None:
    """One sentence if this is not an object of settings by name."""
    if not isinstance(settings, dict) or not settings:
        raise ValueError('there are no settings: give one at least, e.g. {"faster": {"lr": 2e-3}}')
    for name, setting in settings.items():
        if not isinstance(setting, dict) or not set(setting) <= set(FREE):
            raise ValueError(f"setting {name!r} is {setting!r}: give an object with some of {', '.join(FREE)}")
        for field, value in setting.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise ValueError(f"setting {name!r} has {field}={value!r}: give a number, 0 or more")
        if setting.get("class_dropout", 0) >= 1:
            raise ValueError(f"setting {name!r} has class_dropout={setting['class_dropout']!r}: give less than 1")


class _Sweep(UpdateLoop):
    """All settings in training."""

    metric = "lowest error"

    def __init__(self, config: Config, first: dict[str, Tensor], settings: Settings) -> None:
        self.config, self.curve, self.answers = config, list[Record](), Record()
        self.sides = len(settings), config.seeds
        device, seeds = pick_device(config.runtime.device), config.seed_list * len(settings)
        repeated = {name: w.to(device).repeat(len(settings), *[1] * (w.ndim - 1)) for name, w in first.items()}
        weights = carry_over(initial_weights(config.model, seeds, device), repeated)
        self.valid = datasets.load_split(config.data, "valid")
        self.model = Tagger(config.model).to(device)

        def of_each(field: str, default: float, *, times: float = 1.0) -> Tensor:
            values = [setting.get(field, default) * times for setting in settings.values() for _ in config.seed_list]
            return torch.tensor(values, device=device)

        self.model.use_kernels(config.runtime.kernels)
        self.model.use_noise(of_each("noise", config.model.noise))
        objective = objective_for(config, self.model)
        objective.class_cost = of_each("class_cost", config.class_cost)
        dropout = of_each("class_dropout", config.class_dropout)
        if dropout.any():
            objective.class_dropout = dropout[:, None, None]
        part = Part.of(config.optimiser.batch)
        update = Update(
            objective,
            datasets.source(config, device, seeds, part, datasets.training_set(config)),
            TrainState.fresh(weights, ema=config.optimiser.ema > 0),
            config.optimiser,
            Key.of(seeds, device),
            part,
            per_seed=True,
            half=in_bfloat16(config.precision, device),
            compiled=is_compiled(config.runtime.compile, device),
        )
        rates = of_each("lr", config.optimiser.lr, times=1 / config.optimiser.lr)
        old = rates * of_each("old_rate", config.optimiser.lower_rate)
        wait = of_each("old_wait", config.optimiser.lower_wait)
        for i, (name, w) in enumerate(weights.items()):
            carried = _is_carried(first, name, w)
            update.adam.rates[i] = by_seed(old if carried else rates, w)
            update.adam.waits[i] = by_seed(wait, w) if carried else 0
        often = max(1, config.optimiser.updates // EVALUATIONS)
        runtime = replace(config.runtime, log_every=often, evaluate_every=often, checkpoint_every=0)
        super().__init__(update, config.optimiser, runtime, seeds, longest=100)

    def evaluate(self) -> float:
        config, state = self.config, self.update.current_state()
        scenes = self.valid if self.finished else self.valid[:EARLY_SCENES]
        found: Record = {"step": self.step}
        for prefix, weights in (("", state.weights), ("averaged_", state.average)):
            if weights:
                of_all, of_few = (
                    evaluate_weights(
                        self.model, weights, some, groups=config.test_groups, iterations=config.test_iterations,
                        batch=config.evaluation_batch,
                    )
                    for some in (scenes, scenes[:GROUPED_SCENES])
                )  # fmt: skip
                assert of_all.error is not None
                assert of_few.ami is not None
                found[prefix + "error"] = of_all.error.mean(-1).reshape(*self.sides, -1).tolist()
                found[prefix + "ami"] = of_few.ami.mean(-1).reshape(*self.sides, -1).tolist()
                if self.finished and not prefix:
                    self.answers = answers_record(of_all)
        self.curve.append(found)
        return min(_last(errors) for errors in found["error"])


def _is_carried(first: dict[str, Tensor], name: str, weight: Tensor) -> bool:
    """Whether a parameter comes from the first phase."""
    return name in first and first[name].shape[1:] == weight.shape[1:]


def _last(figures: list[list[float]]) -> float:
    """The mean over seeds after the last iteration."""
    return statistics.fmean(seed[-1] for seed in figures)


def ranking(record: Record) -> list[str]:
    """A line per setting, the lowest error after the last iteration first; means over seeds."""
    lines = []
    last = record["curve"][-1]
    for s, (name, setting) in enumerate(record["settings"].items()):
        *earlier, error = (100 * _last(look["error"][s]) for look in record["curve"])
        averaged = f", averaged {100 * _last(last['averaged_error'][s]):.2f}" if "averaged_error" in last else ""
        seeds = [f"{100 * seed[-1]:.1f}" for seed in last["error"][s]]
        each = f" ({', '.join(seeds)})" if len(seeds) > 1 else ""
        ami, before = _last(last["ami"][s]), ", ".join(f"{e:.1f}" for e in earlier)
        lines.append((error, f"{error:6.2f} %{each}{averaged}, AMI {ami:.3f} (earlier {before})  {name} {setting}"))
    return [line for _, line in sorted(lines)]
