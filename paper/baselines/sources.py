"""Data of the baselines: their splits, and labelled and unlabelled batches as a function of the step number.

# S seeds · B batch · N elements · n scenes · D digits per scene

With few labels the labelled scenes are a fixed, balanced part of the training set, and only the Ladder sees the rest
of it, without labels. ``labelled="fresh"`` with few labels composes scenes of that many labelled digits instead: more
scenes than the paper's 1,000, of no more digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from paper.baselines.recipes import BaselineConfig
from taggernet import data
from taggernet.config.run import DataConfig
from taggernet.data import Scenes
from taggernet.data.scenes import Array
from taggernet.rng import Key
from taggernet.training.datasets import permutation, permute_elements
from taggernet.training.objective import Batch
from taggernet.training.sources import Part, Rows


def digits_of(config: BaselineConfig, split: str) -> tuple[Array, Array]:
    """Images and labels of a split."""
    return data.mnist(split) if config.digits == "mnist" else data.fixture_digits(split)


def load_split(config: BaselineConfig, name: str) -> Scenes:
    """The scenes of a split (train, valid, test), the same as Tagger's for the same seed."""
    images, labels = digits_of(config, name)
    if config.data == "mnist":
        scenes = Scenes(images.astype(np.float32) / 255, classes=labels, kind="real")
    else:
        scenes = data.texture_mnist(int(config.data[-1]), name, config.data_seed, images=images, labels=labels)
    return permute_elements(scenes, DataConfig(seed=config.data_seed)) if config.permuted else scenes


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


@runtime_checkable
class RowSource(Protocol):
    """Scenes and their classes, (S, B, N) and (S, B, D), for every step; training.sources.Rows is one."""

    def prepare(self, step: int) -> None: ...

    def valid_until(self, step: int) -> float: ...

    def draw(self, step: Tensor) -> tuple[Tensor, ...]: ...


class FreshRows:
    """New compositions at every update."""

    def __init__(self, compose: Callable[[Key, int], tuple[Tensor, Tensor]], key: Key, batch: int) -> None:
        self.compose, self.key, self.batch = compose, key, batch

    def prepare(self, step: int) -> None:
        return

    def valid_until(self, step: int) -> float:
        return math.inf

    def draw(self, step: Tensor) -> tuple[Tensor, ...]:
        return self.compose(self.key.fold(step), self.batch)


class BaselineSource:
    """A labelled and, for the Ladder, an equally large unlabelled batch per update."""

    def __init__(self, labelled: RowSource, unlabelled: RowSource | None) -> None:
        self.labelled, self.unlabelled = labelled, unlabelled
        self._draws = [labelled] if unlabelled is None else [labelled, unlabelled]

    def prepare(self, step: int) -> None:
        for draw in self._draws:
            draw.prepare(step)

    def valid_until(self, step: int) -> float:
        return min(draw.valid_until(step) for draw in self._draws)

    def batch(self, step: Tensor) -> Batch:
        x, classes = self.labelled.draw(step)
        return Batch(x if self.unlabelled is None else self.unlabelled.draw(step)[0], x, classes)


def source(config: BaselineConfig, train: Scenes, device: torch.device) -> BaselineSource:
    """Training batches for all seeds, on the device."""
    key, part = Key.of(config.seed_list, device), Part.of(config.optimiser.batch)
    x, classes = tensors(train, device)
    labelled: RowSource
    if config.labelled == "fresh":
        labelled = FreshRows(_composer(config, device, config.labels), key.fold("labelled scenes"), part.batch)
    else:
        assert train.classes is not None
        chosen = torch.from_numpy(with_labels(config, train.classes)).to(device)
        labelled = Rows((x[chosen], classes[chosen]), key.fold("labelled order"), part)
    if config.method != "ladder":
        return BaselineSource(labelled, None)
    if config.unlabelled == "fresh":
        return BaselineSource(labelled, FreshRows(_composer(config, device), key.fold("scenes"), part.batch))
    return BaselineSource(labelled, Rows((x, classes), key.fold("order"), part))


def known_scenes(config: BaselineConfig, train: Scenes, device: torch.device) -> Tensor:
    """The x (n, N) whose statistics a method may know: a supervised one has seen no scenes without labels."""
    x, _ = tensors(train, device)
    if config.method == "ladder" or config.labels == len(train):
        return x
    if config.labelled == "fresh":
        key = Key.of(config.data_seed, device).fold("statistics")
        return _composer(config, device, config.labels)(key, config.statistics)[0]
    assert train.classes is not None
    return x[torch.from_numpy(with_labels(config, train.classes)).to(device)]


def _composer(
    config: BaselineConfig, device: torch.device, labels: int | None = None
) -> Callable[[Key, int], tuple[Tensor, Tensor]]:
    """A function that composes scenes of the training digits, or of the ``labels`` of them that have labels."""
    images, marks = digits_of(config, "train")
    if labels is not None:
        chosen = with_labels(config, marks)
        images, marks = images[chosen], marks[chosen]
    pictures, classes = torch.from_numpy(images).to(device), torch.from_numpy(marks).to(device)
    bank, digits = data.texture_bank(device), int(config.data[-1])
    order = None
    if config.permuted:
        order = torch.from_numpy(permutation(DataConfig(seed=config.data_seed), images[0].size)).to(device)

    def compose(key: Key, count: int) -> tuple[Tensor, Tensor]:
        x, _, shown = data.fresh_texture_mnist(key, pictures, classes, bank, count, digits)
        return x if order is None else x[..., order], shown if digits == 2 else shown.unsqueeze(-1)

    return compose
