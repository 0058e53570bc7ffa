"""Data of the baselines: Tagger's own splits, and labelled and unlabelled batches as a function of the step number.

# S seeds · B batch · N elements · n scenes · D digits per scene

With few labels the labelled scenes are a fixed, balanced part of the training set, and only the Ladder sees the rest
of it, without labels. ``labelled="fresh"`` with few labels composes scenes of that many labelled digits instead: more
scenes than the paper's 1,000, of no more digits.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from paper.baselines.recipes import BaselineConfig
from taggernet import data
from taggernet.arrays import Array
from taggernet.config.run import DataConfig
from taggernet.data import Scenes
from taggernet.rng import Key
from taggernet.training import datasets
from taggernet.training.sources import Draw, FixedSource, FreshSource, LabelledSource, Part, Source


def data_config(config: BaselineConfig) -> DataConfig:
    """Tagger's configuration of the same data."""
    return DataConfig(
        name=config.data, seed=config.data_seed, digits=config.digits, permuted=config.permuted, depth=config.depth
    )


def load_split(config: BaselineConfig, name: str) -> Scenes:
    """The scenes of a split (train, valid, test), the same as Tagger's for the same seed; or the digits themselves."""
    if config.data != "mnist":
        return datasets.load_split(data_config(config), name)
    images, labels = datasets.digits_of(data_config(config), name)
    scenes = Scenes(images.astype(np.float32) / 255, classes=labels, kind="real")
    return datasets.permute_elements(scenes, data_config(config)) if config.permuted else scenes


def with_labels(config: BaselineConfig, classes: Array) -> Array:
    """Which training scenes (or digits) have labels."""
    if config.labels > len(classes):
        raise ValueError(f"labels={config.labels} was given, but there are {len(classes)} training scenes: lower it")
    if config.labels == len(classes):
        return np.arange(len(classes))
    return data.labelled_subset(classes, config.labels, config.data_seed)


def tensors(scenes: Scenes, device: torch.device) -> tuple[Tensor, Tensor]:
    """x float32 (n, N) and classes (n, D) on the device."""
    assert scenes.classes is not None
    x = torch.from_numpy(np.ascontiguousarray(scenes.x)).reshape(len(scenes), -1)
    classes = torch.from_numpy(np.ascontiguousarray(scenes.classes)).reshape(len(scenes), -1)
    return x.float().to(device), classes.long().to(device)


def source(config: BaselineConfig, train: Scenes, device: torch.device) -> Source:
    """Labelled batches for all seeds and, for the Ladder, equally large unlabelled ones."""
    key, part = Key.of(config.seed_list, device), Part.of(config.optimiser.batch)
    x, classes = tensors(train, device)
    labelled: Source
    if config.labelled == "fresh":
        labelled = FreshSource(_labelled_compositions(config, device), key.fold("labelled scenes"), part)
    else:
        chosen = _labelled_rows(config, train, device)
        labelled = FixedSource(x[chosen], key.fold("labelled order"), part, classes[chosen])
    if config.method != "ladder":
        return labelled
    if config.unlabelled == "fresh":
        compose = datasets.fresh_draw(data_config(config), device)
        return LabelledSource(FreshSource(compose, key.fold("scenes"), part), labelled)
    return LabelledSource(FixedSource(x, key.fold("order"), part), labelled)


def known_scenes(config: BaselineConfig, train: Scenes, device: torch.device) -> Tensor:
    """The x (n, N) whose statistics a method may know: a supervised one has seen no scenes without labels."""
    x, _ = tensors(train, device)
    if config.method == "ladder" or config.labels == len(train):
        return x
    if config.labelled == "fresh":
        key = Key.of(config.data_seed, device).fold("statistics")
        return _labelled_compositions(config, device)(key, config.statistics, 0)[0]
    return x[_labelled_rows(config, train, device)]


def _labelled_rows(config: BaselineConfig, train: Scenes, device: torch.device) -> Tensor:
    assert train.classes is not None
    return torch.from_numpy(with_labels(config, train.classes)).to(device)


def _labelled_compositions(config: BaselineConfig, device: torch.device) -> Draw:
    """New scenes of the digits that have labels."""
    wanted = data_config(config)
    _, labels = datasets.digits_of(wanted, "train")
    return datasets.fresh_draw(wanted, device, with_labels(config, labels))
