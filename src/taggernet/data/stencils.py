"""Opaque objects laid over one another: one look-up per object and position, in integers, so equal on every device.

n scenes · J objects, the last one on top · M stencils · D side of a stencil · P = size * size positions
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from taggernet.arrays import Array


@dataclass(frozen=True)
class Stencils:
    """The masks an object can have, each in the top left corner of a square with a margin of zeros."""

    masks: Tensor  # (M, D + 1, D + 1) uint8; the last row and column are empty
    heights: Tensor  # (M,)
    widths: Tensor  # (M,)

    @staticmethod
    def of(masks: Sequence[Array], device: torch.device | str | None = None) -> Stencils:
        """From masks (height, width) of 0 and 1, without empty rows and columns around them."""
        side = max(max(mask.shape) for mask in masks)
        table = np.zeros((len(masks), side + 1, side + 1), np.uint8)
        for number, mask in enumerate(masks):
            table[number, : mask.shape[0], : mask.shape[1]] = mask
        heights, widths = (torch.tensor([mask.shape[axis] for mask in masks], device=device) for axis in (0, 1))
        return Stencils(torch.from_numpy(table).to(device), heights, widths)


def owners(
    table: Stencils, which: Tensor, rows: Tensor, cols: Tensor, size: int, count: Tensor | None = None
) -> Tensor:
    """Which object is seen at each position, uint8 (..., P): 1 .. J, or 0 where there is none.

    Object j, of stencil which[..., j], has its top left corner at rows[..., j], cols[..., j]. With ``count`` (...) only
    so many objects are there.
    """
    line = torch.arange(size, device=which.device)
    margin = table.masks.shape[-1] - 1
    flat = table.masks.flatten()
    seen = torch.zeros((*which.shape[:-1], size, size), dtype=torch.uint8, device=which.device)
    for number in range(which.shape[-1]):
        down, right = ((line - at[..., number, None]) for at in (rows, cols))
        down, right = (torch.where((at < 0) | (at > margin), margin, at) for at in (down, right))
        first = (which[..., number, None] * (margin + 1) + down) * (margin + 1)
        covered = flat[first[..., :, None] + right[..., None, :]] > 0
        if count is not None:
            covered = covered & (count > number)[..., None, None]
        seen = torch.where(covered, number + 1, seen)
    return seen.flatten(-2)


def fill(seen: Tensor, colours: Tensor) -> Tensor:
    """x (..., P, C) of owners (..., P): each position has the colour of its owner, colours (..., J + 1, C)."""
    index = seen.long()[..., None].expand(*seen.shape, colours.shape[-1])
    return colours.gather(-2, index)
