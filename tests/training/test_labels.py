"""Which scenes have labels in the second phase."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from taggernet import data
from taggernet.config.run import Config
from taggernet.data import Scenes
from taggernet.recipes import recipe
from taggernet.rng import Key
from taggernet.training.datasets import _labelled_rows, source, training_set
from taggernet.training.objective import Batch
from taggernet.training.sources import Part


def scenes(classes: list[int]) -> Scenes:
    return Scenes(np.zeros((len(classes), 4), np.float32), None, np.array(classes), "real")


@pytest.mark.parametrize("labels", [40, 50_000])
def test_all_labels_are_used_though_classes_are_not_balanced(labels: int) -> None:
    config = recipe("texture-mnist-1-labels-50k")
    config = replace(config, data=replace(config.data, labels=labels))
    uneven = scenes([0] * 3 + [c for c in range(1, 10) for _ in range(4)] + [9])
    assert np.array_equal(_labelled_rows(config, uneven, Part.of(10)), np.arange(40))


def test_some_labels_are_balanced() -> None:
    config = recipe("texture-mnist-1-labels-1k")
    config = replace(config, data=replace(config.data, labels=20))
    even = scenes([c for c in range(10) for _ in range(5)])
    chosen = _labelled_rows(config, even, Part.of(10))
    assert np.bincount(np.asarray(even.classes)[chosen]).tolist() == [2] * 10


def fresh(labels: int) -> Config:
    config = recipe("texture-mnist-2-labels-1k")
    drawn = replace(config.data, mode="fresh", labels=labels, digits="fixture", train=50)
    return replace(config, data=drawn, seeds=2, optimiser=replace(config.optimiser, batch=20))


def batch_of(config: Config, step: int = 3) -> Batch:
    made = source(config, torch.device("cpu"), [0, 1], Part.of(20), training_set(config))
    made.prepare(step)
    return made.batch(torch.tensor(step))


def test_labelled_fresh_scenes_are_made_of_the_labelled_digits_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    draw = data.fresh_texture_mnist

    def watched(key: Key, images: torch.Tensor, labels: torch.Tensor, *rest: object) -> object:
        used.append((images.numpy(), labels.numpy()))
        return draw(key, images, labels, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(data, "fresh_texture_mnist", watched)
    few = batch_of(fresh(10))
    assert few.labelled is not None
    assert few.classes is not None
    assert few.x.shape == few.labelled.shape == (2, 20, 784)
    assert few.classes.shape == (2, 20, 2)
    assert not torch.equal(few.x, few.labelled)
    assert not torch.equal(few.classes[0], few.classes[1])
    images, labels = data.fixture_digits("train")
    allowed = data.labelled_subset(labels, 10)
    by_size = sorted(used, key=lambda pair: len(pair[0]))
    assert [len(pictures) for pictures, _ in by_size] == [10, len(images)]
    assert sorted(by_size[0][1]) == list(range(10)), "one of each class"
    assert np.array_equal(by_size[0][0], images[allowed])


def test_fresh_scenes_that_all_have_labels_are_used_for_both_costs() -> None:
    every = batch_of(fresh(50_000))
    assert every.labelled is None
    assert every.classes is not None
    assert every.classes.shape == (2, 20, 2)


def test_fresh_scenes_are_the_same_with_and_without_labels() -> None:
    config = fresh(50_000)
    without = replace(config, class_cost=0.0)
    assert torch.equal(batch_of(config).x, batch_of(without).x)
    assert batch_of(without).classes is None
