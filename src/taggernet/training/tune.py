"""Settings for your own data, found without the true groups: a few short trainings, then the best setting in full.

Each setting is trained from two first weights (training/trials.py): groups that only chance made differ between the
two. The best is the one with the highest ``GroupingReport.score``, the default unless another is clearly better
(docs/what-makes-groups-form.md).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from taggernet.config.run import Config, without_retired
from taggernet.data import Scenes
from taggernet.fileio import make_folder, write_json
from taggernet.nets.norm import NormKind
from taggernet.tag.informed import between_clusters
from taggernet.tagger import Tagger
from taggernet.training import datasets
from taggernet.training.auto_config import ScaleBy, choices, config_for
from taggernet.training.distributed import pick_device, world_size
from taggernet.training.run_dir import TUNING
from taggernet.training.stopping import duration
from taggernet.training.trials import JUDGED, Trial, train_stacks

UPDATES, SCENES = 400, 100
"""Of each setting, and the validation scenes that it is judged by."""
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
OF_MODEL = ("noise", "norm", "widths", "masks", "start", "tie")
"""Fields of the model in which candidates differ, beside K."""
OF_SIZE = ("widths", "lr")
"""Settings that come with others; where they were asked for, the others are tried without."""
PARTS_RATE, WIDEST_RATE = 3e-3, 1e-3
"""Highest learning rates of wider layers: with masks that start from parts, and with posterior masks, where groups that
have formed fall apart again with a higher one."""


def candidates(config: Config, default: Config | None = None) -> list[Config]:
    """The configuration first, then others around it. What differs from the ``default`` was asked for and stays."""
    model, default = config.model, default or config
    wider, widest = (tuple(times * width for width in model.widths) for times in (2, 4))
    widest, less = widest if widest[0] <= WIDEST else wider, max(2, config.groups - 1)
    posterior: dict[str, Any] = {"masks": "posterior"}
    parts: dict[str, Any] = {"start": "parts", "widths": wider, "lr": min(PARTS_RATE, config.optimiser.lr)}
    tried: list[dict[str, Any]]
    if model.kind == "real":
        tried = [posterior, {"start": "values"}, parts, parts | {"tie": FADING}]
    elif model.kind == "binary":
        tried = [
            {"groups": less}, {"noise": 0.5 * model.noise}, posterior | {"widths": widest, "lr": WIDEST_RATE},
            parts | {"noise": 0.25 * model.noise},
        ]  # fmt: skip
    else:
        other: NormKind = "layer" if model.norm == "batch" else "batch"
        tried = [{"groups": less}, {"norm": other}, {"widths": wider}]
    found = [config]
    for changes in tried:
        fits = "start" not in changes or (model.start_patch == 1 and model.positions <= MOST_PARTS)
        free = {name: value for name, value in changes.items() if _is_free(name, config, default)}
        if fits and set(changes) - set(free) <= set(OF_SIZE):
            found.append(changed(config, free))
    return [one for i, one in enumerate(found) if one not in found[:i]]


def changed(config: Config, changes: dict[str, Any]) -> Config:
    """The configuration with another ``setting``."""
    of_model = {name: value for name, value in changes.items() if name in OF_MODEL}
    groups, lr = changes.get("groups", config.groups), changes.get("lr", config.optimiser.lr)
    optimiser = replace(config.optimiser, lr=lr)
    config = replace(config, model=replace(config.model, **of_model), optimiser=optimiser)
    return config if groups == config.groups else replace(config, groups=groups, test_groups=groups)


def _is_free(name: str, config: Config, default: Config) -> bool:
    """Whether a setting was not asked for: it is what it would be by default."""
    if name == "groups":
        return (config.groups, config.test_groups) == (default.groups, default.groups)
    if name == "lr":
        return config.optimiser.lr == default.optimiser.lr
    return bool(getattr(config.model, name) == getattr(default.model, name))


def tuned(config: Config, folder: Path, scale_by: ScaleBy | None = None) -> Config:
    """The configuration of a run on a user's file with the best of a few settings, as chosen when the run was new.

    Unchanged for a run that was begun without, and where tuning does not pay: in a training that is short beside it,
    with one group, with few validation scenes, from trained weights, or in a job of several processes.
    """
    known, short = (folder / TUNING).is_file(), config.optimiser.updates < 5 * UPDATES
    if (short or config.test_groups < 2 or config.start_from or world_size() > 1) and not known:
        return config
    default = config_for(config.data.name, config.model.kind, config.data.channels_axis, scale_by)
    if known:
        return _chosen_before(folder / TUNING, config, default)
    if (folder / "config.json").exists() or min(config.data.valid, default.data.valid) < FEWEST:
        return config
    count = len(candidates(config, default))
    print(f"tuning: up to {count} settings, {UPDATES} updates each (--no-tune leaves this out)", flush=True)
    begin = time.monotonic()
    try:
        trials = tune(config, default=default, updates=UPDATES)
    except KeyboardInterrupt:
        print("stopped while tuning, of which nothing is kept: repeat the command, or add --no-tune", file=sys.stderr)
        raise
    write_trials(folder, trials)
    found = f"score {trials[0].score:.2f}, after {duration(time.monotonic() - begin)}, see {folder / TUNING}"
    print(f"chosen: {choices(trials[0].config)} ({found})", flush=True)
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
    return ranked(train_stacks(list(stacks.values()), train, valid, device, updates), setting(config))


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
    return {**model, "widths": list(config.model.widths), "groups": config.groups, "lr": config.optimiser.lr}


def write_trials(folder: Path, trials: Sequence[Trial]) -> None:
    """All trials, the best first, into tuning.json."""
    make_folder(folder)
    rows = [
        {**setting(trial.config), **{name: round(getattr(trial, name), 4) for name in JUDGED}, "chosen": trial is best}
        for best in trials[:1]
        for trial in trials
    ]
    write_json(folder / TUNING, rows)


def _chosen_before(path: Path, config: Config, default: Config) -> Config:
    """The configuration with what tuning.json says was chosen; what was asked for stays."""
    try:
        best = json.loads(path.read_text("utf-8"))[0]
        written = [name for name in (*OF_MODEL, "groups", "lr") if name in best]  # earlier versions had fewer
        chosen = {name: best[name] for name in ("noise", "norm", *written)} | {"widths": tuple(best["widths"])}
        found = changed(config, {name: value for name, value in chosen.items() if _is_free(name, config, default)})
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not what tuning wrote ({error}): remove it, or give --no-tune") from None
    without_retired(best, path)  # refuses a choice that this version cannot train
    return found
