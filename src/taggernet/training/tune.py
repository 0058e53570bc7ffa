"""Settings for your own data, found without the true groups: a few short trainings, then the best setting in full.

# S settings, each with several first weights, in the place of seeds

Settings that differ in numbers alone (noise, learning rate, v and its rate) are trained as one stack of models, like
seeds; those that differ in anything else are stacks of their own. Each is trained from two first weights: groups that
only chance made differ between the two. The best is the one with the highest ``GroupingReport.score``, the default
unless another is clearly better (docs/what-makes-groups-form.md).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch import Tensor

from taggernet.config.run import Config, without_retired
from taggernet.data import Scenes
from taggernet.data.lazy import LazyRows
from taggernet.fileio import make_folder, write_json
from taggernet.grouping_report import grouping_report
from taggernet.nets.norm import NormKind
from taggernet.rng import Key
from taggernet.tag.informed import between_clusters
from taggernet.tagger import Tagger
from taggernet.tagger_parts import corruption_for, likelihood_for
from taggernet.training import datasets
from taggernet.training.adam import TrainState, by_seed
from taggernet.training.auto_config import ScaleBy, choices, config_for
from taggernet.training.distributed import pick_device, world_size
from taggernet.training.objective import Objective
from taggernet.training.precision import in_bfloat16, is_captured
from taggernet.training.seeds import initial_weights
from taggernet.training.sources import Part
from taggernet.training.step import Update
from taggernet.training.update_loop import UpdateLoop

UPDATES, SCENES, STARTS, TWINS = 400, 100, 2, 2
"""Of each setting: validation scenes and random starts that it is judged by, and first weights."""
FADING = 0.5
"""Of masks that start from parts: the tie that is tried beside a whole one."""
WIDEST = 512
"""Width up to which four times the default is tried on binary scenes."""
MOST_PARTS = 1_024
"""Positions up to which masks that start from values or parts are tried."""
BETWEEN = 0.08
"""Share of values between two clusters up to which masks that start from values are tried: elsewhere they give
clusters too, and the same ones every time."""
FEWEST = 20
"""Validation scenes from which on settings can be told apart."""
MARGIN = 0.15
"""The default is only left for a score that is higher by this much: after a short training, scores are rough."""
TIED = 0.2
"""How much more what a score lacks of 1 counts with masks that start from the scene: they are tied to their start, and
so more alike anyway."""
FILE = "tuning.json"
OF_MODEL = ("noise", "norm", "widths", "masks", "start", "tie")
"""Fields of the model in which candidates differ, beside K."""
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


def candidates(config: Config, default: Config | None = None) -> list[Config]:
    """The configuration first, then others around it. What differs from the ``default`` was asked for and stays."""
    model, default = config.model, default or config
    wider, widest = (tuple(times * width for width in model.widths) for times in (2, 4))
    widest, less = widest if widest[0] <= WIDEST else wider, max(2, config.groups - 1)
    posterior: dict[str, Any] = {"masks": "posterior"}
    parts: dict[str, Any] = {"start": "parts"}
    tried: list[dict[str, Any]]
    if model.kind == "real":
        tried = [posterior, {"start": "values"}, parts, parts | {"tie": FADING}]
    elif model.kind == "binary":
        tried = [
            {"groups": less}, {"noise": 0.5 * model.noise}, posterior | {"widths": widest},
            parts | {"noise": 0.25 * model.noise},
        ]  # fmt: skip
    else:
        other: NormKind = "layer" if model.norm == "batch" else "batch"
        tried = [{"groups": less}, {"norm": other}, {"widths": wider}]
    found = [config]
    for changes in tried:
        fits = "start" not in changes or (model.start_patch == 1 and model.positions <= MOST_PARTS)
        if fits and all(_is_free(name, config, default) for name in changes):
            found.append(changed(config, changes))
    return [one for i, one in enumerate(found) if one not in found[:i]]


def changed(config: Config, changes: dict[str, Any]) -> Config:
    """The configuration with another ``setting``."""
    of_model = {name: value for name, value in changes.items() if name in OF_MODEL}
    groups = changes.get("groups", config.groups)
    config = replace(config, model=replace(config.model, **of_model))
    return config if groups == config.groups else replace(config, groups=groups, test_groups=groups)


def _is_free(name: str, config: Config, default: Config) -> bool:
    """Whether a setting was not asked for: it is what it would be by default."""
    if name == "groups":
        return (config.groups, config.test_groups) == (default.groups, default.groups)
    return bool(getattr(config.model, name) == getattr(default.model, name))


def tuned(config: Config, folder: Path, scale_by: ScaleBy | None = None) -> Config:
    """The configuration of a run on a user's file with the best of a few settings, as chosen when the run was new.

    Unchanged for a run that was begun without, and where tuning does not pay: in a training that is short beside it,
    with one group, with few validation scenes, from trained weights, or in a job of several processes.
    """
    known, short = (folder / FILE).is_file(), config.optimiser.updates < 5 * UPDATES
    if (short or config.test_groups < 2 or config.start_from or world_size() > 1) and not known:
        return config
    default = config_for(config.data.name, config.model.kind, config.data.channels_axis, scale_by)
    if known:
        return _chosen_before(folder / FILE, config, default)
    if (folder / "config.json").exists() or min(config.data.valid, default.data.valid) < FEWEST:
        return config
    count = len(candidates(config, default))
    print(f"tuning: up to {count} settings, {UPDATES} updates each (--no-tune leaves this out)", flush=True)
    trials = tune(config, default=default, updates=UPDATES)
    write_trials(folder, trials)
    print(f"chosen: {choices(trials[0].config)} (score {trials[0].score:.2f}, see {folder / FILE})", flush=True)
    return trials[0].config


def tune(
    config: Config, scenes: Scenes | None = None, *, default: Config | None = None, updates: int = UPDATES
) -> list[Trial]:
    """Try the ``candidates`` for this many updates each, the best first; ``scenes`` are your own, as for ``train``."""
    device = pick_device(config.runtime.device)
    train = datasets.training_set(config, scenes)
    valid = datasets.load_split(config.data, "valid", scenes)[:SCENES]
    if len(valid) < 2:
        raise ValueError(f"tuning needs validation scenes, but there are {len(valid)}: give more scenes, or --no-tune")
    tried, stacks = candidates(config, default), dict[str, list[Config]]()
    if not _values_tell(config, valid):
        tried = [one for one in tried if one == config or one.model.start != "values"]
    for candidate in tried:
        alike = {name: value for name, value in setting(candidate).items() if name != "noise"}
        stacks.setdefault(json.dumps(alike), []).append(candidate)
    trials = [trial for stack in stacks.values() for trial in Stack(stack, train, device, updates).trials(valid)]
    return ranked(trials, setting(config))


def _values_tell(config: Config, scenes: Scenes) -> bool:
    """Whether the values of a scene fall into K clusters with little between them."""
    if config.model.kind != "real":
        return False
    x = torch.from_numpy(np.ascontiguousarray(scenes.x)).reshape(len(scenes), -1)
    return between_clusters(Tagger(config.model).inputs(x).detach(), config.groups, config.model.channels) < BETWEEN


def ranked(trials: Sequence[Trial], default: dict[str, Any]) -> list[Trial]:
    """The best first: by score, and the default before those that are not better by ``MARGIN``."""

    def worth(trial: Trial) -> float:
        is_default, is_tied = setting(trial.config) == default, trial.config.model.start != "random"
        return trial.score + MARGIN * is_default - TIED * (1 - trial.score) * is_tied

    return sorted(trials, key=worth, reverse=True)


# --- in a run's folder --------------------------------------------------------------------------------------------


def setting(config: Config) -> dict[str, Any]:
    """What candidates differ in."""
    model = {name: getattr(config.model, name) for name in OF_MODEL}
    return {**model, "widths": list(config.model.widths), "groups": config.groups}


def write_trials(folder: Path, trials: Sequence[Trial]) -> None:
    """All trials, the best first, into tuning.json."""
    make_folder(folder)
    rows = [
        {**setting(trial.config), **{name: round(getattr(trial, name), 4) for name in JUDGED}, "chosen": trial is best}
        for best in trials[:1]
        for trial in trials
    ]
    write_json(folder / FILE, rows)


def _chosen_before(path: Path, config: Config, default: Config) -> Config:
    """The configuration with what tuning.json says was chosen; what was asked for stays."""
    try:
        best = json.loads(path.read_text("utf-8"))[0]
        written = [name for name in (*OF_MODEL, "groups") if name in best]  # earlier versions had but the three below
        chosen = {name: best[name] for name in ("noise", "norm", *written)} | {"widths": tuple(best["widths"])}
        found = changed(config, {name: value for name, value in chosen.items() if _is_free(name, config, default)})
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not what tuning wrote ({error}): remove it, or give --no-tune") from None
    without_retired(best, path)  # refuses a choice that this version cannot train
    return found


# --- training -----------------------------------------------------------------------------------------------------


class Stack(UpdateLoop):
    """Settings that differ in numbers alone, in training; each ``TWINS`` times, with other first weights."""

    def __init__(
        self, settings: Sequence[Config], train: Scenes | LazyRows, device: torch.device, updates: int
    ) -> None:
        self.settings = settings = [one for one in settings for _ in range(TWINS)]
        config, seeds = settings[0], [one.first_seed + i % TWINS for i, one in enumerate(settings)]

        def column(values: list[float]) -> Tensor:
            return torch.tensor(values, device=device)

        self.model = Tagger(config.model).to(device)
        self.model.use_kernels(config.runtime.kernels)
        noise = column([one.model.noise for one in settings])
        self.model.corruption = corruption_for(config.model, noise.reshape(-1, 1, 1))
        self.model.likelihood = likelihood_for(config.model, noise.reshape(-1, 1, 1, 1))
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
        runtime = replace(config.runtime, log_every=updates, evaluate_every=0, checkpoint_every=0)
        super().__init__(update, adam, runtime, seeds)

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
