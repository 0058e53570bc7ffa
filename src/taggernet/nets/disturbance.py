"""What disturbs the pass from which classes are learned: units that are left out, masks that are turned and bent.

# S seeds (optional) · R rows = B x K · F features · P positions
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from taggernet.nets.distortion import distort
from taggernet.rng import Key

_BENT = 1_000  # a stream beside those of the levels


class Disturbance(NamedTuple):
    """Of units on the way up to the classes, and of the masks that a reader sees."""

    dropout: float | Tensor
    """Probability that a unit is zero, below 1; survivors are scaled by 1 / (1 - p). One number, or (S, 1, 1)."""
    key: Key
    first: int = 0
    """Index of the first row among those of all processes."""
    distortion: float = 0.0
    """Strength, see ``distort``."""
    shape: tuple[int, ...] = ()
    """Height and width of a mask."""


def dropped(disturbance: Disturbance | None, h: Float[Tensor, "*S R F"], level: int) -> Float[Tensor, "*S R F"]:
    """h after dropout, as input of the next level."""
    if disturbance is None or (not isinstance(disturbance.dropout, Tensor) and not disturbance.dropout):
        return h
    key = disturbance.key.fold(level)
    drawn = key.uniform(*h.shape[key.word.ndim :], start=disturbance.first * h.shape[-1])
    scale = (drawn >= disturbance.dropout) / (1 - disturbance.dropout)
    return h * scale.to(h.dtype)


def bent(disturbance: Disturbance | None, masks: Float[Tensor, "*S R P"]) -> Float[Tensor, "*S R P"]:
    """Masks turned and bent, each in its own way."""
    if disturbance is None or not disturbance.distortion:
        return masks
    pictures = torch.unflatten(masks.float(), -1, disturbance.shape)
    key = disturbance.key.fold(_BENT)
    return distort(key, pictures, disturbance.distortion, disturbance.first).flatten(-2).to(masks.dtype)
