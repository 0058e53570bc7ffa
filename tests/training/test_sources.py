"""Batches: every scene once per epoch and seed, in an order of the seed's own, in parts that make up the whole."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from toys import fixture_digits, shrunk, toy

from taggernet.config.run import Config, DataConfig
from taggernet.data import Scenes
from taggernet.rng import Key
from taggernet.training import datasets, sources
from taggernet.training.sources import FixedSource, LabelledSource, Part, Rows


def numbered(n: int) -> torch.Tensor:
    return torch.arange(n)[:, None]


def epoch(source: FixedSource, number: int, period: int) -> torch.Tensor:
    """(S, period * B): the scenes of an epoch in their order."""
    found = []
    for step in range(number * period, (number + 1) * period):
        source.prepare(step)
        found.append(source.batch(torch.tensor(step)).x[..., 0])
    return torch.cat(found, dim=-1)


def test_an_epoch_visits_every_scene_once_in_an_order_of_its_own() -> None:
    source = FixedSource(numbered(20), Key.of([0, 1, 2]), Part.of(5))
    orders = [epoch(source, number, 4) for number in range(3)]
    for order in orders:
        assert torch.equal(order.sort(-1).values, torch.arange(20.0).expand(3, 20))
    rows = torch.cat(orders)
    assert len({tuple(row.tolist()) for row in rows}) == 9, "seeds and epochs all differ"


def test_the_incomplete_batch_is_left_out_and_another_epoch_leaves_out_others() -> None:
    source = FixedSource(numbered(23), Key.of([0]), Part.of(5))
    left_out = []
    for number in range(6):
        seen = set(epoch(source, number, 4)[0].tolist())
        assert len(seen) == 20
        left_out.append(frozenset(range(23)) - seen)
    assert len(set(left_out)) > 1


def test_a_batch_is_a_function_of_the_step_alone() -> None:
    """So that a run which continues in the middle of an epoch goes on where it was."""
    whole, late = (FixedSource(numbered(20), Key.of([5]), Part.of(5)) for _ in range(2))
    expected = epoch(whole, 2, 4)[0, 10:15]
    late.prepare(10)
    assert torch.equal(late.batch(torch.tensor(10)).x[0, :, 0], expected)


@pytest.mark.parametrize(("ahead", "blocks"), [(1, 1), (12, 3), (15, 3), (500, 125)])
def test_epochs_are_prepared_in_blocks_and_ordered_each_by_itself(
    ahead: int, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches do not depend on how many short epochs are prepared at once, nor on where a run goes on."""
    monkeypatch.setattr(sources, "AHEAD", ahead)
    key = Key.of([3, 4])
    rows = Rows((numbered(23),), key, Part.of(5))
    until = [rows.valid_until(step) for step in (0, 3, 4 * blocks - 1, 4 * blocks)]
    assert until == [4 * blocks, 4 * blocks, 4 * blocks, 8 * blocks]
    for step in [*range(40), 501, 7]:
        if step == rows.valid_until(step - 1) or step in (0, 501, 7):
            rows.prepare(step)
        (found,) = rows.draw(torch.tensor(step))
        order = key.fold(step // 4).permutation(23)
        assert torch.equal(found[..., 0], order[:, 5 * (step % 4) :][:, :5].float())


def test_long_epochs_are_prepared_one_at_a_time() -> None:
    rows = Rows((numbered(3000),), Key.of([0]), Part.of(5))
    assert rows.order.shape == (1, 3000)
    assert [rows.valid_until(step) for step in (0, 599, 600)] == [600, 600, 1200]


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


def test_labelled_rows_keep_their_classes() -> None:
    x = numbered(12)
    scenes = FixedSource(numbered(30), Key.of([0]), Part.of(3))
    source = LabelledSource(scenes, FixedSource(x, Key.of([0]).fold("labelled"), Part.of(3), 100 + x))
    seen = []
    for step in range(4):
        source.prepare(step)
        batch = source.batch(torch.tensor(step))
        assert batch.labelled is not None
        assert batch.classes is not None
        assert torch.equal(batch.labelled[0] + 100, batch.classes[0].float())
        seen += batch.labelled[0, :, 0].tolist()
    assert sorted(seen) == list(range(12))
    assert source.valid_until(0) == 500, "the shorter of the two blocks of epochs, 125 x 4 and 50 x 10"
    assert source.valid_until(500) == 1000


def test_fresh_texture_scenes_are_drawn_anew() -> None:
    from dataclasses import replace

    with fixture_digits():
        config = shrunk("texture-mnist-2")
        source = source_of(replace(config, data=replace(config.data, mode="fresh")), Part.of(4))
    first, second = (source.batch(torch.tensor(step)).x for step in range(2))
    assert first.shape == (2, 4, 784)
    assert not torch.equal(first, second)


def test_a_batch_that_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="a batch of 10 cannot be shared by 3 processes"):
        Part.of(10, 0, 3)


def test_too_few_scenes_for_a_batch_are_refused() -> None:
    with pytest.raises(ValueError, match=r"4 scenes, fewer than a batch of 5: lower optimiser\.batch"):
        FixedSource(numbered(4), Key.of([0]), Part.of(5))


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


def test_fresh_permuted_scenes_use_the_permutation_of_the_split() -> None:
    from dataclasses import replace

    config = toy()
    moved = replace(config, data=replace(config.data, permuted=True))
    a, b = (source_of(c, Part.of(10)).batch(torch.tensor(1)).x for c in (config, moved))
    assert torch.equal(a[..., torch.from_numpy(datasets.permutation(moved.data, 64))], b)


def test_fresh_scenes_of_a_users_file_are_refused() -> None:
    from dataclasses import replace

    config = toy()
    with pytest.raises(ValueError, match=r"own\.npz.*use data.mode fixed"):
        datasets.source(
            replace(config, data=replace(config.data, name="own.npz")), torch.device("cpu"), [0], Part.of(10),
            datasets.load_split(config.data, "train"),
        )  # fmt: skip
