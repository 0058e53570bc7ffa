"""Groups that talk: attention between the groups of a scene on the Ladder's topmost level.

# S seeds (optional) · R rows = B x K · F features · D width of queries and keys

Not in the paper, whose groups meet in the softmax of the masks alone; it names groups that share a top layer as future
work. Every group asks all others, in any order and for any K, and a silent one beside them, so that K = 1 hears nothing
and a group need not listen:

    heard_k = sum_{j != k} a_kj v_j,   a_k = softmax over {silence} and j != k of (0, q_k . k_j / sqrt(D))
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from taggernet.nets.linear import Linear, per_feature
from taggernet.tag.likelihood import wide


class GroupAttention(nn.Module):
    """What each group hears of the others, times a gate per feature that starts at 0: at first nobody hears."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.query, self.key = Linear(features, width), Linear(features, width)
        self.value = Linear(features, features)
        self.gate = per_feature(features, 0.0)

    def forward(self, z: Float[Tensor, "*S R F"], groups: int) -> Float[Tensor, "*S R F"]:
        """``groups`` rows in a row are those of one scene."""
        q, k, v = (torch.unflatten(wide(part(z)), -2, (-1, groups)) for part in (self.query, self.key, self.value))
        scores = q @ k.transpose(-2, -1) * self.query.outputs**-0.5
        index = torch.arange(groups, device=z.device)
        scores = scores.masked_fill(index == index[:, None], -torch.inf)
        silence = torch.zeros_like(scores[..., :1])
        attention = torch.softmax(torch.cat([silence, scores], dim=-1), dim=-1)[..., 1:]
        return (attention @ v).flatten(-3, -2) * self.gate
