"""How good a model is: cost, AMI, ARI and classification error after every iteration, for many seeds at once.

# S seeds · B batch · K groups · N elements · T iterations · C classes · n scenes

The denoising cost is measured on corrupted input, grouping and classification on clean input (paper,
section 3.1). BatchNorm models see ``batch`` scenes at a time, in the order of the split, unless their statistics are
frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped, UInt8
from torch import Tensor, nn
from torch.func import functional_call

from taggernet.arrays import Array
from taggernet.data import Scenes
from taggernet.metrics import classification_error, foreground_adjusted_rand_index
from taggernet.metrics.ami import agreements
from taggernet.metrics.errors import errors_by_digit
from taggernet.rng import Key
from taggernet.tag.grouping import batches
from taggernet.tagger import Tagger

Metrics = dict[str, list[list[float]]]
"""Name of a metric -> (S, T): per seed, after each iteration."""


class _Evaluator(nn.Module):
    """One batch through the loop, noisy for the cost and clean for the rest; takes stacked weights."""

    def __init__(self, model: Tagger, groups: int, iterations: int, starts: int) -> None:
        super().__init__()
        self.model, self.groups, self.iterations, self.starts = model, groups, iterations, starts

    def forward(self, x: Shaped[Tensor, "S B N"], key: Key, first: int) -> tuple[Tensor, ...]:
        """Cost, labels and, with classes, the probabilities and the groups' classes, as in ``Evaluation``."""
        model = self.model
        loop = self.groups, self.iterations
        _, *noisy = model.states(x, *loop, key.fold("noisy masks"), first, key.fold("noise"))
        cost = torch.stack([model.cost(x, state).mean(-1) for state in noisy], dim=1)
        labels, probabilities, group_classes = [], [], []
        _, *clean = model.best_states(x, *loop, key.fold("masks"), first, None, self.starts)
        for state in clean:
            labels.append(state.m.argmax(-2).to(torch.uint8))
            if model.config.classes and state.top is not None:
                probabilities.append(model.class_probabilities(state))
                group_classes.append(state.top.argmax(-1))
        found = (labels, probabilities, group_classes) if probabilities else (labels,)
        return (cost, *(torch.stack(parts, dim=1) for parts in found))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What S models make of n scenes, after each iteration; ``metrics`` are the means over the scenes."""

    scenes: Scenes
    cost: Float[Array, "S T n"]
    """-log q(x) per element on corrupted input, in nats."""
    labels: UInt8[Tensor, "S T n N"]
    """The most probable group of each element, on clean input."""
    probabilities: Float[Tensor, "S T n C"] | None = None
    """Of the classes of a scene; None where the models have none."""
    group_classes: Int[Tensor, "S T n K"] | None = None
    """The most probable class of each group; C is 'no class'."""

    @property
    def ami(self) -> Float[Array, "S T n"] | None:
        """By the larger entropy, as in the paper; None where the true groups are not known."""
        return self._agreements.get("ami")

    @property
    def ami_arithmetic(self) -> Float[Array, "S T n"] | None:
        return self._agreements.get("ami_arithmetic")

    @property
    def ari(self) -> Float[Array, "S T n"] | None:
        return self._agreements.get("ari")

    @property
    def ari_foreground(self) -> Float[Array, "S T n"] | None:
        """Of the objects alone; None where no group is known to be the background."""
        return self._agreements.get("ari_foreground")

    @cached_property
    def error(self) -> Float[Array, "S T labelled"] | None:
        """Top-1 for one class per scene, top-2 for two; None without classes or labels."""
        return self._errors(classification_error)

    @cached_property
    def by_digit(self) -> Float[Array, "S T labelled 2"] | None:
        """The two parts of the error of scenes with two classes, whose mean it is."""
        classes = self.scenes.classes
        return self._errors(errors_by_digit) if classes is not None and classes.shape[1:] == (2,) else None

    def metrics(self) -> Metrics:
        """Means over the scenes of which each metric says something."""
        first, second = (None, None) if self.by_digit is None else np.moveaxis(self.by_digit, -1, 0)
        named = {
            "cost": self.cost,
            **self._of_scored_scenes(),
            "error": self.error,
            "error_first": first,
            "error_second": second,
        }
        return {name: values.mean(-1).tolist() for name, values in named.items() if values is not None}

    @cached_property
    def _agreements(self) -> dict[str, Array]:
        """AMI with both normalisers, ARI and, with a background, ARI without it; empty without true groups."""
        if self.scenes.groups is None:
            return {}
        seeds, _, n, _ = self.labels.shape
        true = torch.from_numpy(np.ascontiguousarray(self.scenes.groups)).reshape(n, -1).to(self.labels.device)
        true = true.repeat(seeds, 1)
        scores = [agreements(true, labels.flatten(0, 1)) for labels in self.labels.unbind(1)]
        if self.scenes.background is not None:
            for score, labels in zip(scores, self.labels.unbind(1), strict=True):
                score["ari_foreground"] = foreground_adjusted_rand_index(
                    true, labels.flatten(0, 1), self.scenes.background
                )
        return {
            name: np.stack([score[name].reshape(seeds, n).cpu().numpy() for score in scores], axis=1)
            for name in scores[0]
        }

    def _of_scored_scenes(self) -> dict[str, Array]:
        """Agreement with the true groups in the scenes that have any; on the foreground, in those that have objects."""
        groups, found = self.scenes.groups, {}
        for name, values in self._agreements.items():
            counts = np.asarray(groups).reshape(values.shape[-1], -1) > 0
            if name == "ari_foreground":
                counts &= np.asarray(groups).reshape(counts.shape) != self.scenes.background
            scored = counts.any(1)
            if scored.any():
                found[name] = values[..., scored]
        return found

    def _errors(self, error: Callable[[Tensor, Tensor], Tensor]) -> Array | None:
        """An error of every labelled scene."""
        if self.probabilities is None or self.scenes.classes is None or not self.scenes.labelled.any():
            return None
        device = self.probabilities.device
        known = torch.from_numpy(self.scenes.labelled).to(device)
        classes = torch.from_numpy(np.ascontiguousarray(self.scenes.classes)).to(device)[known]
        return np.stack([[error(p[known], classes).cpu().numpy() for p in seed] for seed in self.probabilities])


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
    starts: int = 1,
) -> Evaluation:
    """Evaluate S models whose weights are stacked (S, ...) on the same scenes.

    The random masks and the noise depend on ``seed`` alone, so all models start alike. Of several random ``starts``,
    each clean scene has the groups that explain it best.
    """
    first_weight = next(iter(weights.values()))
    seeds, device = len(first_weight), first_weight.device
    evaluator = _Evaluator(model, groups, iterations, starts).to(device)
    named = {f"model.{name}": w for name, w in weights.items()}
    x = torch.from_numpy(np.ascontiguousarray(scenes.x)).reshape(len(scenes), -1)
    key = Key.of([seed] * seeds, device).fold("evaluation")
    outputs = [
        functional_call(evaluator, named, (part.to(device).expand(seeds, *part.shape), key, first))
        for first, part in batches(x, model.inputs_at_once(batch, groups, seeds))
    ]
    cost, labels, *of_classes = (torch.cat(parts, dim=2) for parts in zip(*outputs, strict=True))
    return Evaluation(scenes, cost.cpu().numpy(), labels, *of_classes)


def stack_weights(models: Sequence[Tagger]) -> dict[str, Tensor]:
    """The weights of several models of one configuration and their frozen statistics, stacked (S, ...)."""
    states = [model.state_dict() for model in models]
    return {name: torch.stack([state[name] for state in states]) for name in states[0]}
