"""Beyond Table 1: other numbers of groups, objects and iterations than in training, and what goes wrong.

# S seeds · K groups · J objects · N elements · T iterations · n scenes
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from paper.failure_analysis import (
    KINDS,
    BoolArray,
    FloatArray,
    agreement,
    contingency,
    empty_groups,
    failure_kinds,
    flat_labels,
    is_merged,
    is_split,
    overlap,
)
from taggernet.arrays import Array
from taggernet.config.run import DataConfig
from taggernet.data import Scenes, coincident, shapes
from taggernet.evaluation import evaluate_weights
from taggernet.tagger import Tagger
from taggernet.training.datasets import permute_elements

OVERLAP_BINS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 1.0)
"""Upper edges: no overlap at all, then (0, 0.05], (0.05, 0.1], ... of the covered elements."""
DIGITS = 5


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
        drawn = draw_shapes(data, scenes, seed, j)
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
        "standard": _standard(model, weights, draw_shapes(data, scenes, seed, standard[1]), standard, batch, seed),
    }


def draw_shapes(data: DataConfig, scenes: int, seed: int, objects: int, split: str = "test") -> Scenes:
    """The scenes of this canvas with another number of objects."""
    drawn = shapes(scenes, seed, objects, data.size, style=data.style, split=split)
    return permute_elements(drawn, data) if data.permuted else drawn


def _cell(
    model: Tagger, weights: dict[str, Tensor], scenes: Scenes, j: int, k: int, iterations: int, batch: int, seed: int
) -> dict[str, Any]:
    """One K and J: means over the scenes, (S, T) each."""
    found = evaluate_weights(model, weights, scenes, groups=k, iterations=iterations, batch=batch, seed=seed)
    _, covered = flat_labels(scenes, found.labels.device)
    empty = [empty_groups(labels, covered, k).double().mean(-1) for labels in found.labels.unbind(1)]
    metrics = found.metrics()
    return {
        "groups": k,
        "objects": j,
        **{name: _listed(np.asarray(metrics[name])) for name in ("ami", "ami_arithmetic", "cost")},
        "empty": _listed(torch.stack(empty, dim=1).cpu().numpy()),
    }


def _standard(
    model: Tagger, weights: dict[str, Tensor], scenes: Scenes, setting: tuple[int, int, int], batch: int, seed: int
) -> dict[str, Any]:
    """The setting of Table 1, scene by scene."""
    k, j, iterations = setting
    evaluation = evaluate_weights(model, weights, scenes, groups=k, iterations=iterations, batch=batch, seed=seed)
    last = evaluation.labels[:, -1]
    true, covered = flat_labels(scenes, last.device)
    ami = agreement(true, last, "max").cpu().numpy()
    table = contingency(true, last, j, k)
    twice = coincident(scenes)
    kinds = failure_kinds(table, torch.from_numpy(ami).to(table.device), torch.from_numpy(twice).to(table.device))
    both = (is_merged(table) & is_split(table)).double().mean(-1).cpu().numpy()
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
        found.append({name: [_named(int(i), float(scores[i])) for i in chosen] for name, chosen in by_kind.items()})
    return found


def _named(scene: int, ami: float) -> dict[str, Any]:
    return {"scene": scene, "ami": round(ami, DIGITS)}


def _subset(ami: FloatArray, chosen: BoolArray) -> dict[str, Any]:
    """How many scenes these are, and each seed's AMI on them."""
    count = int(chosen.sum())
    return {"scenes": count, "ami": _listed(ami[:, chosen].mean(-1)) if count else None}


def _listed(values: Array) -> Any:
    return np.round(values.astype(np.float64), DIGITS).tolist()
