"""One look at a scene: the model's grouping of it after every iteration, kept for the next question about it.

# K groups · H, W height and width · T iterations · C classes

A look is named by everything that determines it, so a page holds no tensors: it asks again and is answered from a
cache of bounded size that all its visitors share.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from taggernet import metrics
from taggernet.arrays import Array
from taggernet.config.validate import check_count
from taggernet.explorer import scenes
from taggernet.explorer.scenes import Scene, Source
from taggernet.rng import Key
from taggernet.tag import BitFlip, GaussianNoise, Grouping
from taggernet.tagger import Tagger

FEWEST_GROUPS, MOST_GROUPS, MOST_ITERATIONS = 2, 8, 10
COMPANIONS = 99
"""BatchNorm reads its statistics off the batch, so a scene is grouped among others, as in the evaluation."""
KEPT = 64
SEEDS = 2**31
MOST_TRIES = 20


@dataclass(frozen=True)
class Choice:
    """Which scene: number ``number`` of the test set, a random one of that many objects, or the cells drawn."""

    kind: str = "test"
    number: int = 0
    seed: int = 0
    cells: str = ""


@dataclass(frozen=True)
class Settings:
    """How it is looked at."""

    noise: float
    groups: int
    iterations: int
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Look:
    """A scene, its corrupted input, and its grouping."""

    scene: Scene
    x_tilde: Array
    grouping: Grouping
    ami: tuple[float, ...] | None
    """After each iteration, the start included; None where the truth is unknown."""

    @property
    def iterations(self) -> int:
        return len(self.grouping.history) - 1

    def without(self, iteration: int, removed: Sequence[int]) -> tuple[Array, Array, Array]:
        """z (K, H, W), m (K, H, W) and the picture (H, W) as of an iteration, with these groups taken away."""
        then = self.grouping.at(iteration)
        then = then.without(*removed) if removed else then
        return then.reconstructions[0], then.masks[0], then.denoised[0]


class Explorer:
    """A model with its scenes."""

    def __init__(self, model: Tagger, source: Source, name: str = "model") -> None:
        self.model, self.source, self.name = model.eval(), source, name
        config = model.config
        self.shape: tuple[int, ...] = config.shape
        self.binary = config.kind == "binary"
        self.most_noise = 0.45 if self.binary else round(5 * config.noise, 3) or 1.0
        self.first = Choice("test" if source.test is not None else "drawn", cells="0" * config.elements)
        self.low, self.high = self._range()
        self._looks = lru_cache(maxsize=KEPT)(self._look)

    def _range(self) -> tuple[float, float]:
        """The values shown as black and white."""
        test = self.source.test
        if self.binary or test is None:
            return 0.0, 1.0
        return float(test.x[:100].min()), float(test.x[:100].max())

    @property
    def usual_groups(self) -> int:
        """K to begin with: the model's own, as far as the slider goes."""
        return min(max(self.model.groups, FEWEST_GROUPS), MOST_GROUPS)

    @property
    def usual_iterations(self) -> int:
        """T to begin with: the model's own, as far as the slider goes."""
        return min(self.model.iterations, MOST_ITERATIONS)

    def look(self, choice: Choice, settings: Settings) -> Look:
        """Check what was asked for, and answer it."""
        if isinstance(settings.noise, bool) or not isinstance(settings.noise, int | float):
            raise TypeError("the noise is not a number: give one within the slider's range")
        if not 0 <= settings.noise <= self.most_noise:
            raise ValueError(f"noise={settings.noise} is out of range: choose 0 to {self.most_noise}")
        check_count("groups", settings.groups, low=FEWEST_GROUPS, high=MOST_GROUPS)
        check_count("iterations", settings.iterations, low=1, high=MOST_ITERATIONS)
        check_count("seed", settings.seed, high=SEEDS)
        check_count("seed", choice.seed, high=SEEDS)
        return self._looks(choice, settings)

    def scene(self, choice: Choice) -> Scene:
        if choice.kind == "test":
            return scenes.picked(self.source, choice.number)
        if choice.kind == "random":
            return scenes.made(self.source, choice.number, choice.seed)
        return scenes.drawn(self.source, self.shape, choice.cells, choice.seed)

    def another(self, objects: int, before: Choice) -> Choice:
        """A random scene other than the one before: a single shape has so few places that it would come again."""
        shown = self.scene(before).x
        for _ in range(MOST_TRIES):
            choice = Choice("random", objects, secrets.randbelow(SEEDS))
            if not np.array_equal(self.scene(choice).x, shown):
                break
        return choice

    def _look(self, choice: Choice, settings: Settings) -> Look:
        scene = self.scene(choice)
        x_tilde = self._corrupted(scene.x, settings)
        batch = x_tilde[None]
        config = self.model.config
        if config.norm == "batch" and not config.frozen_iterations and self.source.test is not None:
            others = self.source.test.x[:COMPANIONS]
            batch = np.concatenate([batch, others.astype(np.float32)])
        out = self.model.group(batch, settings.groups, settings.iterations, seed=settings.seed)
        # A copy of the first scene, so that the others can be freed.
        grouping = replace(out, history=tuple(state.rows(0, 1).map(torch.clone) for state in out.history))
        return Look(scene, x_tilde, grouping, _ami(scene, grouping))

    def _corrupted(self, x: Array, settings: Settings) -> Array:
        """x~ with the chosen noise, in the input's own units."""
        key = Key.of(settings.seed).fold("explorer")
        level = settings.noise if self.binary else settings.noise * self.model.config.scale
        corruption = BitFlip(level) if self.binary else GaussianNoise(level)
        row = torch.from_numpy(x.astype(np.float32)).reshape(1, -1)
        return corruption.apply(row, key).numpy().reshape(self.shape)

    def class_shares(self, look: Look, iteration: int) -> Array | None:
        """Each group's share of the class probabilities (K, C); None without classes and at the start."""
        state = look.grouping.history[iteration]
        if not self.model.config.classes or state.top is None:
            return None
        return self.model.class_shares(state)[0].numpy()


def toggled(removed: Sequence[int], group: object, groups: int) -> list[int]:
    """Take a group away, or bring it back; the last one stays."""
    k = check_count("group", group, low=0, high=groups - 1)
    if k in removed:
        return [other for other in removed if other != k]
    return sorted([*removed, k]) if len(removed) < groups - 1 else list(removed)


def _ami(scene: Scene, grouping: Grouping) -> tuple[float, ...] | None:
    if scene.groups is None or not scene.groups.any():
        return None
    truth: Any = scene.groups[None].astype(np.int64)
    labels = [grouping.at(i).labels.astype(np.int64) for i in range(len(grouping.history))]
    return tuple(float(metrics.adjusted_mutual_information(truth, each)[0]) for each in labels)
