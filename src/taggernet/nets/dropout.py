"""Dropout in the encoder, for the pass from which classes are learned.

# S seeds (optional) · R rows = B x K · F features
"""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from taggernet.rng import Key


class Dropout(NamedTuple):
    """Each unit is zero with probability ``rate``; survivors are scaled by 1 / (1 - rate)."""

    rate: float | Tensor
    """Below 1; one number, or one per seed (S, 1, 1)."""
    key: Key
    first: int = 0
    """Index of the first row among those of all processes."""


def dropped(dropout: Dropout | None, h: Float[Tensor, "*S R F"], level: int) -> Float[Tensor, "*S R F"]:
    """h after dropout, as input of the next level."""
    if dropout is None:
        return h
    key = dropout.key.fold(level)
    drawn = key.uniform(*h.shape[key.word.ndim :], start=dropout.first * h.shape[-1])
    scale = (drawn >= dropout.rate) / (1 - dropout.rate)
    return h * scale.to(h.dtype)
