"""A denoising autoencoder with one hidden layer: the network behind Reconstruction Clustering.

# B batch · N elements · H hidden

Departure from the autoencoder of Greff et al. 2015: weights start as N(0, 1/fan_in) and the output's bias at
a given value rather than at zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from taggernet.nets.linear import Linear, per_feature
from taggernet.rng import Key


@dataclass(frozen=True)
class SaltAndPepper:
    """With probability ``amount`` an element is replaced: by 0 or by 1, equally often."""

    amount: float = 0.4

    def __post_init__(self) -> None:
        if not 0.0 <= self.amount <= 1.0:
            raise ValueError(f"noise={self.amount} is not the share of elements to replace: choose 0 <= noise <= 1")

    def apply(self, x: Float[Tensor, "B N"], key: Key) -> Float[Tensor, "B N"]:
        draw = key.uniform(*x.shape)
        speck = (draw < self.amount / 2).to(x.dtype)
        return torch.where(draw < self.amount, speck, x)


class DenoisingAutoencoder(nn.Module):
    """x -> tanh(x W + b) -> log-odds of each element; a sigmoid of them is the reconstruction."""

    def __init__(self, elements: int, hidden: int = 500) -> None:
        super().__init__()
        self.encode, self.encode_bias = Linear(elements, hidden), per_feature(hidden, 0.0)
        self.decode, self.decode_bias = Linear(hidden, elements), per_feature(elements, 0.0)

    @torch.no_grad()
    def start(self, key: Key, output_bias: float = 0.0) -> None:
        """Fresh weights that are a function of the key alone; every output starts at this log-odds."""
        for name, layer in (("encode", self.encode), ("decode", self.decode)):
            values = key.fold(name).normal(layer.inputs, layer.outputs) / math.sqrt(layer.inputs)
            layer.weight.copy_(values)
        self.encode_bias.zero_()
        self.decode_bias.fill_(output_bias)

    def forward(self, x: Float[Tensor, "B N"]) -> Float[Tensor, "B N"]:
        hidden = torch.tanh(self.encode(x) + self.encode_bias)
        logits: Tensor = self.decode(hidden) + self.decode_bias
        return logits
