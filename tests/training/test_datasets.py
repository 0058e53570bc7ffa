"""Splits and training batches of a configuration: which scenes, in which units, which of them with labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pytest
import torch
from own_files import sensors, write
from torch import Tensor
from toys import fixture_digits, records, shrunk, toy

from taggernet import data
from taggernet.config.run import Config, DataConfig
from taggernet.data import Scenes
from taggernet.recipes import recipe
from taggernet.rng import Key
from taggernet.training import datasets, train
from taggernet.training.auto_config import config_for
from taggernet.training.datasets import _labelled_rows, load_split, own_rows, source, training_set
from taggernet.training.objective import Batch
from taggernet.training.sources import Part

# --- splits -------------------------------------------------------------------------------------------------------


def test_splits_of_a_users_file_share_no_scene(tmp_path: object) -> None:
    path = f"{tmp_path}/own.npz"
    Scenes(np.arange(50.0, dtype=np.float32)[:, None] / 50, kind="real").save(path)
    config = DataConfig(name=path, train=50, valid=10, test=10)
    found = {name: set(datasets.load_split(config, name).x[:, 0].tolist()) for name in ("train", "valid", "test")}
    assert [len(found[name]) for name in ("train", "valid", "test")] == [40, 5, 5]
    assert len(set.union(*found.values())) == 50


def test_permuted_scenes_are_the_same_scenes_in_another_order() -> None:
    plain = DataConfig(train=5, size=8, objects=2, style="small")
    moved = DataConfig(train=5, size=8, objects=2, style="small", permuted=True)
    a, b = datasets.load_split(plain, "train"), datasets.load_split(moved, "train")
    order = datasets.permutation(moved, 64)
    assert sorted(order.tolist()) == list(range(64))
    assert order.tolist() != list(range(64))
    assert np.array_equal(a.x.reshape(5, -1)[:, order], b.x.reshape(5, -1))
    assert a.groups is not None
    assert b.groups is not None
    assert np.array_equal(a.groups.reshape(5, -1)[:, order], b.groups.reshape(5, -1))


COLOURED = {
    "tetrominoes": DataConfig(name="tetrominoes", train=6, size=14),
    "sprites": DataConfig(name="sprites", train=6, size=16, objects=4, min_objects=2, variant="texture"),
}


@pytest.mark.parametrize("name", COLOURED)
def test_the_channels_of_a_position_move_together(name: str) -> None:
    plain, moved = (load_split(replace(COLOURED[name], permuted=permuted), "train") for permuted in (False, True))
    positions = moved.shape[0] ** 2
    order = datasets.permutation(COLOURED[name], positions)
    x, groups = moved.x.reshape(6, positions, 3), moved.groups
    assert groups is not None
    assert plain.groups is not None
    assert np.array_equal(plain.x.reshape(6, positions, 3)[:, order], x)
    assert np.array_equal(plain.groups.reshape(6, -1)[:, order], groups.reshape(6, -1))


@pytest.mark.parametrize("permuted", [False, True])
@pytest.mark.parametrize("name", [*COLOURED, "shapes"])
def test_fresh_scenes_are_those_of_the_generator(name: str, permuted: bool) -> None:
    config = COLOURED.get(name, DataConfig(train=6, objects=5, min_objects=1))
    config = replace(config, permuted=permuted)
    fixed = load_split(config, "train")
    draw = datasets.fresh_draw(config, torch.device("cpu"))
    x, classes = draw(Key.of(config.seed).fold(name, "train"), 4, 2)
    assert classes is None
    assert np.array_equal(x.numpy(), fixed.x[2:].reshape(4, -1))


def test_splits_are_apart_and_whole(tmp_path: Path) -> None:
    config = config_for(write(tmp_path / "my.npz", sensors())).data
    parts = [own_rows(config, name).rows for name in ("train", "valid", "test")]
    assert [len(part) for part in parts] == [48, 6, 6]
    assert sorted(np.concatenate(parts)) == list(range(60))
    held = load_split(config, "test")
    np.testing.assert_array_equal(held.x, sensors()["x"][parts[2]].astype(np.float32))


# --- batches ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["fixed", "fresh"])
def test_training_and_evaluation_use_the_same_units(mode: str, tmp_path: Path) -> None:
    """At a learning rate of almost nothing both measure the cost of the same model on the same kind of scenes."""
    config = shrunk("texture-mnist-1", updates=5)
    config = replace(
        config,
        model=replace(config.model, offset=-3.0, scale=0.25),
        data=replace(config.data, mode=mode),
        optimiser=replace(config.optimiser, lr=1e-12, batch=20),
        runtime=replace(config.runtime, evaluate_scenes=20),
        test_iterations=config.iterations,
        test_groups=config.groups,
    )
    with fixture_digits():
        run = train(config, tmp_path)
    trained = [record["loss"][0] for record in records(tmp_path) if "loss" in record]
    evaluated = run.metrics["cost"][0]
    assert sum(trained) / len(trained) == pytest.approx(sum(evaluated) / len(evaluated), rel=0.1)


def source_of(config: Config, part: Part) -> datasets.Source:
    train = datasets.load_split(config.data, "train")
    source = datasets.source(config, torch.device("cpu"), [0, 1], part, train)
    source.prepare(1)
    return source


@pytest.mark.parametrize("mode", ["fixed", "fresh"])
def test_ranks_share_the_global_batch(mode: str) -> None:
    config = toy(mode=mode)
    whole = source_of(config, Part.of(10)).batch(torch.tensor(1)).x
    assert whole.shape == (2, 10, 64)
    parts = [source_of(config, Part.of(10, rank, 5)).batch(torch.tensor(1)).x for rank in range(5)]
    assert torch.equal(torch.cat(parts, dim=1), whole)
    assert not torch.equal(whole[0], whole[1]), "each seed draws its own"


@pytest.mark.parametrize("name", ["texture-mnist-1-labels-1k", "texture-mnist-2-labels-1k"])
def test_ranks_share_the_labelled_batch(name: str) -> None:
    with fixture_digits():
        config = shrunk(name)
        whole = source_of(config, Part.of(10)).batch(torch.tensor(1))
        parts = [source_of(config, Part.of(10, rank, 2)).batch(torch.tensor(1)) for rank in range(2)]
    assert whole.labelled is not None
    assert whole.classes is not None
    assert whole.classes.shape == (2, 10, int(config.data.name[-1]))
    for field in ("x", "labelled", "classes"):
        assert torch.equal(torch.cat([getattr(part, field) for part in parts], dim=1), getattr(whole, field))


def test_fresh_texture_scenes_are_drawn_anew() -> None:
    with fixture_digits():
        config = shrunk("texture-mnist-2")
        source = source_of(replace(config, data=replace(config.data, mode="fresh")), Part.of(4))
    first, second = (source.batch(torch.tensor(step)).x for step in range(2))
    assert first.shape == (2, 4, 784)
    assert not torch.equal(first, second)


def test_fresh_permuted_scenes_use_the_permutation_of_the_split() -> None:
    config = toy()
    moved = replace(config, data=replace(config.data, permuted=True))
    a, b = (source_of(c, Part.of(10)).batch(torch.tensor(1)).x for c in (config, moved))
    assert torch.equal(a[..., torch.from_numpy(datasets.permutation(moved.data, 64))], b)


# --- labels -------------------------------------------------------------------------------------------------------


def scenes(classes: list[int]) -> Scenes:
    return Scenes(np.zeros((len(classes), 4), np.float32), None, np.array(classes), "real")


@pytest.mark.parametrize("labels", [40, 50_000])
def test_all_labels_are_used_though_classes_are_not_balanced(labels: int) -> None:
    config = recipe("texture-mnist-1-labels-50k")
    config = replace(config, data=replace(config.data, labels=labels))
    uneven = scenes([0] * 3 + [c for c in range(1, 10) for _ in range(4)] + [9])
    assert np.array_equal(_labelled_rows(config, config.seed_list, uneven, Part.of(10)), np.arange(40))


def test_some_labels_are_balanced() -> None:
    config = recipe("texture-mnist-1-labels-1k")
    config = replace(config, data=replace(config.data, labels=20, label_subset="shared"))
    even = scenes([c for c in range(10) for _ in range(5)])
    chosen = _labelled_rows(config, config.seed_list, even, Part.of(10))
    assert np.bincount(np.asarray(even.classes)[chosen]).tolist() == [2] * 10


@pytest.mark.parametrize("batch", [10, 20])
def test_few_labels_that_fill_a_batch_are_not_taken_for_all(batch: int) -> None:
    """Fewer than a batch are repeated: of 20 scenes, 10 with a label become 20 rows in a batch of 20."""
    classes = np.where(np.arange(20) % 2 == 0, np.arange(20) % 3, -1)
    own = Scenes(np.arange(20.0).reshape(20, 1).repeat(4, 1), None, classes, "real")
    config = toy()
    config = replace(
        config, data=DataConfig(name=datasets.IN_MEMORY), model=replace(config.model, classes=3), class_cost=1.0
    )
    made = source(config, torch.device("cpu"), [0], Part.of(batch), own)
    made.prepare(0)
    drawn = made.batch(torch.tensor(0))
    assert drawn.labelled is not None
    assert drawn.classes is not None
    numbers = drawn.labelled[0, :, 0].long()
    assert (numbers % 2 == 0).all()
    assert torch.equal(drawn.classes[0, :, 0], numbers % 3)


def fresh(labels: int) -> Config:
    config = recipe("texture-mnist-2-labels-1k")
    drawn = replace(config.data, mode="fresh", labels=labels, label_subset="shared", digits="fixture", train=50)
    return replace(config, data=drawn, seeds=2, optimiser=replace(config.optimiser, batch=20))


def batch_of(config: Config, step: int = 3) -> Batch:
    made = source(config, torch.device("cpu"), [0, 1], Part.of(20), training_set(config))
    made.prepare(step)
    return made.batch(torch.tensor(step))


def test_labelled_fresh_scenes_are_made_of_the_labelled_digits_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[Any] = []
    draw = data.fresh_texture_mnist

    def watched(*args: Any, **options: Any) -> object:
        used.append(options["subset"])
        return draw(*args, **options)

    monkeypatch.setattr(data, "fresh_texture_mnist", watched)
    few = batch_of(fresh(10))
    assert few.labelled is not None
    assert few.classes is not None
    assert few.x.shape == few.labelled.shape == (2, 20, 784)
    assert few.classes.shape == (2, 20, 2)
    assert not torch.equal(few.x, few.labelled)
    assert not torch.equal(few.classes[0], few.classes[1])
    _, labels = data.fixture_digits("train")
    (subset,) = (each for each in used if each is not None)
    assert len(used) == 2, "unlabelled scenes are drawn from all digits"
    assert sorted(labels[subset.numpy()]) == list(range(10)), "one of each class"
    assert np.array_equal(subset.numpy(), data.labelled_subset(labels, 10))


def test_scenes_without_labels_come_in_twins_and_those_with_labels_do_not() -> None:
    config = fresh(10)
    made = replace(
        config, data=replace(config.data, twins=True), class_agreement=1.0, class_dropout=0.3,
        model=replace(config.model, class_widths=(7,)),
    )  # fmt: skip
    twins, plain = batch_of(made), batch_of(config)
    assert torch.equal(cast(Tensor, twins.labelled), cast(Tensor, plain.labelled))
    assert not torch.equal(twins.x, plain.x)
    halves = Part(20, 5, 5)
    with pytest.raises(ValueError, match="twins come in pairs, but a process has 5 scenes"):
        source(made, torch.device("cpu"), [0, 1], halves, training_set(made))


def test_fresh_scenes_that_all_have_labels_are_used_for_both_costs() -> None:
    every = batch_of(fresh(50_000))
    assert every.labelled is None
    assert every.classes is not None
    assert every.classes.shape == (2, 20, 2)


@pytest.mark.parametrize("mode", ["fixed", "fresh"])
def test_with_all_labels_classes_may_have_a_pass_of_their_own(mode: Literal["fixed", "fresh"]) -> None:
    config = fresh(50_000)
    config = replace(config, data=replace(config.data, mode=mode))
    shared, own = batch_of(config), batch_of(replace(config, class_pass="own"))
    assert shared.labelled is None
    assert own.labelled is not None
    assert own.classes is not None
    assert torch.equal(own.x, shared.x), "the scenes of the denoising cost stay the same"
    assert not torch.equal(own.labelled, own.x)
    if mode == "fixed":
        train = training_set(config)
        rows = torch.from_numpy(train.x).reshape(len(train), -1)
        (at,) = {int((rows == x).all(1).nonzero()) for x in own.labelled[0, :1]}
        assert own.classes[0, 0].tolist() == np.asarray(train.classes)[at].tolist(), "each scene with its own classes"


def test_fresh_scenes_are_the_same_with_and_without_labels() -> None:
    config = fresh(50_000)
    without = replace(config, class_cost=0.0)
    assert torch.equal(batch_of(config).x, batch_of(without).x)
    assert batch_of(without).classes is None
