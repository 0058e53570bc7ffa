"""The ConvNet baseline: Model C of Springenberg et al. 2014 ("Striving for Simplicity"), as Tagger's paper changes it.

# S seeds (optional) · B rows of a batch · N = H x W elements of one channel

    3x3 conv 96, 3x3 conv 96, 3x3 max pooling by 2, 3x3 conv 192, 3x3 conv 192, 3x3 max pooling by 2,
    3x3 conv 192 (not padded), 1x1 conv 192, 1x1 conv 10; all with ReLU; then a fully connected softmax

As the Tagger paper says: no dropout, BatchNorm after each layer, and a fully connected layer where Model C averages
over all places.

Departures: the paper does not say whether the softmax layer is normalised; here it is (classifiers.py). Padding is
what makes Model C's own 32 x 32 end at the stated 6 x 6: one ring everywhere but in the fifth convolution. Images of
28 x 28 end at 5 x 5. Images have their channels last, and stacked seeds are convolved one after the other, as in
taggernet/nets/convolution.py: the libraries behind torch have slow kernels for groups of this many channels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import max_pool2d

from paper.baselines.classifiers import Classifier
from taggernet.nets.convolution import Conv
from taggernet.nets.linear import Linear, per_feature

CHANNELS = (96, 96, 192, 192, 192, 192, 10)
_KERNELS = (3, 3, 3, 3, 3, 1, 1)
_PADDING = (1, 1, 1, 1, 0, 0, 0)
_POOLED = (3, 5)  # the levels whose input is pooled


def pooled(h: Float[Tensor, "*S B H W C"]) -> Float[Tensor, "*S B h w C"]:
    """The largest value of each 3 x 3 window, every second one: halves the sides, rounding up."""
    images = h.reshape(-1, *h.shape[-3:]).permute(0, 3, 1, 2)
    smaller = max_pool2d(images, kernel_size=3, stride=2, padding=1).permute(0, 2, 3, 1)
    return smaller.reshape(*h.shape[:-3], *smaller.shape[-3:])


class ConvNet(Classifier):
    """Model C for one-channel images; ``channels`` are those of its seven convolutions."""

    def __init__(
        self,
        shape: tuple[int, int] = (28, 28),
        classes: int = 10,
        channels: Sequence[int] = CHANNELS,
        input_noise: float = 0.0,
        layer_noise: float = 0.0,
    ) -> None:
        if len(channels) != len(CHANNELS) or min(channels) < 1:
            raise ValueError(f"channels={tuple(channels)}: give {len(CHANNELS)} positive numbers, e.g. {CHANNELS}")
        if min(shape) < 9 or classes < 2:
            raise ValueError(f"shape={shape}, classes={classes}: images need 9 x 9 elements and 2 classes at least")
        biases = [nn.Parameter(torch.zeros(1, 1, 1, width)) for width in channels]
        super().__init__([*biases, per_feature(classes, 0.0)], classes, input_noise, layer_noise)
        self.shape = shape
        sizes = zip(itertools.pairwise([1, *channels]), _KERNELS, _PADDING, strict=True)
        self.convolutions = nn.ModuleList(Conv(low, high, side=k, padding=p) for (low, high), k, p in sizes)
        height, width = (math.ceil(math.ceil(side / 2) / 2) - 2 for side in shape)
        self.out = Linear(channels[-1] * height * width, classes)

    def enter(self, x: Float[Tensor, "*S B N"]) -> Tensor:
        return super().enter(x).reshape(*x.shape[:-1], *self.shape, 1)

    def project(self, level: int, h: Tensor) -> Tensor:
        if level == self.levels:
            top: Tensor = self.out(h.flatten(-3))
            return top.float()
        values: Tensor = self.convolutions[level - 1](pooled(h) if level in _POOLED else h)
        return values.float()

    def axes(self, level: int) -> tuple[int, ...]:
        return (-2,) if level == self.levels else (-4, -3, -2)
