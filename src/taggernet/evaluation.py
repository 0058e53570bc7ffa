"""How good a model is: cost, AMI, ARI and classification error after every iteration, for many seeds at once.

# S seeds · B batch · K groups · N elements · T iterations · n scenes

The denoising cost is measured on corrupted input, grouping and classification on clean input (paper,
section 3.1). BatchNorm models see ``batch`` scenes at a time, in the order of the split.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from taggernet.data import Scenes
from taggernet.metrics import classification_error
from taggernet.metrics.ami import agreements
from taggernet.metrics.errors import errors_by_digit
from taggernet.rng import Key
from taggernet.tag.grouping import batches
from taggernet.tagger import Tagger

Figures = dict[str, Any]
"""Name of a figure -> (S, T) nested lists: per seed, after each iteration."""

Array = np.ndarray[Any, np.dtype[Any]]


class _Pass(NamedTuple):
    """What one batch yields, per iteration."""

    costs: list[Tensor]
    labels: list[Tensor]
    classes: list[Tensor]
    answers: list[Tensor]


class _Evaluator(nn.Module):
    """One batch through the loop, noisy for the cost and clean for the rest; takes stacked weights."""

    def __init__(self, model: Tagger, groups: int, iterations: int) -> None:
        super().__init__()
        self.model, self.groups, self.iterations = model, groups, iterations

    def forward(self, x: Tensor, key: Key, first: int) -> _Pass:
        model = self.model
        found = _Pass([], [], [], [])
        setting = self.groups, self.iterations
        for state in islice(model.states(x, *setting, key.fold("noisy masks"), first, key.fold("noise")), 1, None):
            found.costs.append(model.cost(x, state).mean(-1))
        for state in islice(model.states(x, *setting, key.fold("masks"), first), 1, None):
            found.labels.append(state.m.argmax(-2).to(torch.uint8))
            if model.config.classes and state.top is not None:
                found.classes.append(model.class_probabilities(state))
                found.answers.append(state.top.argmax(-1))
        return found


@dataclass(frozen=True)
class Evaluation:
    """Per-scene results of all seeds; ``figures`` are their means."""

    cost: Array
    ami: Array | None = None
    ami_arithmetic: Array | None = None
    ari: Array | None = None
    error: Array | None = None
    """(S, T, n) each, n in the order of the scenes; errors of the labelled scenes only."""
    by_digit: Array | None = None
    """(S, T, n, 2): the parts of the error of scenes with two classes, whose mean it is."""

    def figures(self) -> Figures:
        first, second = (None, None) if self.by_digit is None else np.moveaxis(self.by_digit, -1, 0)
        named = {
            "cost": self.cost,
            "ami": self.ami,
            "ami_arithmetic": self.ami_arithmetic,
            "ari": self.ari,
            "error": self.error,
            "error_first": first,
            "error_second": second,
        }
        return {name: values.mean(-1).tolist() for name, values in named.items() if values is not None}


@torch.no_grad()
def evaluate_weights(
    model: Tagger,
    weights: dict[str, Tensor],
    scenes: Scenes,
    *,
    groups: int = 4,
    iterations: int = 5,
    batch: int = 100,
    seed: int = 0,
    agreement: bool = True,
) -> Evaluation:
    """Evaluate S models whose weights are stacked (S, ...) on the same scenes.

    The random masks and the noise depend on ``seed`` alone, so all models start alike. ``agreement=False``
    leaves out AMI and ARI.
    """
    device = next(iter(weights.values())).device
    passes = _passes(model, weights, scenes, groups, iterations, batch, seed)
    costs = _per_scene([p.costs for p in passes])
    scored: dict[str, Array | None] = {}
    if agreement and scenes.groups is not None:
        true = torch.from_numpy(np.ascontiguousarray(scenes.groups)).reshape(len(scenes), -1).to(device)
        scored = _agreement(true, _labels(passes))
    if scenes.classes is not None and model.config.classes and scenes.labelled.any():
        known = torch.from_numpy(scenes.labelled).to(device)
        classes = torch.from_numpy(np.ascontiguousarray(scenes.classes)).to(device)[known]
        guesses = [torch.cat([p.classes[i] for p in passes], dim=1)[:, known] for i in range(iterations)]
        scored["error"] = _scores(classification_error, guesses, classes)
        if classes.ndim == 2 and classes.shape[1] == 2:
            scored["by_digit"] = _scores(errors_by_digit, guesses, classes)
    return Evaluation(costs, **scored)


def _scores(error: Callable[[Tensor, Tensor], Tensor], guesses: list[Tensor], classes: Tensor) -> Array:
    """(S, T, n) or (S, T, n, 2) from the class probabilities (S, n, C) after each iteration."""
    return np.stack([[error(p, classes).cpu().numpy() for p in each] for each in guesses], axis=1)


@torch.no_grad()
def costs_and_labels(
    model: Tagger,
    weights: dict[str, Tensor],
    scenes: Scenes,
    *,
    groups: int = 4,
    iterations: int = 5,
    batch: int = 100,
    seed: int = 0,
) -> tuple[Array, list[Tensor]]:
    """What ``evaluate_weights`` judges: the costs (S, T, n) and, per iteration, the labels (S, n, N) on clean input."""
    passes = _passes(model, weights, scenes, groups, iterations, batch, seed)
    return _per_scene([p.costs for p in passes]), _labels(passes)


@torch.no_grad()
def labels_and_answers(
    model: Tagger,
    weights: dict[str, Tensor],
    scenes: Scenes,
    *,
    groups: int = 4,
    iterations: int = 5,
    batch: int = 100,
    seed: int = 0,
) -> tuple[Tensor, Tensor]:
    """After the last iteration on clean input: the labels (S, n, N) and the class each group gives itself (S, n, K).

    'No class' is the number after the last class.
    """
    if not model.config.classes:
        raise ValueError("this model was trained without classes, its groups give none: train one with classes first")
    passes = _passes(model, weights, scenes, groups, iterations, batch, seed)
    return _labels(passes)[-1], torch.cat([p.answers[-1] for p in passes], dim=1)


def _passes(
    model: Tagger, weights: dict[str, Tensor], scenes: Scenes, groups: int, iterations: int, batch: int, seed: int
) -> list[_Pass]:
    device = next(iter(weights.values())).device
    seeds = len(next(iter(weights.values())))
    evaluator = _Evaluator(model, groups, iterations).to(device)
    named = {f"model.{name}": w for name, w in weights.items()}
    x = torch.from_numpy(np.ascontiguousarray(scenes.x)).reshape(len(scenes), -1)
    key = Key.of([seed] * seeds, device).fold("evaluation")
    passes = []
    for first, part in batches(x, batch):
        passes.append(functional_call(evaluator, named, (part.to(device).expand(seeds, *part.shape), key, first)))
    return passes


def _labels(passes: list[_Pass]) -> list[Tensor]:
    """Per iteration, the labels of all batches (S, n, N)."""
    return [torch.cat(parts, dim=1) for parts in zip(*(p.labels for p in passes), strict=True)]


def _per_scene(parts: list[list[Tensor]]) -> Array:
    """[batch][iteration] (S, B) -> (S, T, n)."""
    joined = [torch.cat([part[i] for part in parts], dim=1) for i in range(len(parts[0]))]
    return torch.stack(joined, dim=1).cpu().numpy()


def _agreement(true: Tensor, labels: list[Tensor]) -> dict[str, Array | None]:
    """AMI with both normalisers, and ARI, each (S, T, n)."""
    seeds, n = labels[0].shape[:2]
    repeated = true.repeat(seeds, 1)
    found: dict[str, list[Array]] = {"ami": [], "ami_arithmetic": [], "ari": []}
    for predicted in labels:
        rows = predicted.reshape(seeds * n, -1)
        for name, scores in agreements(repeated, rows).items():
            found[name].append(scores.reshape(seeds, n).cpu().numpy())
    return {name: np.stack(values, axis=1) for name, values in found.items()}


def stacked(models: list[Tagger]) -> dict[str, Tensor]:
    """The weights of several models of one configuration, stacked (S, ...)."""
    states = [dict(model.named_parameters()) for model in models]
    return {name: torch.stack([state[name].detach() for state in states]) for name in states[0]}
