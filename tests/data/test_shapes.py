"""Shapes against brute force, and the streams it is drawn from."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from taggernet.data import Scenes
from taggernet.data.shapes import KINDS, coincident, fresh_shapes, shape_masks, shapes
from taggernet.rng import Key


def paper_triangle() -> np.ndarray:
    """The sentence of the data's description, element by element."""
    mask = np.zeros((7, 12), dtype=np.uint8)
    for row in range(5):
        mask[row, 5 - row : 6 + row + 1] = 1
    mask[3, 5:7] = 0
    mask[4, 4:8] = 0
    mask[5:] = 1
    return mask


def paper_square() -> np.ndarray:
    mask = np.ones((7, 7), dtype=np.uint8)
    mask[2:5, 2:5] = 0
    return mask


def paint_by_hand(kinds: np.ndarray, rows: np.ndarray, cols: np.ndarray, size: int, style: str) -> np.ndarray:
    """Covering objects of each element, as a list of lists of sets."""
    cover = np.zeros((len(kinds), size, size), dtype=int)
    for number, (kind, row, col) in enumerate(zip(kinds, rows, cols, strict=True)):
        mask = shape_masks(style)[kind]
        for i in range(mask.shape[0]):
            for j in range(mask.shape[1]):
                cover[number, row + i, col + j] += mask[i, j]
    return cover


def test_masks_are_those_of_the_paper() -> None:
    square, up, down = shape_masks("paper")
    assert np.array_equal(square, paper_square())
    assert np.array_equal(up, paper_triangle())
    assert np.array_equal(down, paper_triangle()[::-1])
    assert [int(mask.sum()) for mask in (square, up, down)] == [40, 48, 48]


def test_small_shapes_are_solid_and_equally_large() -> None:
    assert [int(mask.sum()) for mask in shape_masks("small")] == [16, 16, 16]


@given(
    seed=st.integers(0, 2**40),
    n=st.integers(1, 6),
    objects=st.integers(1, 5),
    extra=st.integers(0, 9),
    style=st.sampled_from(["paper", "small"]),
)
@settings(max_examples=25, deadline=None)
def test_scenes_equal_brute_force(seed: int, n: int, objects: int, extra: int, style: str) -> None:
    size = (12 if style == "paper" else 7) + extra
    scenes = shapes(n, seed, objects, size, style=style)
    assert scenes.x.shape == scenes.groups.shape == (n, size, size)
    assert scenes.x.dtype == np.uint8
    assert scenes.kind == "binary"
    for i in range(n):
        cover = paint_by_hand(*(scenes.details[name][i] for name in ("kinds", "rows", "cols")), size, style)
        count = cover.sum(0)
        assert np.array_equal(scenes.x[i], count > 0)
        owner = np.where(count == 1, cover.argmax(0) + 1, 0)  # covered twice or by nothing: unscored
        assert np.array_equal(scenes.groups[i], owner)


def test_placement_reaches_every_place_that_fits_and_no_other() -> None:
    scenes = shapes(20_000, seed=1)
    for kind, (rows, cols) in enumerate([(14, 14), (14, 9), (14, 9)]):
        here = scenes.details["kinds"] == kind
        assert abs(here.mean() - 1 / len(KINDS)) < 0.01
        seen = np.zeros((rows, cols), dtype=int)
        np.add.at(seen, (scenes.details["rows"][here], scenes.details["cols"][here]), 1)  # fails outside
        expected = here.sum() / seen.size
        assert seen.min() > 0.6 * expected
        assert seen.max() < 1.4 * expected


def test_statistics_of_the_training_set() -> None:
    scenes = shapes(50_000)
    assert abs(scenes.x.mean() - 0.2847) < 0.002
    places = np.stack([scenes.details[name] for name in ("kinds", "rows", "cols")], -1)
    same = [(places[:, i] == places[:, j]).all(-1) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert 0.004 < np.any(same, 0).mean() < 0.009  # 0.65 % of scenes have two shapes exactly on top


def test_splits_are_streams_of_their_own_and_n_only_lengthens() -> None:
    drawn = {split: shapes(200, 3, split=split).x for split in ("train", "valid", "test")}
    rows = {row.tobytes() for x in drawn.values() for row in x}
    assert len(rows) > 590
    assert np.array_equal(shapes(5000, 3).x[:200], drawn["train"])
    assert not np.array_equal(shapes(200, 4).x, drawn["train"])


def test_a_random_number_of_objects_leaves_out_the_last_ones() -> None:
    some, all_of_them = shapes(2000, 5, objects=4, min_objects=1), shapes(2000, 5, objects=4)
    counts = some.details["counts"]
    assert np.array_equal(np.unique(counts), [1, 2, 3, 4])
    assert abs(np.bincount(counts)[1:] / 2000 - 0.25).max() < 0.04
    assert np.array_equal(some.details["rows"], all_of_them.details["rows"])
    for i in range(100):
        places = (some.details[name][i, : counts[i]] for name in ("kinds", "rows", "cols"))
        assert np.array_equal(some.x[i], paint_by_hand(*places, 20, "paper").sum(0) > 0)
    x, groups = fresh_shapes(Key.of(5).fold("shapes", "train"), 50, 4, min_objects=1)
    assert np.array_equal(x.numpy(), some.x[:50].reshape(50, -1))
    assert np.array_equal(groups.numpy(), some.groups[:50].reshape(50, -1))


def test_fresh_shapes_are_the_same_scenes() -> None:
    x, groups = fresh_shapes(Key.of(7).fold("shapes", "train"), 300)
    scenes = shapes(300, 7)
    assert x.dtype == groups.dtype == torch.uint8
    assert np.array_equal(x.numpy().reshape(-1, 20, 20), scenes.x)
    assert np.array_equal(groups.numpy().reshape(-1, 20, 20), scenes.groups)


@given(
    seeds=st.lists(st.integers(0, 2**62), min_size=1, max_size=3),
    start=st.integers(0, 40),
    n=st.integers(1, 8),
)
@settings(max_examples=20, deadline=None)
def test_a_batch_of_seeds_and_an_offset_equal_each_seed_alone(seeds: list[int], start: int, n: int) -> None:
    together = fresh_shapes(Key.of(seeds), n, objects=2, size=10, style="small", start=torch.tensor(start))
    for row, seed in enumerate(seeds):
        alone = fresh_shapes(Key.of(seed), start + n, objects=2, size=10, style="small")
        for one, other in zip(together, alone, strict=True):
            assert torch.equal(one[row], other[start:])


@pytest.mark.usefixtures("without_typecheck")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n": 0}, ValueError, "n=0 is out of range: give an integer of at least 1"),
        ({"n": 2.0}, TypeError, "n=2.0 is not an integer"),
        ({"n": True}, TypeError, "n=True is not an integer"),
        ({"n": 1, "objects": 0}, ValueError, "objects=0"),
        ({"n": 1, "objects": 256}, ValueError, "objects=256 is out of range: give an integer from 1 to 255"),
        ({"n": 1, "min_objects": 4}, ValueError, "min_objects=4 is out of range: give an integer from 0 to 3"),
        ({"n": 1, "size": 11}, ValueError, "size=11 is out of range: give an integer from 12"),
        (
            {"n": 1, "style": "round"},
            ValueError,
            "style='round' is not known: choose one of 'paper', 'small'",
        ),
        ({"n": 1, "split": "dev"}, ValueError, "split='dev' is not known"),
        ({"n": 1, "seed": "a"}, TypeError, "seed must be an integer"),
    ],
)
def test_bad_arguments_get_one_sentence(arguments: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        shapes(**arguments)


GOLDEN = {0: "9ad85a307f2720497a666eac97254b39", 1: "2a2ca471626a59623a6c2b3a8af6655c"}


@pytest.mark.parametrize("seed", GOLDEN)
def test_golden_checksums(seed: int) -> None:
    scenes = shapes(1000, seed)
    assert hashlib.md5(scenes.x.tobytes() + scenes.groups.tobytes()).hexdigest() == GOLDEN[seed]


def test_coincident_means_kind_row_and_column() -> None:
    same = {
        "kinds": [[0, 1, 0], [0, 1, 0], [2, 2, 2]],
        "rows": [[3, 3, 3]] * 3,
        "cols": [[5, 5, 5], [5, 5, 4], [1, 2, 3]],
    }
    ones = np.ones((3, 1), dtype=np.uint8)
    scenes = Scenes(ones, ones, details={name: np.array(value) for name, value in same.items()})
    assert coincident(scenes).tolist() == [True, False, False]


def test_coincident_scenes_are_found() -> None:
    scenes = shapes(3000, split="valid")
    by_hand = []
    for places in zip(*(scenes.details[name] for name in ("kinds", "rows", "cols")), strict=True):
        by_hand.append(len(set(zip(*places, strict=True))) < 3)
    assert np.array_equal(coincident(scenes), by_hand)
    assert any(by_hand)
