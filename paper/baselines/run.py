"""A baseline from its configuration to its record: train all seeds at once, watch validation, test once.

# S seeds
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from torch import Tensor

from paper.baselines.classifiers import Moments, population_moments
from paper.baselines.model import ClassifierObjective, Weights, errors, initial_weights, network
from paper.baselines.recipes import BaselineConfig
from paper.baselines.sources import known_scenes, load_split, source
from paper.baselines.whitening import Whitening
from taggernet.config.run import RuntimeConfig, without_retired
from taggernet.data import Scenes
from taggernet.rng import Key
from taggernet.training.adam import TrainState
from taggernet.training.distributed import pick_device
from taggernet.training.log import environment
from taggernet.training.precision import in_bfloat16, is_compiled
from taggernet.training.sources import Part
from taggernet.training.step import Update
from taggernet.training.update_loop import UpdateLoop

Record = dict[str, Any]

LONGEST = 100
"""Updates between two steps of the progress bar."""


def run_baseline(config: BaselineConfig, progress: bool = True) -> Record:
    """Train every seed of a baseline, choose weights as it says, and return the record of its errors.

    Errors are (S, 1): per seed, after its only iteration, so that they read like Tagger's.
    """
    begin = time.monotonic()
    training = Training(config, progress)
    curve = training.run()
    trained = time.monotonic() - begin
    weights = training.chosen
    population = population_moments(training.model, weights, training.x)
    test = load_split(config, "test")  # used once, with everything decided
    found = {
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
        **found,
    }


def config_record(config: BaselineConfig) -> Record:
    """The configuration as a record holds it: what was computed, not how it ran."""
    content = asdict(config)
    for name in ("device", "compile"):
        del content[name]
    found: Record = json.loads(json.dumps(content))
    return found


def same_config(config: BaselineConfig, recorded: Record) -> bool:
    """Whether a recorded configuration is this one; fields younger than the record have their defaults."""
    defaults = config_record(BaselineConfig())
    optimiser = {**defaults["optimiser"], **without_retired(recorded.get("optimiser", {}), "the record")}
    return {**defaults, **recorded, "optimiser": optimiser} == config_record(config)


class Training(UpdateLoop):
    """All seeds of a baseline in training, and the weights of the best or the last evaluation."""

    metric = "validation error"

    def __init__(self, config: BaselineConfig, progress: bool) -> None:
        self.config = config
        device = pick_device(config.device)
        train = load_split(config, "train")
        self.valid = load_split(config, "valid")
        self.x = known_scenes(config, train, device)
        self.model = network(config).to(device)
        if config.whiten:
            self.model.whitening = Whitening.of(self.x, config.whiten)
        state = TrainState.fresh(initial_weights(self.model, config.seed_list, device), ema=config.optimiser.ema > 0)
        update = Update(
            ClassifierObjective(self.model),
            source(config, train, device),
            state,
            config.optimiser,
            Key.of(config.seed_list, device),
            Part.of(config.optimiser.batch),
            half=in_bfloat16(config.precision, device),
            compiled=is_compiled(config.compile, device),
        )
        runtime = RuntimeConfig(
            log_every=config.evaluate_every or config.optimiser.updates,
            evaluate_every=config.evaluate_every,
            checkpoint_every=0,
            progress=progress,
        )
        super().__init__(update, config.optimiser, runtime, config.seed_list, longest=LONGEST)
        self.curve: list[Record] = []
        self.chosen: Weights = {name: w.detach().clone() for name, w in state.evaluated.items()}
        self.chosen_at = [0] * config.seeds
        self.best = [float("inf")] * config.seeds

    def run(self) -> list[Record]:
        """All updates; the curve of cost and validation error."""
        self.run_updates()
        if not self.finished:
            raise KeyboardInterrupt
        return self.curve

    def log(self, costs: Tensor) -> None:
        _, denoising, classification = costs.mean(0).tolist()
        self.curve.append({"step": self.step, "denoising": denoising, "classification": classification})

    def evaluate(self) -> float:
        """Errors on validation; remembers the weights that ``select`` asks for."""
        now = {name: w.detach() for name, w in self.update.current_state().evaluated.items()}
        population = population_moments(self.model, now, self.x[: self.config.statistics])
        found = self.error(now, population, self.valid)
        for seed, error in enumerate(found):
            if self.config.select == "last" or error < self.best[seed]:
                self.best[seed], self.chosen_at[seed] = error, self.step
                for name, w in now.items():
                    self.chosen[name][seed] = w[seed]
        self.curve[-1]["valid_error"] = found
        return sum(found) / len(found)

    def error(self, weights: Weights, population: Sequence[Moments], scenes: Scenes) -> list[float]:
        """Mean error per seed."""
        return [float(e) for e in errors(self.model, weights, population, scenes).mean(1)]
