"""What an update minimises: the denoising cost, averaged over iterations, and the optional class cost.

# S seeds (optional) · B batch · K groups · N elements · T iterations
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from taggernet.nets.conv import ConvMapping
from taggernet.nets.disturbance import Disturbance
from taggernet.nets.ladder import LadderMapping
from taggernet.rng import Key
from taggernet.tag import State
from taggernet.tag.grouping import features
from taggernet.tagger import Tagger

LABELLED, DISTURBANCE = 1, 2
"""Streams of their own beside that of the noise; numbers, as a compiled update cannot fold a name."""


class Batch(NamedTuple):
    """One update's data: scenes for the denoising cost and, in the second phase, others with labels.

    Classes without ``labelled`` belong to x itself: where every scene has a label, one pass serves both costs.
    """

    x: Float[Tensor, "*S B N"]
    labelled: Float[Tensor, "*S L N"] | None = None
    classes: Int[Tensor, "*S L digits"] | None = None

    def first_seed(self) -> Batch:
        """Without the dimension of seeds."""
        return Batch(self.x[0], *(None if part is None else part[0] for part in (self.labelled, self.classes)))


class Costs(NamedTuple):
    """Per seed."""

    total: Float[Tensor, "*S"]
    denoising: Float[Tensor, "*S"]
    classification: Float[Tensor, "*S"]


class Objective(nn.Module):
    """The cost of a batch as a function of the weights, the batch and the random keys alone."""

    def __init__(
        self,
        model: Tagger,
        groups: int,
        iterations: int,
        class_cost: float = 0.0,
        discount: float = 1.0,
        class_dropout: float = 0.0,
        class_reach: Literal["all", "reader"] = "all",
        class_agreement: float = 0.0,
        twins: bool = False,
        class_distortion: float = 0.0,
    ) -> None:
        super().__init__()
        self.model = model
        self.groups, self.iterations = groups, iterations
        self.class_cost: float | Tensor = class_cost
        """One weight, or one per seed (S,)."""
        self.class_dropout: float | Tensor = class_dropout
        """One rate, or one per seed (S, 1, 1)."""
        self.class_distortion = class_distortion
        self.reader_alone = class_reach == "reader"
        self.class_agreement, self.twins = class_agreement, twins
        powers = [discount**i for i in reversed(range(iterations))]
        self.shares: list[float | Tensor] = [power / sum(powers) for power in powers]
        """Weight of each iteration in the denoising cost; equal without a discount. Tensors (S,): one per seed."""

    def forward(self, batch: Batch, noise: Key, masks: Key, first: int = 0) -> Costs:
        """``first`` is the index of the batch's first scene in the global batch."""
        model = self.model
        x_tilde = model.corrupt(batch.x, noise, first)
        start = model.start(batch.x.shape[-2], self.groups, masks, first, x_tilde)
        both = batch.classes is not None and batch.labelled is None
        states = list(
            self._iterate(x_tilde, start, noise, first) if both else model.iterate(x_tilde, start, self.iterations)
        )
        denoising = self._denoising(batch.x, states)
        if batch.classes is None:
            return Costs(denoising, denoising, torch.zeros_like(denoising))
        last = states[-1]
        if batch.labelled is not None:
            last = self._last(batch.labelled, noise.fold(LABELLED), masks.fold(LABELLED), first)
        log_p = torch.log(model.class_probabilities(last).clamp(min=1e-7))
        # Cross-entropy of the last iteration's classes; two digits share the target.
        classification = -log_p.gather(-1, batch.classes).mean((-2, -1))
        learned = classification
        if self.class_agreement and batch.labelled is not None:
            before = [start, *states][-2]
            learned = learned + self.class_agreement * self._consistency(x_tilde, before, states[-1], noise, first)
        return Costs(denoising + self.class_cost * learned, denoising, classification)

    def _denoising(self, x: Tensor, states: Iterable[State]) -> Tensor:
        """Per seed: every iteration with its share."""
        costs = [self.model.cost(x, state).mean((-2, -1)) for state in states]
        return torch.stack([share * cost for share, cost in zip(self.shares, costs, strict=True)]).sum(0)

    def _consistency(self, x_tilde: Tensor, before: State, answer: State, noise: Key, first: int) -> Tensor:
        """Consistency on unlabelled scenes: classes with dropout and distorted masks should be those without.

        The target is the prediction without them, of twins the mean of both, sharpened (squared and normalised). Its
        gradient stays in the class head.
        """
        model, mapping = self.model, self.model.mapping
        assert isinstance(mapping, LadderMapping | ConvMapping)
        assert mapping.reader is not None
        target = model.class_probabilities(answer).detach()
        if self.twins:
            pairs = torch.unflatten(target, -2, (-1, 2))
            target = pairs.mean(-2, keepdim=True).expand_as(pairs).flatten(-3, -2)
        target = target.square()
        target = target / target.sum(-1, keepdim=True).clamp(min=1e-30)
        rows = features(model.likelihood, x_tilde, before, model.v).detach().flatten(-3, -2)
        top = mapping.reader(rows, self._disturbance(noise, first))
        again = answer._replace(top=torch.unflatten(top, -2, (-1, self.groups)))
        return -(target * torch.log(model.class_probabilities(again).clamp(min=1e-7))).sum(-1).mean(-1)

    def _last(self, x: Tensor, noise: Key, masks: Key, first: int) -> State:
        """The state of the last iteration on corrupted labelled scenes."""
        x_tilde = self.model.corrupt(x, noise, first)
        state = self.model.start(x.shape[-2], self.groups, masks, first, x_tilde)
        *_, last = self._iterate(x_tilde, state, noise, first)
        return last

    def _iterate(self, x_tilde: Tensor, state: State, noise: Key, first: int) -> Iterator[State]:
        """The pass that classes are learned from."""
        return self.model.iterate(x_tilde, state, self.iterations, self._disturbance(noise, first), self.reader_alone)

    def _disturbance(self, key: Key, first: int) -> Disturbance | None:
        """Of the last iteration, from which classes are learned."""
        rate, strength = self.class_dropout, self.class_distortion
        if not (isinstance(rate, Tensor) or rate or strength):
            return None
        return Disturbance(rate, key.fold(DISTURBANCE), first * self.groups, strength, self.model.config.shape)
