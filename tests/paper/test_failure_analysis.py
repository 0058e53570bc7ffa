"""Failure kinds and counts on labels made by hand, against plain loops."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paper.failure_analysis import (
    KINDS,
    agreement,
    contingency,
    empty_groups,
    failure_kinds,
    is_merged,
    is_split,
    overlap,
    smallest_visible,
)
from taggernet.data import Scenes, shapes


def by_hand(true: list[int], found: list[int], ami: float, twice: bool) -> str:
    """The definitions in words, as loops."""
    if twice:
        return "coincident"
    if ami > 0.99:
        return "perfect"
    sizes = Counter(t for t in true if t)
    parts = Counter((t, f) for t, f in zip(true, found, strict=True) if t)
    for group in set(found):
        if sum(parts[t, group] > sizes[t] / 2 for t in sizes) >= 2:
            return "merged"
    for shape, size in sizes.items():
        if sum(parts[shape, g] >= size / 4 and parts[shape, g] >= 3 for g in set(found)) >= 2:
            return "split"
    return "ragged"


def classify(true: list[int], found: list[int], objects: int, groups: int, twice: bool = False) -> str:
    rows = torch.tensor([true], dtype=torch.uint8)
    labels = torch.tensor([[found]], dtype=torch.uint8)
    ami = agreement(rows, labels)
    table = contingency(rows, labels, objects, groups)
    return KINDS[int(failure_kinds(table, ami, torch.tensor([twice]))[0, 0])]


TRUE = [0] * 4 + [1] * 12 + [2] * 12 + [3] * 12


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        ([3] * 4 + [0] * 12 + [1] * 12 + [2] * 12, "perfect"),
        ([0] * 4 + [2] * 12 + [3] * 12 + [1] * 12, "perfect"),  # the order of groups does not matter
        ([3] * 4 + [0] * 12 + [1] * 24, "merged"),
        ([3] * 4 + [0] * 12 + [0] * 7 + [1] * 5 + [2] * 12, "merged"),  # more than half is enough
        ([3] * 4 + [0] * 12 + [1] * 6 + [3] * 6 + [2] * 12, "split"),
        ([3] * 4 + [0] * 12 + [1] * 9 + [3] * 3 + [2] * 12, "split"),  # a quarter is sizeable
        ([3] * 4 + [0] * 12 + [1] * 10 + [3] * 2 + [2] * 12, "ragged"),
        ([3] * 4 + [0] * 12 + [0] * 6 + [1] * 6 + [2] * 12, "split"),  # exactly half is not 'most'
    ],
)
def test_hand_made_scenes_are_of_the_expected_kind(found: list[int], kind: str) -> None:
    assert classify(TRUE, found, 3, 4) == kind
    assert classify(TRUE, found, 3, 4, twice=True) == "coincident"


def test_three_elements_are_the_least_sizeable_part() -> None:
    assert classify([1] * 4 + [2] * 9, [0, 0, 1, 1] + [2] * 9, 2, 3) == "ragged"


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=4, max_size=60))
def test_kinds_agree_with_plain_loops(pairs: list[tuple[int, int]]) -> None:
    true, found = [t for t, _ in pairs], [f for _, f in pairs]
    rows, labels = torch.tensor([true], dtype=torch.uint8), torch.tensor([[found]], dtype=torch.uint8)
    assert classify(true, found, 3, 4) == by_hand(true, found, float(agreement(rows, labels)[0, 0]), False)


def test_a_hidden_shape_is_neither_merged_nor_split() -> None:
    table = contingency(
        torch.tensor([[1] * 8], dtype=torch.uint8), torch.tensor([[[0] * 8]], dtype=torch.uint8), objects=3, groups=2
    )
    assert not is_merged(table).any()
    assert not is_split(table).any()


def test_contingency_counts_every_seed_and_scene() -> None:
    generator = torch.Generator().manual_seed(0)
    true = torch.randint(0, 4, (5, 30), generator=generator, dtype=torch.uint8)
    labels = torch.randint(0, 3, (2, 5, 30), generator=generator, dtype=torch.uint8)
    table = contingency(true, labels, 3, 3)
    for s, n, j, k in np.ndindex(2, 5, 3, 3):
        assert table[s, n, j, k] == ((true[n] == j + 1) & (labels[s, n] == k)).sum()


def test_empty_groups_win_no_covered_element() -> None:
    labels = torch.tensor([[[0, 0, 1, 2], [3, 3, 3, 3]], [[0, 1, 2, 3], [0, 1, 2, 3]]], dtype=torch.uint8)
    covered = torch.tensor([[True, True, False, True], [True, True, True, True]])
    assert empty_groups(labels, covered, 4).tolist() == [[2, 3], [1, 0]]
    assert empty_groups(labels, covered, 6).tolist() == [[4, 5], [3, 2]]


def scenes_of(details: dict[str, Any], x: list[list[int]], groups: list[list[int]]) -> Scenes:
    arrays = {name: np.array(value) for name, value in details.items()}
    return Scenes(np.array(x, dtype=np.uint8), np.array(groups, dtype=np.uint8), details=arrays)


def test_overlap_is_the_share_covered_more_than_once() -> None:
    details = {"kinds": [[0, 1], [0, 1]]}
    scenes = scenes_of(details, [[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], [[1, 2, 0, 2, 0], [1, 2, 0, 0, 0]])
    assert overlap(scenes).tolist() == [0.25, 0.0]
    assert smallest_visible(scenes).tolist() == [1, 1]


def test_overlap_of_drawn_scenes_matches_a_recount() -> None:
    from taggernet.data.shapes import shape_masks

    scenes = shapes(40, seed=3, objects=3, size=10, style="small", split="test")
    masks = shape_masks("small")
    for i in range(40):
        cover = np.zeros((10, 10), dtype=int)
        for kind, row, col in zip(*(scenes.details[d][i] for d in ("kinds", "rows", "cols")), strict=True):
            height, width = masks[kind].shape
            cover[row : row + height, col : col + width] += masks[kind]
        assert overlap(scenes)[i] == pytest.approx((cover > 1).sum() / (cover > 0).sum())
