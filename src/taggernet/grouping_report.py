"""Did groups form? Answered without the truth: are the masks decided, and do different random starts agree?

# S seeds · B batch · K groups · P positions, N elements · n scenes

Neither is enough alone. A split can be agreed on and undecided, or decided and another one at every start. It can also
be both and the same cut through every scene: therefore labels of different scenes are compared as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.func import functional_call

from taggernet.data import Scenes
from taggernet.metrics.ami import agreements
from taggernet.rng import Key
from taggernet.tag.grouping import batches
from taggernet.tagger import Tagger

DECIDED = AGREED = 0.5
"""Confidence and agreement from which on groups count as formed."""
IN_USE = 0.02
"""Share of the elements from which on a group counts as used."""
ALIKE = 0.6
"""Mean AMI of different scenes' labels from which on a split says nothing about a scene."""
MOST_VALUES = 1_000_000
"""Of which quantiles are taken."""
TWO = 1.5
"""Groups used in a scene, on average, below which one group takes everything."""


@dataclass(frozen=True)
class GroupingReport:
    """Of each seed, over all scenes."""

    groups: int
    confidence: list[float]
    """Mean of the largest mask, scaled so that 1/K is 0 and certainty is 1."""
    agreement: list[float]
    """Mean AMI of the labels from two random starts: 1 for the same groups, about 0 for chance."""
    used: list[float]
    """Mean number of groups in a scene that own some of it."""
    elsewhere: list[float] = field(default_factory=list)
    """Mean AMI of the labels of two different scenes: high where every scene is cut in the same way, seen or not."""
    reproduced: list[float] = field(default_factory=list)
    """Mean AMI of the labels of models that only differ in their first weights, from another start: low where chance
    made the groups. Of real scenes only what differs from the mean by a standard deviation counts: silence may belong
    to anybody."""
    by_value: list[float] = field(default_factory=list)
    """Real scenes with twins: mean AMI of the labels with K classes of values, from low to high; 1: values tell all."""
    by_parts: bool = False
    """Whether masks start from the parts of the data: then one cut for all scenes is what the data say."""

    @property
    def formed(self) -> list[bool]:
        """Whether groups formed, by seed."""
        return [
            c >= DECIDED and a >= AGREED and u >= TWO and (e < ALIKE or self.by_parts)
            for c, a, u, e in zip(self.confidence, self.agreement, self.used, self._elsewhere, strict=True)
        ]

    @property
    def _elsewhere(self) -> list[float]:
        return self.elsewhere or [0.0] * len(self.used)

    @property
    def score(self) -> list[float]:
        """How well groups formed, by seed, 0 to 1: decided, the same from every start, and not alike in all scenes.

        Where other first weights are known: the same for them, which includes both. Groups that single values tell then
        count half: they are easy to find again, whether objects have levels of their own or not. And decided counts
        less, as masks become so while training goes on.
        """
        divided = [min(1.0, max(0.0, used - 1)) for used in self.used]
        if self.reproduced:
            told = [max(0.0, value) for value in self.by_value or [0.0] * len(self.used)]
            parts = zip(self.reproduced, self.confidence, divided, told, strict=True)
            return [max(0.0, r) * c**0.5 * d * (1 - v / 2) for r, c, d, v in parts]
        alike = [0.0 if self.by_parts else max(0.0, e) for e in self._elsewhere]
        parts = zip(self.agreement, self.confidence, divided, alike, strict=True)
        return [min(1.0, max(0.0, a - e) * c * d) for a, c, d, e in parts]

    def __str__(self) -> str:
        """One line: the verdict, the numbers (means over the seeds), and advice where groups did not form."""
        seeds, formed = len(self.formed), sum(self.formed)
        verdict = "groups formed" if formed else "no groups formed"
        if 0 < formed < seeds:
            verdict += f" in {formed} of {seeds} seeds"
        numbers = (
            f"confidence {fmean(self.confidence):.2f}, agreement of random starts {fmean(self.agreement):.2f}, "
            f"{fmean(self.used):.1f} of {self.groups} groups used"
        )
        if formed and fmean(self._elsewhere) >= ALIKE:
            numbers += ", the same in all scenes"
        return f"{verdict} ({numbers}){'' if formed == seeds else ': ' + self._advice()}"

    def _advice(self) -> str:
        failed = self.formed.index(False)
        if self.confidence[failed] < DECIDED:
            return "masks are undecided; train longer (more --updates), or try the other --norm or another --noise"
        if self.used[failed] < TWO:
            return "one group takes everything; try more --noise, the other --norm or fewer --groups"
        if self._elsewhere[failed] >= ALIKE:
            return (
                f"all scenes are cut alike ({self._elsewhere[failed]:.2f}), whatever they show; try more --noise or "
                "other --groups, and see whether each element has one owner in all scenes"
            )
        return "each start gives other groups; train longer (more --updates), or try other --groups or more --noise"


def beside_truth(metrics: dict[str, list[list[float]]]) -> str:
    """What the true groups of held-out scenes say, where they are known; a mean over the seeds."""
    if "ami" not in metrics:
        return ""
    return f"AMI with the true groups of held-out scenes: {fmean(of_seed[-1] for of_seed in metrics['ami']):.2f}"


class _Last(nn.Module):
    """The largest mask of each element after the last iteration, and whose it is; takes stacked weights."""

    def __init__(self, model: Tagger, groups: int, iterations: int) -> None:
        super().__init__()
        self.model, self.groups, self.iterations = model, groups, iterations

    def forward(
        self, x: Shaped[Tensor, "S B N"], key: Key, first: int
    ) -> tuple[Float[Tensor, "S B P"], Int[Tensor, "S B P"]]:
        *_, state = self.model.states(x, self.groups, self.iterations, key, first)
        largest, labels = state.m.max(-2)
        return largest, labels


@torch.no_grad()
def grouping_report(
    model: Tagger,
    weights: dict[str, Tensor],
    scenes: Scenes,
    *,
    groups: int,
    iterations: int,
    batch: int = 100,
    starts: int = 3,
    twins: int = 1,
) -> GroupingReport:
    """Group the scenes from several random starts, with each of S models whose weights are stacked (S, ...).

    Of the models, ``twins`` in a row only differ in their first weights: how far their groups agree is reported too.

    Of binary scenes only the ones count: a zero is explained by every group that expects none, so its owner is open.
    Scenes without ones therefore say nothing, and are left out if there are others.
    """
    first_weight = next(iter(weights.values()))
    seeds, device = len(first_weight), first_weight.device
    last = _Last(model, groups, iterations).to(device)
    named = {f"model.{name}": w for name, w in weights.items()}
    x = torch.from_numpy(np.ascontiguousarray(scenes.x)).reshape(len(scenes), -1)
    by_position = torch.unflatten(x, -1, (-1, model.config.channels))
    counted = (by_position != 0).any(-1) if model.config.kind == "binary" else torch.ones(by_position.shape[:2]) > 0
    telling = counted.any(-1)
    if telling.any():
        x, counted = x[telling], counted[telling]
    counted = counted.to(device)
    real = model.config.kind == "real"
    seen = torch.unflatten(model.inputs(x.to(device)), -1, (-1, model.config.channels))
    loud = _loud(seen) if real else counted
    confidence, labels = [], []
    for number in range(starts):
        key = Key.of([number] * seeds, device).fold("grouping report")
        parts = [
            functional_call(last, named, (part.to(device).expand(seeds, *part.shape), key, first))
            for first, part in batches(x, model.inputs_at_once(batch, groups, seeds))
        ]
        largest, owner = (torch.cat(of_parts, dim=1) for of_parts in zip(*parts, strict=True))
        confidence.append(((largest - 1 / groups) / (1 - 1 / groups))[:, counted].mean(-1))
        labels.append(owner)
    return GroupingReport(
        groups,
        torch.stack(confidence).mean(0).tolist(),
        [_agreement([of_start[s] for of_start in labels], counted) for s in range(seeds)],
        [fmean(_used(of_start[s], counted, groups) for of_start in labels) for s in range(seeds)],
        [_elsewhere(labels[0][s], counted) for s in range(seeds)],
        [_reproduced(labels[0], labels[-1], s, twins, loud) for s in range(seeds)] if twins > 1 else [],
        [_by_value(labels[0][s], seen, groups) for s in range(seeds)] if twins > 1 and real else [],
        model.config.start == "parts",
    )


def _loud(x: Float[Tensor, "n P C"]) -> Shaped[Tensor, "n P"]:
    """The positions that differ from their mean by a standard deviation of all of x, in any channel."""
    from_mean = x - x.mean(0)
    return (from_mean.abs() >= from_mean.std()).any(-1)


def _by_value(labels: Int[Tensor, "n P"], x: Float[Tensor, "n P C"], groups: int) -> float:
    """Mean AMI of a model's labels with K equally large classes of values, the mean over the channels."""
    value = x.mean(-1)
    borders = torch.quantile(value.flatten()[:MOST_VALUES], torch.arange(1, groups, device=x.device) / groups)
    return agreements(torch.bucketize(value, borders) + 1, labels)["ami"].mean().item()


def _agreement(labels: list[Int[Tensor, "n P"]], counted: Shaped[Tensor, "n P"]) -> float:
    """Mean AMI over scenes and pairs of labellings; label 0 is left out."""
    return fmean(agreements((a + 1) * counted, b)["ami"].mean().item() for a, b in combinations(labels, 2))


def _reproduced(
    labels: Int[Tensor, "S n P"], others: Int[Tensor, "S n P"], model: int, twins: int, counted: Shaped[Tensor, "n P"]
) -> float:
    """Mean AMI of a model's labels with its twins' from another start, over the scenes where it divides what counts."""
    own, first = (labels[model] + 1) * counted, model // twins * twins
    found = [agreements(own, others[s])["ami"][_several(own)] for s in range(first, first + twins) if s != model]
    return fmean(ami.mean().item() if len(ami) else 0.0 for ami in found)


def _elsewhere(labels: Int[Tensor, "n P"], counted: Shaped[Tensor, "n P"]) -> float:
    """Mean AMI of each scene's labels with the next one's where both count; 0 where no such part has two groups.

    A part in which each element has a group of its own, such as the two crossings of two pairs of bars, tells nothing.
    """
    both = (labels + 1) * counted * counted.roll(1, 0)
    ordered = both.sort(1).values
    shared = ((ordered.diff(dim=1) == 0) & (ordered[:, 1:] > 0)).any(1)
    found = agreements(both, labels.roll(1, 0))["ami"][_several(both) & shared]
    return found.mean().item() if len(found) else 0.0


def _several(labels: Int[Tensor, "n P"]) -> Shaped[Tensor, " n"]:
    """Whether a scene has two labels or more; 0 is none."""
    return (labels.amax(1) != labels.where(labels > 0, labels.amax()).amin(1)) & (labels > 0).any(1)


def _used(labels: Int[Tensor, "n P"], counted: Shaped[Tensor, "n P"], groups: int) -> float:
    owned = torch.stack([((labels == k) & counted).sum(-1) for k in range(groups)], dim=-1)
    return (owned > IN_USE * counted.sum(-1, keepdim=True)).sum(-1).float().mean().item()
