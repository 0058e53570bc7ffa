"""Training that starts from trained weights: a second phase (``start_from``) or fine-tuning (``finetune``).

A second phase keeps the configuration of the run and takes over the weights that fit it. Fine-tuning also takes over
the model's network, units, K and T. A model that does not fit is refused here, before anything is written.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from taggernet.config.run import Config
from taggernet.evaluation import stack_weights
from taggernet.model_io import read_model_config, read_use
from taggernet.pretrained import local_folder, locate
from taggernet.tagger import Tagger
from taggernet.training.run_dir import models_of


def finetune(config: Config, name: str) -> Config:
    """The configuration of a run on the same data that starts from a model and keeps its network, units, K and T.

    ``name`` is a shipped name, the folder of a model or a run (its best seed), or a Hub id; it starts every seed. The
    model's classes stay; if the data have more, the layer of the classes is made anew.
    """
    folder = locate(name)
    theirs, ours = read_model_config(folder), config.model
    groups, iterations = read_use(folder)
    same_shape = theirs.mapping == "ladder" or theirs.shape == ours.shape
    if (theirs.elements, theirs.channels) != (ours.elements, ours.channels) or not same_shape:
        raise ValueError(
            f"{name} has inputs of shape {theirs.input_shape}, but the scenes of this run have {ours.input_shape}: "
            "choose a model of the same shape, or cut or resize the scenes"
        )
    if theirs.kind == "binary" and ours.kind == "real":
        raise ValueError(
            f"{name} is a model of binary scenes, but these hold other values than 0 and 1: "
            "choose a model of real scenes, or threshold x first"
        )
    model = replace(
        theirs, shape=ours.shape, classes=max(theirs.classes, ours.classes), frozen_iterations=0,
        channels_first=ours.channels_first,
    )  # fmt: skip
    start = str(folder.resolve()) if Path(name).expanduser().exists() else name
    return replace(
        config, model=model, start_from=start, groups=groups, test_groups=groups, test_iterations=iterations
    )  # fmt: skip


def start_weights(config: Config, device: torch.device) -> dict[str, Tensor]:
    """The weights that ``start_from`` names, seed by seed if they are a run's; one model starts every seed."""
    name, seeds = config.start_from, config.seed_list
    run = local_folder(name)
    there = [] if run is None else [folder.name for folder in models_of(run)]
    if run is not None and there:
        lacking = [seed for seed in seeds if f"seed-{seed}" not in there]
        if lacking:
            raise ValueError(
                f"start_from={name} has no seed {lacking[0]}, only {', '.join(there)}: choose --seeds and --first-seed "
                "among them, or name the folder of one model, which then starts every seed"
            )
        models = [Tagger.load(run / f"seed-{seed}", device) for seed in seeds]
    else:
        models = [Tagger.from_pretrained(name, device)] * len(seeds)
    _check_fit(config, models[0])
    return stack_weights(models)


def _check_fit(config: Config, model: Tagger) -> None:
    theirs, ours = model.config, config.model
    if theirs.elements != ours.elements or theirs.widths[0] != ours.widths[0]:
        raise ValueError(
            f"start_from={config.start_from} has inputs of shape {theirs.shape} and widths {theirs.widths}, "
            f"but this run has {ours.shape} and {ours.widths}: set shape and widths to the same"
        )
    for name in ("kind", "norm", "channels", "mapping"):
        if getattr(theirs, name) != getattr(ours, name):
            raise ValueError(
                f"start_from={config.start_from} has {name} {getattr(theirs, name)!r}, but this run has "
                f"{getattr(ours, name)!r}: set --{name} {getattr(theirs, name)}, or choose another model"
            )
