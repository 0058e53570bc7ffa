"""Which scenes have labels in the second phase."""

from dataclasses import replace

import numpy as np
import pytest

from taggernet.data import Scenes
from taggernet.recipes import recipe
from taggernet.training.datasets import _labelled
from taggernet.training.sources import Part


def scenes(classes: list[int]) -> Scenes:
    return Scenes(np.zeros((len(classes), 4), np.float32), None, np.array(classes), "real")


@pytest.mark.parametrize("labels", [40, 50_000])
def test_all_labels_are_used_though_classes_are_not_balanced(labels: int) -> None:
    config = recipe("texture-mnist-1-labels-50k")
    config = replace(config, data=replace(config.data, labels=labels))
    uneven = scenes([0] * 3 + [c for c in range(1, 10) for _ in range(4)] + [9])
    assert np.array_equal(_labelled(config, uneven, Part.of(10)), np.arange(40))


def test_some_labels_are_balanced() -> None:
    config = recipe("texture-mnist-1-labels-1k")
    config = replace(config, data=replace(config.data, labels=20))
    even = scenes([c for c in range(10) for _ in range(5)])
    chosen = _labelled(config, even, Part.of(10))
    assert np.bincount(np.asarray(even.classes)[chosen]).tolist() == [2] * 10
