"""From a configuration to the scenes of each split and the source of training batches on a device."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from taggernet import data
from taggernet.arrays import Array
from taggernet.config.run import Config, DataConfig
from taggernet.data import Scenes
from taggernet.data.lazy import LazyArrays, LazyRows, open_data
from taggernet.data.sprites import sprite_table
from taggernet.data.tetrominoes import piece_table
from taggernet.rng import Key
from taggernet.training.sources import Draw, FixedSource, FreshSource, LabelledSource, Part, Source
from taggernet.training.streaming import StreamedSource

DIGITS = ("texture-mnist-1", "texture-mnist-2")
OF_OBJECTS = ("shapes", "tetrominoes", "sprites")
BUILT_IN = ("shapes", *DIGITS, "tetrominoes", "sprites")
IN_MEMORY = "scenes in memory"
"""Name of data that were handed to ``train`` and lie in no file."""
FREEZE_ON, START_FROM = 2_000, 2_000
"""Training scenes on which statistics are frozen, and whose parts masks start from, at most."""


def load_split(config: DataConfig, name: str, given: Scenes | None = None) -> Scenes:
    """The scenes of a split (train, valid, test; of a user's data also all), with the configuration's permutation.

    ``given`` are scenes in memory, to be split like a user's file.
    """
    if given is not None or config.name not in BUILT_IN:
        own = own_rows(config, name, given)
        scenes = own.data.scenes(own.rows)
        return permute_elements(scenes, config) if config.permuted else scenes
    count = {"train": config.train, "valid": config.valid, "test": config.test}[name]
    if config.name == "shapes":
        scenes = data.shapes(
            count, config.seed, config.objects, config.size, style=config.style, min_objects=config.min_objects,
            split=name,
        )  # fmt: skip
    elif config.name == "tetrominoes":
        scenes = data.tetrominoes(count, config.seed, config.objects, config.size, split=name)
    elif config.name == "sprites":
        scenes = data.sprites(
            count, config.seed, config.objects, config.size, min_objects=config.min_objects or config.objects,
            variant=config.variant, split=name,
        )  # fmt: skip
    else:
        images, labels = digits_of(config, name)
        scenes = data.texture_mnist(
            int(config.name[-1]), name, config.seed, images=images, labels=labels, depth=config.depth,
            digit_pool=config.digit_pool,
        )[:count]  # fmt: skip
    return permute_elements(scenes, config) if config.permuted else scenes


def digits_of(config: DataConfig, name: str) -> tuple[Array, Array]:
    """Images and labels of a split of the digits, or of the pool that training and validation share."""
    if config.digit_pool == "shared" and name != "test":
        name = "train+valid"
    return data.mnist(name) if config.digits == "mnist" else data.fixture_digits(name)


def training_set(config: Config, given: Scenes | None = None) -> Scenes | LazyRows:
    """The scenes to train on, in memory unless they are a user's and need more than ``runtime.resident`` there."""
    if given is not None or config.data.name not in BUILT_IN:
        own = own_rows(config.data, "train", given)
        if own.data.nbytes > config.runtime.resident * 2**20:
            return own
    return load_split(config.data, "train", given)


def scenes_to_freeze_on(config: Config, train: Scenes | LazyRows) -> Array | None:
    """Training scenes for the statistics of a BatchNorm model of a user's data; recipes keep those of the batch."""
    if config.data.name in BUILT_IN or config.model.norm != "batch" or len(train) < 2:
        return None
    return _spread_out(config, train, FREEZE_ON)


def scenes_to_start_from(config: Config, train: Scenes | LazyRows) -> Array | None:
    """Training scenes for the parts from which masks start, where they do."""
    return _spread_out(config, train, START_FROM) if config.model.start == "parts" else None


def _spread_out(config: Config, train: Scenes | LazyRows, most: int) -> Array:
    """At most so many training scenes, from everywhere in the data."""
    index = np.linspace(0, len(train) - 1, min(len(train), most)).astype(np.int64)
    if not isinstance(train, LazyRows):
        return train.x[index]
    x = train.take(index).reshape(len(index), config.model.positions, -1)
    x = x[:, permutation(config.data, x.shape[1])] if config.data.permuted else x
    return x.reshape(len(index), -1)


def own_rows(config: DataConfig, name: str, given: Scenes | None = None) -> LazyRows:
    """A user's data, cut into parts at random: a tenth each for validation and test, at most what was asked."""
    if given is None and config.name == IN_MEMORY:
        raise ValueError(
            "this run was trained on scenes in memory, which it does not keep: hand them in again as train(scenes=...)"
        )
    own = open_data(config.name, config.channels_axis) if given is None else LazyArrays.of(given)
    n = len(own)
    valid, test = min(config.valid, n // 10), min(config.test, n // 10)
    order = Key.of(config.seed).fold("split").permutation(n).numpy()
    train = min(n, valid + test + config.train)
    bounds = {"valid": (0, valid), "test": (valid, valid + test), "train": (valid + test, train), "all": (0, n)}[name]
    return LazyRows(own, np.sort(order[slice(*bounds)]))


def permutation(config: DataConfig, positions: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The one fixed permutation of the positions; the channels of a position stay together."""
    return Key.of(config.seed).fold("elements").permutation(positions).numpy()


def permute_elements(scenes: Scenes, config: DataConfig) -> Scenes:
    """The channels of a position stay together."""
    order = permutation(config, math.prod(scenes.shape))
    moved = scenes.x.reshape(len(scenes), len(order), -1)[:, order].reshape(scenes.x.shape)
    groups = scenes.groups
    if groups is not None:
        groups = groups.reshape(len(scenes), -1)[:, order].reshape(groups.shape)
    return replace(scenes, x=moved, groups=groups)


def source(config: Config, device: torch.device, seeds: list[int], part: Part, train: Scenes | LazyRows) -> Source:
    """Training batches for all seeds, on the device."""
    key = Key.of(seeds, device)
    if config.data.mode == "fresh":
        return _fresh_source(config, seeds, key, part)
    rows, order = _rows_of(config, train, device, part), key.fold("order")
    if not (config.class_cost and (config.data.labels or config.data.name not in BUILT_IN)):
        return rows(order, None, False)
    chosen = _labelled_rows(config, seeds, train, part)
    if config.class_pass == "shared" and np.array_equal(chosen, np.arange(len(train))):
        return rows(order, None, True)
    return LabelledSource(rows(order, None, False), rows(key.fold("labelled order"), chosen, True))


def _rows_of(
    config: Config, train: Scenes | LazyRows, device: torch.device, part: Part
) -> Callable[[Key, Array | None, bool], Source]:
    """Batches of the training set as a function of a key, the rows to take (None: all) and whether with classes."""
    if isinstance(train, LazyRows):
        every = np.arange(len(train))
        order = permutation(config.data, config.model.positions) if config.data.permuted else None

        def streamed(key: Key, chosen: Array | None, with_classes: bool) -> Source:
            return StreamedSource(train, every if chosen is None else chosen, key, part, order, with_classes)

        return streamed
    x = torch.from_numpy(np.ascontiguousarray(train.x)).reshape(len(train), -1).to(device)
    classes = None
    if train.classes is not None:
        classes = torch.from_numpy(train.classes).to(device).reshape(len(train), -1).long()

    def resident(key: Key, chosen: Array | None, with_classes: bool) -> Source:
        subset = None if chosen is None else torch.from_numpy(chosen).to(device)
        return FixedSource(x, key, part, classes if with_classes else None, subset)

    return resident


def _fresh_source(config: Config, seeds: list[int], key: Key, part: Part) -> Source:
    """New scenes at every update. Few labels are those of as many digits, from which labelled scenes are drawn."""
    device = key.word.device
    if config.data.twins and (part.first % 2 or part.count % 2):
        raise ValueError(
            f"twins come in pairs, but a process has {part.count} scenes: choose a batch that gives each an even number"
        )
    draw = fresh_draw(config.data, device)
    unlabelled = FreshSource(lambda *at: (draw(*at)[0], None), key.fold("scenes"), part)
    if not (config.class_cost and config.data.labels):
        return unlabelled
    _, labels = digits_of(config.data, "train")
    few = _labelled_subset(config, seeds, labels) if config.data.labels < len(labels) else None
    if few is None and config.class_pass == "shared":
        return FreshSource(draw, key.fold("scenes"), part)
    single = replace(config.data, twins=False)
    labelled = FreshSource(fresh_draw(single, device, few), key.fold("labelled scenes"), part)
    return LabelledSource(unlabelled, labelled)


def _labelled_rows(config: Config, seeds: list[int], train: Scenes | LazyRows, part: Part) -> Array:
    """The labelled scenes: as many as asked, of a user's data all; fewer than a batch are repeated to fill one."""
    classes, labels = train.classes, config.data.labels
    if classes is None:
        raise ValueError("class_cost is set but the training data has no classes: give some, or set class_cost to 0")
    if config.data.name in BUILT_IN and labels >= len(classes):
        chosen = np.arange(len(classes))
    elif config.data.name in BUILT_IN:
        chosen = _labelled_subset(config, seeds, classes)
    else:
        order = Key.of(config.data.seed).fold("labelled").permutation(len(classes)).numpy()
        known = order[(classes.reshape(len(classes), -1)[order] >= 0).all(1)]
        if not len(known):
            raise ValueError("class_cost is set but no training scene has a label: give some, or set class_cost to 0")
        chosen = np.sort(known[: labels or len(known)])
    count = chosen.shape[-1]
    return np.tile(chosen, -(-part.batch // count)) if count < part.batch else chosen


def _labelled_subset(config: Config, seeds: list[int], classes: Array) -> Array:
    """Balanced labelled scenes (or digits): (L,) for all seeds, or (S, L) where each seed draws its own."""
    shared = config.data.label_subset == "shared"
    drawing = [config.data.seed] if shared else seeds
    each = [data.labelled_subset(classes, config.data.labels, seed, config.model.classes) for seed in drawing]
    return each[0] if shared else np.stack(each)


def fresh_draw(config: DataConfig, device: torch.device, chosen: Array | None = None) -> Draw:
    """A function that draws new scenes on the device, of the chosen digits only where some are."""
    draw = _digit_draw(config, device, chosen) if config.name in DIGITS else _object_draw(config, device)
    if not config.permuted:
        return lambda *at: _flat(*draw(*at))
    side = 28 if config.name in DIGITS else config.size
    order = torch.from_numpy(permutation(config, side**2)).to(device)

    def draw_permuted(key: Key, count: int, first: int) -> tuple[Tensor, Tensor | None]:
        x, classes = draw(key, count, first)
        return _flat(x[..., order, :], classes)

    return draw_permuted


def _flat(x: Tensor, classes: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """x (*key, n, P, C) as rows (*key, n, P * C)."""
    return x.flatten(-2), classes


def _object_draw(config: DataConfig, device: torch.device) -> Draw:
    """Shapes, tetrominoes or sprites, x (*key, n, P, C)."""
    objects, size, fewest = config.objects, config.size, config.min_objects
    if config.name == "tetrominoes":
        pieces = piece_table(size, device)
        return lambda key, count, first: (
            data.fresh_tetrominoes(key, count, objects, size, first, table=pieces)[0],
            None,
        )
    if config.name == "sprites":
        table = sprite_table(size, device)

        def draw_sprites(key: Key, count: int, first: int) -> tuple[Tensor, None]:
            x, _ = data.fresh_sprites(
                key, count, objects, size, first, min_objects=fewest or objects, variant=config.variant, table=table
            )
            return x, None

        return draw_sprites
    placed = data.placements(size, config.style, device)

    def draw_shapes(key: Key, count: int, first: int) -> tuple[Tensor, None]:
        x, _ = data.fresh_shapes(key, count, objects, size, first, min_objects=fewest, table=placed)
        return x[..., None], None

    return draw_shapes


def _digit_draw(config: DataConfig, device: torch.device, chosen: Array | None) -> Draw:
    """TextureMNIST, x (*key, n, P, 1) and classes."""
    digits = int(config.name[-1])
    subset = None if chosen is None else torch.from_numpy(chosen).to(device)
    images, labels = (torch.from_numpy(a).to(device) for a in digits_of(config, "train"))
    bank = data.texture_bank(device)

    def draw_textures(key: Key, count: int, first: int) -> tuple[Tensor, Tensor]:
        x, _, classes = data.fresh_texture_mnist(
            key, images, labels, bank, count, digits, first, depth=config.depth, subset=subset, twins=config.twins
        )
        return x[..., None], classes.reshape(*x.shape[:-1], digits).long()

    return draw_textures
