"""What went wrong in a scene, from its true shapes and the groups that were found.

# S seeds · K groups · J objects · N elements · n scenes

A scene is of one failure kind, by its scored elements (covered by exactly one shape):

- coincident: two of its shapes lie exactly on top of each other, whatever came out; these are counted apart;
- perfect: AMI (max) above 0.99;
- merged: one group holds more than half of each of two shapes;
- split: two or more groups hold a sizeable part of one shape (a quarter of it, and three elements);
- ragged: groups and shapes correspond, but some elements are wrong.

The first that applies counts. A group is empty if it wins no covered element (x = 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from taggernet.data import Scenes
from taggernet.metrics import adjusted_mutual_information
from taggernet.metrics.ami import Average

KINDS = ("perfect", "merged", "split", "ragged", "coincident")
PERFECT = 0.99
HOLDS = 0.5
SIZEABLE, SIZEABLE_ELEMENTS = 0.25, 3

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
FloatArray = np.ndarray[Any, np.dtype[np.float64]]


def flat_labels(scenes: Scenes, device: torch.device) -> tuple[UInt8[Tensor, "n N"], Bool[Tensor, "n N"]]:
    """The true groups of every element, and which elements are covered."""
    assert scenes.groups is not None
    true, x = (
        torch.from_numpy(np.ascontiguousarray(a)).reshape(len(scenes), -1).to(device) for a in (scenes.groups, scenes.x)
    )
    return true, x > 0


def agreement(
    true: UInt8[Tensor, "n N"], labels: UInt8[Tensor, "S n N"], average: Average = "max"
) -> Float[Tensor, "S n"]:
    """AMI of every scene and seed."""
    seeds, n = labels.shape[:2]
    scores: Tensor = adjusted_mutual_information(true.repeat(seeds, 1), labels.flatten(0, 1), average=average)
    return scores.reshape(seeds, n)


def empty_groups(labels: UInt8[Tensor, "S n N"], covered: Bool[Tensor, "n N"], groups: int) -> Int[Tensor, "S n"]:
    """How many of the groups win no covered element."""
    wins = [((labels == k) & covered).any(-1) for k in range(groups)]
    return groups - torch.stack(wins).sum(0)


def contingency(
    true: UInt8[Tensor, "n N"], labels: UInt8[Tensor, "S n N"], objects: int, groups: int
) -> Int[Tensor, "S n J K"]:
    """How many scored elements of each shape went to each group."""
    seeds, n = labels.shape[:2]
    cells = (objects + 1) * groups
    cell = true.long() * groups + labels.long()
    counts = torch.zeros(seeds, n, cells, dtype=torch.int64, device=labels.device)
    counts.scatter_add_(-1, cell, torch.ones_like(cell))
    return counts.reshape(seeds, n, objects + 1, groups)[:, :, 1:]


def failure_kinds(
    table: Int[Tensor, "S n J K"], ami: Float[Tensor, "S n"], twice: Bool[Tensor, "n"]
) -> Int[Tensor, "S n"]:
    """The failure kind of every scene, an index into ``KINDS``; see the module's text."""
    kind = torch.full(ami.shape, KINDS.index("ragged"), device=table.device)
    kind[is_split(table)] = KINDS.index("split")
    kind[is_merged(table)] = KINDS.index("merged")
    kind[ami > PERFECT] = KINDS.index("perfect")
    kind[twice.expand(ami.shape)] = KINDS.index("coincident")
    return kind


def is_merged(table: Int[Tensor, "S n J K"]) -> Bool[Tensor, "S n"]:
    most = (table > HOLDS * table.sum(-1, keepdim=True)) & (table > 0)
    return (most.sum(-2) >= 2).any(-1)


def is_split(table: Int[Tensor, "S n J K"]) -> Bool[Tensor, "S n"]:
    sizeable = (table >= SIZEABLE * table.sum(-1, keepdim=True)) & (table >= SIZEABLE_ELEMENTS)
    return (sizeable.sum(-1) >= 2).any(-1)


def overlap(scenes: Scenes) -> FloatArray:
    """Share of the covered elements that two or more shapes cover."""
    assert scenes.groups is not None
    x, groups = scenes.x.reshape(len(scenes), -1) > 0, scenes.groups.reshape(len(scenes), -1)
    shares: FloatArray = (x & (groups == 0)).sum(1) / x.sum(1)
    return shares


def smallest_visible(scenes: Scenes) -> IntArray:
    """Scored elements of the shape of which least is to be seen."""
    assert scenes.groups is not None
    groups = scenes.groups.reshape(len(scenes), -1)
    counts = [(groups == j).sum(1) for j in range(1, scenes.details["kinds"].shape[1] + 1)]
    smallest: IntArray = np.min(counts, axis=0)
    return smallest
