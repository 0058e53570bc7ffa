"""Data of the baselines: Tagger's scenes, and who sees which of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from paper.baselines import BaselineConfig, baseline, quick
from paper.baselines.sources import known_scenes, load_split, source, with_labels
from taggernet.data import fixture_digits, texture_mnist

CPU = torch.device("cpu")


def toy(name: str, **changes: Any) -> BaselineConfig:
    """On the fixture's digits, at a size that learns within seconds."""
    return replace(quick(baseline(name)), device="cpu", **changes)


def test_scenes_are_those_of_tagger() -> None:
    config = toy("mlp-texture-mnist-2-1k")
    images, labels = fixture_digits("train")
    expected = texture_mnist(2, "train", images=images, labels=labels)
    found = load_split(config, "train")
    np.testing.assert_array_equal(found.x, expected.x)
    np.testing.assert_array_equal(np.asarray(found.classes), np.asarray(expected.classes))
    either = texture_mnist(2, "train", images=images, labels=labels, depth="random")
    np.testing.assert_array_equal(load_split(replace(config, depth="random"), "train").x, either.x)
    shuffled = load_split(replace(config, permuted=True), "train")
    assert not np.array_equal(shuffled.x, found.x)
    np.testing.assert_array_equal(np.sort(shuffled.x.reshape(400, -1)), np.sort(found.x.reshape(400, -1)))


def test_few_labels_are_balanced_and_all_are_all() -> None:
    config = toy("mlp-texture-mnist-1-1k")
    classes = load_split(config, "train").classes
    assert classes is not None
    assert np.bincount(classes[with_labels(config, classes)]).tolist() == [10] * 10
    assert with_labels(replace(config, labels=400), classes).tolist() == list(range(400))
    with pytest.raises(ValueError, match="there are 400 training scenes"):
        with_labels(replace(config, labels=401), classes)


@pytest.mark.parametrize("digits", [1, 2])
@pytest.mark.parametrize("labelled", ["fixed", "fresh"])
@pytest.mark.parametrize("unlabelled", ["fixed", "fresh"])
@pytest.mark.parametrize("permuted", [False, True])
def test_labelled_batches_hold_only_what_has_labels(
    digits: int, labelled: Any, unlabelled: Any, permuted: bool
) -> None:
    config = toy(
        f"ladder-texture-mnist-{digits}-1k", labelled=labelled, unlabelled=unlabelled, permuted=permuted, seeds=3
    )
    train = load_split(config, "train")
    batches = source(config, train, CPU)
    batches.prepare(0)
    batch = batches.batch(torch.tensor(2))
    assert batch.labelled is not None
    assert batch.classes is not None
    assert batch.x.shape == batch.labelled.shape == (3, 20, 784)
    assert batch.classes.shape == (3, 20, digits)
    assert not torch.equal(batch.labelled[0], batch.labelled[1])
    if labelled == "fixed":
        assert train.classes is not None
        chosen = with_labels(config, train.classes)
        known = {row.tobytes(): c for row, c in zip(train.x[chosen].reshape(len(chosen), -1), chosen, strict=True)}
        for row, classes in zip(batch.labelled[0].numpy(), batch.classes[0].tolist(), strict=True):
            assert classes == np.atleast_1d(train.classes[known[row.tobytes()]]).tolist()


def test_supervised_batches_have_no_unlabelled_scenes() -> None:
    config = toy("mlp-texture-mnist-1-1k")
    batches = source(config, load_split(config, "train"), CPU)
    batches.prepare(0)
    batch = batches.batch(torch.tensor(0))
    assert batch.labelled is None
    assert batch.classes is not None
    assert batch.x.shape[:2] == batch.classes.shape[:2]


@pytest.mark.parametrize(
    ("name", "labelled", "expected"),
    [("ladder", "fixed", 400), ("mlp", "fixed", 100), ("mlp", "fresh", 64), ("convnet", "fixed", 100)],
)
def test_only_the_ladder_knows_scenes_without_labels(name: str, labelled: Any, expected: int) -> None:
    config = toy(f"{name}-texture-mnist-1-1k", labelled=labelled, statistics=64)
    train = load_split(config, "train")
    known = known_scenes(config, train, CPU)
    assert known.shape == (expected, 784)
    if labelled == "fixed" and name != "ladder":
        assert train.classes is not None
        np.testing.assert_array_equal(known, train.x[with_labels(config, train.classes)].reshape(100, -1))
    assert len(known_scenes(replace(config, labels=400), train, CPU)) == 400
