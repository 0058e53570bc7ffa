"""Beyond Table 1: other numbers of groups, objects and iterations than in training, and what goes wrong.

# S seeds · K groups · J objects · N elements · T iterations · n scenes

A scene is of one failure kind, by its scored elements (covered by exactly one shape):

- coincident: two of its shapes lie exactly on top of each other, whatever came out; these are counted apart;
- perfect: AMI (max) above 0.99;
- merged: one group holds more than half of each of two shapes;
- split: two or more groups hold a sizeable part of one shape (a quarter of it, and three elements);
- ragged: groups and shapes correspond, but some elements are wrong.

The first that applies counts. A group is empty if it wins no covered element (x = 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from taggernet.data import Scenes, shapes
from taggernet.evaluation import costs_and_labels
from taggernet.metrics import adjusted_mutual_information
from taggernet.tagger import Tagger
from taggernet.training.config import DataConfig
from taggernet.training.datasets import permuted

KINDS = ("perfect", "merged", "split", "ragged", "coincident")
PERFECT = 0.99
HOLDS = 0.5
SIZEABLE, SIZEABLE_ELEMENTS = 0.25, 3
OVERLAP_BINS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 1.0)
"""Upper edges: no overlap at all, then (0, 0.05], (0.05, 0.1], ... of the covered elements."""
DIGITS = 5

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]
FloatArray = np.ndarray[Any, np.dtype[np.float64]]


@torch.no_grad()
def generalisation(
    model: Tagger,
    weights: dict[str, Tensor],
    *,
    scenes: int = 2000,
    seed: int = 0,
    groups: Sequence[int] = range(2, 9),
    objects: Sequence[int] = range(1, 6),
    iterations: int = 10,
    batch: int = 100,
    data: DataConfig | None = None,
    standard: tuple[int, int, int] = (4, 3, 5),
) -> dict[str, Any]:
    """The record of S stacked models on test scenes, ready for JSON; ``generalisation_figure`` draws it.

    ``data`` gives the canvas (size, style, permutation), ``standard`` the K, J and T of the detailed part.
    """
    data = data or DataConfig()
    sweep = []
    for j in objects:
        drawn = draw(data, scenes, seed, j)
        for k in groups:
            sweep.append(_cell(model, weights, drawn, j, k, iterations, batch, seed))
    return {
        "scenes": scenes,
        "seed": seed,
        "batch": batch,
        "groups": list(groups),
        "objects": list(objects),
        "iterations": iterations,
        "sweep": sweep,
        "standard": _standard(model, weights, draw(data, scenes, seed, standard[1]), standard, batch, seed),
    }


def draw(data: DataConfig, scenes: int, seed: int, objects: int) -> Scenes:
    """The test scenes of this canvas with another number of objects."""
    drawn = shapes(scenes, seed, objects, data.size, style=data.style, split="test")
    return permuted(drawn, data) if data.permuted else drawn


def _cell(
    model: Tagger, weights: dict[str, Tensor], scenes: Scenes, j: int, k: int, iterations: int, batch: int, seed: int
) -> dict[str, Any]:
    """One K and J: means over the scenes, (S, T) each."""
    costs, labels = costs_and_labels(model, weights, scenes, groups=k, iterations=iterations, batch=batch, seed=seed)
    true, covered = _rows(scenes, labels[0].device)
    ami, arithmetic = (
        torch.stack([agreement(true, one, average).mean(-1) for one in labels], dim=1)
        for average in ("max", "arithmetic")
    )
    empty = torch.stack([empty_groups(one, covered, k).double().mean(-1) for one in labels], dim=1)
    return {
        "groups": k,
        "objects": j,
        "ami": _listed(ami.cpu().numpy()),
        "ami_arithmetic": _listed(arithmetic.cpu().numpy()),
        "cost": _listed(costs.mean(-1)),
        "empty": _listed(empty.cpu().numpy()),
    }


def _standard(
    model: Tagger, weights: dict[str, Tensor], scenes: Scenes, setting: tuple[int, int, int], batch: int, seed: int
) -> dict[str, Any]:
    """The setting of Table 1, scene by scene."""
    k, j, iterations = setting
    _, labels = costs_and_labels(model, weights, scenes, groups=k, iterations=iterations, batch=batch, seed=seed)
    last = labels[-1]
    true, covered = _rows(scenes, last.device)
    ami = agreement(true, last, "max").cpu().numpy()
    table = contingency(true, last, j, k)
    twice = coincident(scenes)
    kinds = failure_kinds(table, torch.from_numpy(ami).to(table.device), torch.from_numpy(twice).to(table.device))
    merged, split = _merged(table), _split(table)
    both = (merged & split).double().mean(-1).cpu().numpy()
    found = kinds.cpu().numpy()
    empty = torch.stack([(empty_groups(last, covered, k) == e).double().mean(-1) for e in range(k + 1)], dim=-1)
    return {
        "groups": k,
        "objects": j,
        "iterations": iterations,
        "ami": _listed(ami.mean(-1)),
        "ami_without_coincident": _subset(ami, ~twice)["ami"],
        "empty_shares": _listed(empty.cpu().numpy()),
        "overlap": _by_overlap(ami, scenes),
        "alike": _by_alike(ami, scenes, twice),
        "coincident": {"no": _subset(ami, ~twice), "yes": _subset(ami, twice)},
        "pairs": _pairs(table, scenes, twice),
        "failures": {name: _listed((found == i).mean(-1)) for i, name in enumerate(KINDS)},
        "merged_and_split": _listed(both),
        "worst": _worst(ami, found),
    }


def _rows(scenes: Scenes, device: torch.device) -> tuple[UInt8[Tensor, "n N"], Bool[Tensor, "n N"]]:
    """The true groups and which elements are covered."""
    assert scenes.groups is not None
    true, x = (
        torch.from_numpy(np.ascontiguousarray(a)).reshape(len(scenes), -1).to(device) for a in (scenes.groups, scenes.x)
    )
    return true, x > 0


def agreement(true: UInt8[Tensor, "n N"], labels: UInt8[Tensor, "S n N"], average: Any = "max") -> Float[Tensor, "S n"]:
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


def coincident(scenes: Scenes) -> BoolArray:
    """Which scenes hold two shapes of one kind in one place."""
    placed = np.stack([scenes.details[name] for name in ("kinds", "rows", "cols")], axis=-1)
    same = (placed[:, :, None] == placed[:, None]).all(-1)
    found: BoolArray = same.sum((1, 2)) > same.shape[1]
    return found


def failure_kinds(
    table: Int[Tensor, "S n J K"], ami: Float[Tensor, "S n"], twice: Bool[Tensor, "n"]
) -> Int[Tensor, "S n"]:
    """The failure kind of every scene, an index into ``KINDS``; see the module's text."""
    kind = torch.full(ami.shape, KINDS.index("ragged"), device=table.device)
    kind[_split(table)] = KINDS.index("split")
    kind[_merged(table)] = KINDS.index("merged")
    kind[ami > PERFECT] = KINDS.index("perfect")
    kind[twice.expand(ami.shape)] = KINDS.index("coincident")
    return kind


def _merged(table: Int[Tensor, "S n J K"]) -> Bool[Tensor, "S n"]:
    most = (table > HOLDS * table.sum(-1, keepdim=True)) & (table > 0)
    return (most.sum(-2) >= 2).any(-1)


def _split(table: Int[Tensor, "S n J K"]) -> Bool[Tensor, "S n"]:
    sizeable = (table >= SIZEABLE * table.sum(-1, keepdim=True)) & (table >= SIZEABLE_ELEMENTS)
    return (sizeable.sum(-1) >= 2).any(-1)


def overlap(scenes: Scenes) -> FloatArray:
    """Share of the covered elements that two or more shapes cover."""
    assert scenes.groups is not None
    x, groups = scenes.x.reshape(len(scenes), -1) > 0, scenes.groups.reshape(len(scenes), -1)
    shares: FloatArray = (x & (groups == 0)).sum(1) / x.sum(1)
    return shares


def _by_overlap(ami: FloatArray, scenes: Scenes) -> list[dict[str, Any]]:
    shares = overlap(scenes)
    edges = (-1.0, *OVERLAP_BINS)
    return [
        {"above": max(low, 0.0), "up_to": high, **_subset(ami, (shares > low) & (shares <= high))}
        for low, high in pairwise(edges)
    ]


def _by_alike(ami: FloatArray, scenes: Scenes, twice: BoolArray) -> list[dict[str, Any]]:
    """By how many shapes of a scene are of one kind at most; coincident scenes left out."""
    kinds = scenes.details["kinds"]
    alike = (kinds[:, :, None] == kinds[:, None]).sum(2).max(1)
    return [{"alike": a, **_subset(ami, (alike == a) & ~twice)} for a in range(1, kinds.shape[1] + 1)]


def _pairs(table: Int[Tensor, "S n J K"], scenes: Scenes, twice: BoolArray) -> dict[str, Any]:
    """Share of pairs of visible shapes whose largest parts are in different groups (instance segmentation)."""
    home, visible = table.argmax(-1), table.sum(-1) > 0
    first, second = torch.triu_indices(table.shape[2], table.shape[2], 1, device=table.device)
    apart = home[..., first] != home[..., second]
    kinds = torch.from_numpy(scenes.details["kinds"]).to(table.device)
    same = kinds[:, first] == kinds[:, second]
    counted = visible[..., first] & visible[..., second] & ~torch.from_numpy(twice).to(table.device)[:, None]

    def shares(chosen: Tensor) -> dict[str, Any]:
        count = int(chosen[0].sum())  # what is visible does not depend on the model
        share = ((apart & chosen).sum((1, 2)) / max(count, 1)).cpu().numpy()
        return {"pairs": count, "apart": _listed(share) if count else None}

    return {"same_kind": shares(counted & same), "different_kind": shares(counted & ~same)}


def _worst(ami: FloatArray, kinds: np.ndarray[Any, np.dtype[np.int64]], count: int = 12) -> list[dict[str, Any]]:
    """Per seed, the scenes of lowest AMI of every failure kind, worst first."""
    found = []
    for scores, which in zip(ami, kinds, strict=True):
        order = np.argsort(scores, kind="stable")
        by_kind = {name: order[which[order] == c][:count] for c, name in enumerate(KINDS) if name != "perfect"}
        found.append({name: [_named(i, scores[i]) for i in chosen] for name, chosen in by_kind.items()})
    return found


def _named(scene: int, ami: float) -> dict[str, Any]:
    return {"scene": int(scene), "ami": round(float(ami), DIGITS)}


def _subset(ami: FloatArray, chosen: BoolArray) -> dict[str, Any]:
    """How many scenes these are, and each seed's AMI on them."""
    count = int(chosen.sum())
    return {"scenes": count, "ami": _listed(ami[:, chosen].mean(-1)) if count else None}


def _listed(values: np.ndarray[Any, Any]) -> Any:
    return np.round(values.astype(np.float64), DIGITS).tolist()
