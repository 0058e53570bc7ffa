"""The paper's informal test of human subjects: name the two digits, and compare your error with the network's.

Both are scored by the same rule (``metrics.top2_error``): the share of the two true digits that is missing from the
answer; where both are the same digit, whether the first one named is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from taggernet import metrics
from taggernet.arrays import Array
from taggernet.config.validate import check_count
from taggernet.data import Scenes
from taggernet.tagger import Tagger

BEST_HUMAN = 0.30
"""The best of the paper's five subjects on TextureMNIST2, after days of practice and 30 seconds a scene."""
CLASSES = 10
BATCH = 100


@dataclass(frozen=True)
class Tally:
    """Errors so far, summed over the scenes answered."""

    scenes: int = 0
    you: float = 0.0
    network: float | None = None

    def plus(self, you: float, network: float | None) -> Tally:
        total = None if network is None else (self.network or 0.0) + network
        return Tally(self.scenes + 1, self.you + you, total)

    @property
    def your_error(self) -> float | None:
        return self.you / self.scenes if self.scenes else None

    @property
    def network_error(self) -> float | None:
        return self.network / self.scenes if self.scenes and self.network is not None else None


@dataclass(frozen=True)
class Round:
    """Where one person stands: which scene is shown, what was answered, the errors so far."""

    seed: int
    position: int = 0
    answer: tuple[int, ...] = ()
    """() until the scene shown is answered."""
    tally: Tally = field(default_factory=Tally)


def error_of(answer: Sequence[object], truth: Sequence[int]) -> float:
    """The error of one or two digits named, in the order named, against the two true ones."""
    if not 1 <= len(answer) <= 2:
        raise ValueError(f"{len(answer)} digits were named: name one or two, one where both are the same")
    named = [check_count("digit", digit, low=0, high=CLASSES - 1) for digit in answer]
    scores = np.zeros((1, CLASSES + 1))
    scores[0, named[0]] = 2.0
    scores[0, named[1] if len(set(named)) == 2 else CLASSES] = 1.0  # class 10 stands for 'nothing named'
    return float(metrics.top2_error(scores, np.array([truth]))[0])


class Contest:
    """Scenes of two digits, and what the network says of them."""

    def __init__(self, scenes: Scenes, model: Tagger) -> None:
        if scenes.classes is None or scenes.classes.ndim != 2 or scenes.classes.shape[1] != 2:
            raise ValueError("the test needs scenes with two classes each: give TextureMNIST2")
        self.scenes, self.truths, self.model = scenes, scenes.classes, model
        self._predict = lru_cache(maxsize=16)(lambda part: model.predict(scenes.x[part * BATCH : (part + 1) * BATCH]))

    def index(self, state: Round) -> int:
        """The scene shown: each person goes through them in an order of their own."""
        order = np.random.default_rng(state.seed).permutation(len(self.scenes))
        return int(order[state.position % len(order)])

    def x(self, state: Round) -> Array:
        x: Array = self.scenes.x[self.index(state)]
        return x

    def truth(self, state: Round) -> tuple[int, int]:
        lower, upper = self.truths[self.index(state)]
        return int(lower), int(upper)

    def probabilities(self, state: Round) -> Array | None:
        """What the network says of the scene shown, (C,); None if it was trained without classes."""
        if self.model.config.classes != CLASSES:
            return None
        index = self.index(state)
        found: Any = self._predict(index // BATCH)[index % BATCH]
        return np.asarray(found)

    def answered(self, state: Round, answer: Sequence[int]) -> Round:
        """The round with this answer scored; a scene already answered stays as it is."""
        if state.answer:
            return state
        truth, probabilities = self.truth(state), self.probabilities(state)
        network = None
        if probabilities is not None:
            network = float(metrics.top2_error(probabilities[None].astype(np.float64), np.array([truth]))[0])
        tally = state.tally.plus(error_of(answer, truth), network)
        return Round(state.seed, state.position, tuple(answer), tally)

    def following(self, state: Round) -> Round:
        """The next scene; one not answered is passed over and counts for nobody."""
        return Round(state.seed, state.position + 1, (), state.tally)
