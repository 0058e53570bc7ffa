"""Batches of data that stays on the disk: the host gathers each one, the device holds no more than that.

# S seeds · B batch (this process's part) · N elements

The order of the rows is that of ``Rows``, so a run has the same batches whether its data fit the device or not.
"""

from __future__ import annotations

import torch
from torch import Tensor

from taggernet.arrays import Array
from taggernet.data.lazy import LazyRows
from taggernet.rng import Key
from taggernet.training.objective import Batch
from taggernet.training.sources import Part, Rows


class StreamedSource:
    """Chosen rows of your data like ``FixedSource``, but ``prepare`` copies one batch into a buffer on the device.

    ``order`` permutes the positions of a scene.
    """

    def __init__(
        self, own: LazyRows, chosen: Array, key: Key, part: Part, order: Array | None = None, with_classes: bool = False
    ) -> None:
        self.own, self.order = own, order
        self.numbers = Rows((torch.from_numpy(chosen),), Key(key.word.cpu()), part)
        device, shape = key.word.device, (*key.word.shape, part.count)
        self.x = torch.zeros(*shape, own.data.elements, device=device)
        self.classes: Tensor | None = None
        if with_classes and own.classes is not None:
            self.classes = torch.from_numpy(own.classes).reshape(len(own), -1)
            self.shown = torch.zeros(*shape, self.classes.shape[1], dtype=torch.int64, device=device)

    def prepare(self, step: int) -> None:
        self.numbers.prepare(step)
        (index,) = self.numbers.draw(torch.tensor(step))
        x = torch.from_numpy(self.own.take(index.numpy())).reshape(*self.x.shape[:-1], -1, self.own.data.channels)
        self.x.copy_((x if self.order is None else x[..., self.order, :]).flatten(-2))
        if self.classes is not None:
            self.shown.copy_(self.classes[index])

    def valid_until(self, step: int) -> float:
        return step + 1.0

    def batch(self, step: Tensor) -> Batch:
        return Batch(self.x, classes=None if self.classes is None else self.shown)
