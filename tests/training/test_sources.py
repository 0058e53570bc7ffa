"""Batches: every scene once per epoch and seed, in an order of the seed's own, in parts that make up the whole."""

from __future__ import annotations

import pytest
import torch

from taggernet.rng import Key
from taggernet.training import sources
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


def test_a_batch_that_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="a batch of 10 cannot be shared by 3 processes"):
        Part.of(10, 0, 3)


def test_too_few_scenes_for_a_batch_are_refused() -> None:
    with pytest.raises(ValueError, match=r"4 scenes, fewer than a batch of 5: make batch smaller"):
        FixedSource(numbered(4), Key.of([0]), Part.of(5))
