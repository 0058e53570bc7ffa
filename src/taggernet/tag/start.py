"""Where the TAG loop begins: random masks, z at the data's mean (paper, Algorithm 1).

# B batch · K groups · P positions · C channels · N = P C elements

Departures from the paper, all off by default: patches of positions that start with one mask, so that groups differ at
a scale that convolutions see; masks that know the scene (tag/informed.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from taggernet.rng import Key
from taggernet.tag.grouping import State


def first_of_patch(shape: Sequence[int], side: int) -> Int[Tensor, " P"]:
    """For every position of an input of this shape the first position of its patch, which has ``side`` along every
    dimension; those at the end may be smaller."""
    index = torch.zeros((), dtype=torch.long, device="cpu")
    for length in shape:
        index = index.unsqueeze(-1) * length + torch.arange(length, device="cpu") // side * side
    return index.flatten()


def start(
    batch: int, groups: int, mean: Float[Tensor, "*N"], key: Key, first: int | Tensor = 0, channels: int = 1,
    patches: Int[Tensor, " P"] | None = None,
    informed: Callable[[Float[Tensor, "*S B K P"]], Float[Tensor, "*S B K P"]] | None = None,
    origin: Float[Tensor, "*S B 1 N"] | None = None,
) -> State:  # fmt: skip
    """m from a softmax of standard normals, z at the data's mean, which is given for every element.

    ``patches`` names for each position the one whose random number it shares (``first_of_patch``); ``informed`` makes
    masks that know the scene out of the random numbers; ``origin`` is what z is relative to.
    """
    elements = mean.shape[-1]
    positions = elements // channels
    m_pre = key.normal(batch, groups, positions, start=first * (groups * positions))
    if patches is not None:
        m_pre = m_pre[..., patches]
    if informed is not None:
        m_pre = informed(m_pre)
    m = torch.softmax(m_pre, dim=-2)
    fed = mean.to(m_pre.dtype).expand(*m_pre.shape[:-1], elements)
    return State(z=fed if origin is None else fed + origin, m=m, fed=fed, m_pre=m_pre)
