"""Batches as a function of the step number, made on the device.

# S seeds · B batch (this process's part) · N elements · n scenes

``batch`` is pure tensor work on a step counter, so that it can live inside a captured update; ``prepare`` is
the host's part, called whenever what it has prepared may be used up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from taggernet.rng import Key
from taggernet.training.objective import Batch


@dataclass(frozen=True)
class Part:
    """Which rows of the global batch this process computes."""

    batch: int
    first: int
    count: int

    @staticmethod
    def of(batch: int, rank: int = 0, world: int = 1) -> Part:
        if batch % world:
            raise ValueError(f"a batch of {batch} cannot be shared by {world} processes: choose a multiple of {world}")
        return Part(batch, rank * (batch // world), batch // world)


@runtime_checkable
class Source(Protocol):
    def prepare(self, step: int) -> None: ...

    def valid_until(self, step: int) -> float:
        """The first step after this one for which prepare must be called again."""
        ...

    def batch(self, step: Tensor) -> Batch: ...


AHEAD = 500
"""Updates for which the orders of short epochs are drawn at once: the device would wait for the host after each."""


class Rows:
    """Rows of tensors that lie on the device, in a new random order for each seed and epoch.

    The last, incomplete batch of an epoch is left out; another order leaves out others. ``subset`` names the rows to
    take: (n,) for all seeds, or (S, n) where each seed has its own.
    """

    def __init__(self, tensors: tuple[Tensor, ...], key: Key, part: Part, subset: Tensor | None = None) -> None:
        self.tensors, self.key, self.part, self.subset = tensors, key, part, subset
        self.n = len(tensors[0]) if subset is None else subset.shape[-1]
        if self.n < part.batch:
            raise ValueError(
                f"the training set has {self.n} scenes, fewer than a batch of {part.batch}: make batch smaller"
            )
        self.period = self.n // part.batch
        self.epochs = max(1, AHEAD // self.period)
        """How many are prepared at a time."""
        self.order = torch.zeros(*key.word.shape, self.epochs * self.n, dtype=torch.int64, device=key.word.device)
        self._prepared = -1
        self._columns = torch.arange(part.first, part.first + part.count, device=key.word.device)

    def prepare(self, step: int) -> None:
        block = step // (self.period * self.epochs)
        if block != self._prepared:
            epochs = torch.arange(block * self.epochs, (block + 1) * self.epochs, device=self.order.device)
            each = Key(self.key.word.unsqueeze(-1)).fold(epochs)
            self.order.copy_(each.permutation(self.n).flatten(-2))
            self._prepared = block

    def valid_until(self, step: int) -> float:
        ahead = self.period * self.epochs
        return float((step // ahead + 1) * ahead)

    def draw(self, step: Tensor) -> tuple[Tensor, ...]:
        epoch = step // self.period % self.epochs
        columns = epoch * self.n + (step % self.period) * self.part.batch + self._columns
        rows = self.order.index_select(-1, columns)
        if self.subset is not None:
            rows = self.subset.expand(*rows.shape[:-1], -1).gather(-1, rows)
        return tuple(tensor[rows] for tensor in self.tensors)


class FixedSource:
    """The paper's way: one training set, an epoch is a pass over it. ``classes`` where every scene has a label."""

    def __init__(
        self, x: Tensor, key: Key, part: Part, classes: Tensor | None = None, subset: Tensor | None = None
    ) -> None:
        self.rows = Rows((x,) if classes is None else (x, classes), key, part, subset)

    def prepare(self, step: int) -> None:
        self.rows.prepare(step)

    def valid_until(self, step: int) -> float:
        return self.rows.valid_until(step)

    def batch(self, step: Tensor) -> Batch:
        x, *classes = self.rows.draw(step)
        return Batch(x.float(), classes=classes[0] if classes else None)


Draw = Callable[[Key, int, int], tuple[Tensor, Tensor | None]]
"""Key, count, index of the first -> x and, where they have labels, classes."""


class FreshSource:
    """New scenes at every update, drawn on the device."""

    def __init__(self, draw: Draw, key: Key, part: Part) -> None:
        self.draw, self.key, self.part = draw, key, part

    def prepare(self, step: int) -> None:
        return

    def valid_until(self, step: int) -> float:
        return math.inf

    def batch(self, step: Tensor) -> Batch:
        x, classes = self.draw(self.key.fold(step), self.part.count, self.part.first)
        return Batch(x.float(), classes=classes)


class LabelledSource:
    """A source of scenes and, beside it, an equal batch of labelled ones from a source of their own."""

    def __init__(self, scenes: Source, labelled: Source) -> None:
        self.scenes, self.labelled = scenes, labelled

    def prepare(self, step: int) -> None:
        self.scenes.prepare(step)
        self.labelled.prepare(step)

    def valid_until(self, step: int) -> float:
        return min(self.scenes.valid_until(step), self.labelled.valid_until(step))

    def batch(self, step: Tensor) -> Batch:
        labelled = self.labelled.batch(step)
        return Batch(self.scenes.batch(step).x, labelled.x, labelled.classes)  # PyTorch 2.11 compiles no _replace here
