"""Scenes of squares on a background of their own, and random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from taggernet.rng import Key

RANDOM = np.random.default_rng(0)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return Key.of(seed).normal(*shape)


def squares(n: int, most: int, size: int = 24, side: int = 4) -> tuple[Any, Any]:
    """One to ``most`` squares of one value, none near another, on a background that differs from scene to scene."""
    x, owner = RANDOM.uniform(0, 3, (n, 1, 1)) + np.zeros((n, size, size)), np.zeros((n, size, size), np.int64)
    corners = [(row, column) for row in (1, 13) for column in (1, 13)]
    for i in range(n):
        for k, at in enumerate(RANDOM.permutation(4)[: RANDOM.integers(1, most + 1)]):
            row, column = np.array(corners[at]) + RANDOM.integers(0, 5, 2)
            x[i, row : row + side, column : column + side] += 2
            owner[i, row : row + side, column : column + side] = k + 1
    return x.reshape(n, -1), owner.reshape(n, -1)
