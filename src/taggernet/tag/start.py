"""Where the TAG loop begins: random masks, z at the data's mean (paper, Algorithm 1).

# B batch · K groups · P positions · C channels · N = P C elements

Departures from the paper, all off by default: patches of positions that start with one mask, so that groups differ at
a scale that convolutions see; masks that start alike where the data vary together; levels of the groups' z.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from taggernet.rng import Key
from taggernet.tag.grouping import State

CORRELATED_SPREAD = 2.0
"""Standard deviation of correlated masks before their softmax: enough to decide some of them at the start."""


def first_of_patch(shape: Sequence[int], side: int) -> Int[Tensor, " P"]:
    """For every position of an input of this shape the first position of its patch, which has ``side`` along every
    dimension; those at the end may be smaller."""
    index = torch.zeros((), dtype=torch.long, device="cpu")
    for length in shape:
        index = index.unsqueeze(-1) * length + torch.arange(length, device="cpu") // side * side
    return index.flatten()


def correlated_masks(x: Float[Tensor, "n P C"]) -> Float[Tensor, "P P"]:
    """A factor for random masks: positions that vary together in these scenes start in the same group.

    The pre-activations then have the covariance 4 r^2, where r is the correlation of two positions, the mean over the
    channels: r^2 is a covariance again, and does not mind that two positions vary in opposite directions.
    """
    x = x.double() - x.double().mean(0)
    x = x / x.norm(dim=0).clamp_min(1e-12 * max(1.0, x.abs().max().item()))
    r = torch.einsum("npc,nqc->pq", x, x) / x.shape[-1]
    values, vectors = torch.linalg.eigh(r**2)
    factor = (vectors * values.clamp_min(0).sqrt()) @ vectors.T
    spread = factor.norm(dim=0)
    # A position that never varies starts by itself.
    factor = torch.where(
        spread > 0.5, factor / spread.clamp_min(1e-12), torch.eye(len(r), dtype=r.dtype, device=r.device)
    )
    return (CORRELATED_SPREAD * factor).float()


def start(
    batch: int, groups: int, mean: Float[Tensor, "*N"], key: Key, first: int | Tensor = 0, channels: int = 1,
    levels: float = 0.0, patches: Int[Tensor, " P"] | None = None, factor: Float[Tensor, "*S P P"] | None = None,
) -> State:  # fmt: skip
    """m from a softmax of standard normals, z at the data's mean, which is given for every element.

    ``patches`` names for each position the one whose random number it shares (``first_of_patch``); ``factor`` mixes the
    random numbers of the positions (``correlated_masks``). Levels of the groups are read from the random numbers,
    so that these remain all that a start needs.
    """
    elements = mean.shape[-1]
    positions = elements // channels
    m_pre = key.normal(batch, groups, positions, start=first * (groups * positions))
    if patches is not None:
        m_pre = m_pre[..., patches]
    z = mean.to(m_pre.dtype).expand(*m_pre.shape[:-1], elements)
    if levels:
        level = m_pre.mean(-1, keepdim=True) * positions**0.5
        z = z + levels * (level - level.mean(-2, keepdim=True))
    if factor is not None:
        m_pre = m_pre @ factor.unsqueeze(-3)
    m = torch.softmax(m_pre, dim=-2)
    return State(z=z, m=m, fed=z, m_pre=m_pre)
