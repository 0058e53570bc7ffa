"""Units left out at random on the way up, for the pass from which classes are learned.

# S seeds (optional) · R rows = B x K · F features
"""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from taggernet.rng import Key


class Dropout(NamedTuple):
    """Each unit is zero with probability ``rate``, and what is left is larger by as much as is missing."""

    rate: float | Tensor
    """A share below 1, or one per seed (S, 1, 1)."""
    key: Key
    first: int = 0
    """Index of the first row among those of all processes."""


def dropped(dropout: Dropout | None, h: Float[Tensor, "*S R F"], level: int) -> Float[Tensor, "*S R F"]:
    """h as the level above this one sees it."""
    if dropout is None:
        return h
    key = dropout.key.fold(level)
    drawn = key.uniform(*h.shape[key.word.ndim :], start=dropout.first * h.shape[-1])
    scale = (drawn >= dropout.rate) / (1 - dropout.rate)
    return h * scale.to(h.dtype)
