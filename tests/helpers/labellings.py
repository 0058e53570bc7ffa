"""Labels of elements for the scores that compare two groupings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taggernet.metrics import adjusted_mutual_information, adjusted_rand_index

SCORES: list[Callable[..., Any]] = [adjusted_mutual_information, adjusted_rand_index]


def noisy_labels(scenes: int, elements: int, labels: int, groups: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Predictions from random to perfect, one degree per scene."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, labels + 1, (scenes, elements))
    noise = rng.integers(0, groups, (scenes, elements))
    return true, np.where(rng.random((scenes, elements)) < rng.random((scenes, 1)), noise, true % groups)


ONE = np.ones((2, 3), dtype=np.int64)
