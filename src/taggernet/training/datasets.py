"""From a configuration to the scenes of each split and the source of training batches on a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from taggernet import data
from taggernet.data import Scenes
from taggernet.randomness import Key
from taggernet.training.config import Config, DataConfig
from taggernet.training.sources import FixedSource, FreshSource, LabelledSource, Part, Source

BUILT_IN = ("shapes", "texture-mnist-1", "texture-mnist-2")


def split(config: DataConfig, name: str) -> Scenes:
    """The scenes of a split (train, valid, test), with the configuration's permutation applied."""
    count = {"train": config.train, "valid": config.valid, "test": config.test}[name]
    if config.name == "shapes":
        scenes = data.shapes(count, config.seed, config.objects, config.size, style=config.style, split=name)
    elif config.name in BUILT_IN:
        scenes = data.texture_mnist(int(config.name[-1]), name, config.seed)[:count]
    else:
        scenes = _own_split(data.load(config.name), config, name)
    return permuted(scenes, config) if config.permuted else scenes


def _own_split(scenes: Scenes, config: DataConfig, name: str) -> Scenes:
    """A user's file, cut into parts at random: a tenth each for validation and test, at most what was asked."""
    n = len(scenes)
    valid, test = min(config.valid, n // 10), min(config.test, n // 10)
    order = Key.of(config.seed).fold("split").permutation(n).numpy()
    bounds = {"valid": (0, valid), "test": (valid, valid + test), "train": (valid + test, n)}[name]
    return scenes[np.sort(order[slice(*bounds)])]


def permutation(config: DataConfig, elements: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The one fixed permutation of the elements."""
    return Key.of(config.seed).fold("elements").permutation(elements).numpy()


def permuted(scenes: Scenes, config: DataConfig) -> Scenes:
    shape = scenes.x.shape
    order = permutation(config, int(np.prod(shape[1:])))
    moved = scenes.x.reshape(len(scenes), -1)[:, order].reshape(shape)
    groups = scenes.groups
    if groups is not None:
        groups = groups.reshape(len(scenes), -1)[:, order].reshape(shape)
    return replace(scenes, x=moved, groups=groups)


def source(config: Config, device: torch.device, seeds: list[int], part: Part, train: Scenes) -> Source:
    """Training batches for all seeds, on the device."""
    key = Key.of(seeds, device)
    scenes: Source
    if config.data.mode == "fresh":
        scenes = FreshSource(_fresh(config.data, device), key.fold("scenes"), part)
    else:
        scenes = FixedSource(_rows(train, device), key.fold("order"), part)
    if not (config.class_cost and config.data.labels):
        return scenes
    if train.classes is None:
        raise ValueError("class_cost is set but the training data has no classes")
    chosen = data.labelled_subset(train.classes, config.data.labels, config.data.seed, config.model.classes)
    classes = torch.from_numpy(train.classes[chosen]).to(device).reshape(len(chosen), -1).long()
    return LabelledSource(scenes, _rows(train, device)[torch.from_numpy(chosen).to(device)], classes,
                          key.fold("labelled order"), part)  # fmt: skip


def _rows(scenes: Scenes, device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(scenes.x)).reshape(len(scenes), -1).to(device)


def _fresh(config: DataConfig, device: torch.device) -> Callable[[Key, int, int], Tensor]:
    """A function that draws new scenes on the device."""
    if config.name == "shapes":
        table = data.placements(config.size, config.style, device)
        order = torch.from_numpy(permutation(config, config.size**2)).to(device) if config.permuted else None

        def draw_shapes(key: Key, count: int, first: int) -> Tensor:
            x, _ = data.fresh_shapes(key, count, config.objects, config.size, first, table=table)
            return x if order is None else x[..., order]

        return draw_shapes
    if config.name in BUILT_IN:
        digits = int(config.name[-1])
        images, labels = (torch.from_numpy(a).to(device) for a in data.mnist("train"))
        bank = data.texture_bank(device)
        order = torch.from_numpy(permutation(config, 28 * 28)).to(device) if config.permuted else None

        def draw_textures(key: Key, count: int, first: int) -> Tensor:
            x, _, _ = data.fresh_texture_mnist(key, images, labels, bank, count, digits, first)
            return x if order is None else x[..., order]

        return draw_textures
    raise ValueError(f"fresh scenes cannot be drawn for {config.name!r}: use data.mode fixed for your own data")
