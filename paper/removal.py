"""Removing objects (the paper's example E2): how much of an object is left when its group is taken away.

# B scenes · K groups · J objects · N elements · n scenes

An object's group is the one that has most of the elements that the object alone covers. It is taken out of the softmax
of the masks, and the others fill in (``Grouping.without``). What is left of the object's ink is the mean of the
denoised scene on those elements. A spare group with a copy of the object would bring it back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from taggernet.arrays import Array
from taggernet.data import Scenes
from taggernet.rng import Key
from taggernet.tag.grouping import ASSIGNED_NEVER, batches
from taggernet.tagger import Tagger


@torch.no_grad()
def ink_left(model: Tagger, scenes: Scenes, groups: int, iterations: int, *, batch: int = 100, seed: int = 0) -> Array:
    """The share of each object's ink that is left without its group, (n, J); NaN for what covers no element alone."""
    if scenes.groups is None or scenes.kind != "binary":
        raise ValueError("removal is measured on binary scenes whose true groups are known, such as Shapes")
    if groups < 2:
        raise ValueError(f"groups={groups}: at least two are needed, as one of them is removed")
    device, masks = model.w.device, Key.of(seed, model.w.device).fold("masks")
    x, true = (torch.from_numpy(np.ascontiguousarray(a)).reshape(len(scenes), -1) for a in (scenes.x, scenes.groups))
    numbers = torch.arange(1, int(true.max()) + 1, device=device)
    found = []
    for first, part in batches(x, batch):
        *_, last = model.states(part.to(device), groups, iterations, masks, first)
        own = true[first : first + batch].to(device).unsqueeze(1) == numbers[:, None]  # (B, J, N)
        found.append(torch.stack([_left(last.z, last.m_pre, of_one) for of_one in own.unbind(1)], dim=1))
    return torch.cat(found).cpu().numpy()


def _left(z: Tensor, m_pre: Tensor, own: Tensor) -> Tensor:
    """(B,) for one object of each scene, whose own elements are ``own`` (B, N)."""
    groups, count = z.shape[1], own.sum(-1)
    labels = m_pre.argmax(1)
    votes = torch.stack([((labels == k) & own).sum(-1) for k in range(groups)], dim=1)
    removed = torch.nn.functional.one_hot(votes.argmax(1), groups).bool().unsqueeze(-1)
    m = torch.softmax(m_pre.masked_fill(removed, ASSIGNED_NEVER), dim=1)
    return ((m * z).sum(1) * own).sum(-1) / torch.where(count > 0, count, torch.nan)


def removal(
    model: Tagger, scenes: Scenes, groups: int, iterations: int, *, batch: int = 100, seed: int = 0
) -> dict[str, Any]:
    """How many objects keep more than half of their ink, and how many scenes have such an object."""
    left = ink_left(model, scenes, groups, iterations, batch=batch, seed=seed)
    kept, known = left > 0.5, np.isfinite(left)
    return {
        "scenes": len(scenes),
        "groups": groups,
        "iterations": iterations,
        "objects": int(known.sum()),
        "objects_kept": float(kept.sum() / known.sum()),
        "scenes_kept": float(kept.any(1).mean()),
        "mean_left": float(left[known].mean()),
    }
