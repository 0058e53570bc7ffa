"""What groups answer, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from paper.class_analysis import ANSWERS, answer_counts, holders


@pytest.mark.parametrize("digits", [1, 2])
def test_answers_are_counted_as_by_hand(digits: int) -> None:
    rng = np.random.default_rng(digits)
    n, groups, elements, no_class = 60, 3, 7, 4
    true = rng.integers(0, digits + 2, (n, elements)).astype(np.uint8)
    labels = rng.integers(0, groups, (n, elements)).astype(np.uint8)
    answers = rng.integers(0, no_class + 1, (n, groups))
    classes = rng.integers(0, no_class, (n, digits))
    expected = np.zeros((digits + 2, len(ANSWERS)), int)
    for scene in range(n):
        for k in range(groups):
            held = [int(((true[scene] == j) & (labels[scene] == k)).sum()) for j in range(1, digits + 2)]
            holder = held.index(max(held)) if max(held) else digits + 1
            said = answers[scene, k]
            if said == no_class:
                answer = "no class"
            elif 1 <= holder <= digits and said == classes[scene, holder - 1]:
                answer = "the digit it holds"
            else:
                answer = "another digit of the scene" if said in classes[scene] else "a digit that is not there"
            expected[holder, ANSWERS.index(answer)] += 1
    arrays = (torch.from_numpy(a) for a in (true, labels, answers, classes))
    np.testing.assert_array_equal(answer_counts(*arrays, no_class), expected)
    assert len(holders(digits)) == len(expected)
