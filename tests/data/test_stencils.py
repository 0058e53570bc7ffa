"""Objects over one another, against a loop that paints them one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from taggernet.data.stencils import Stencils, fill, owners

MASKS = [np.array([[1, 1, 0], [0, 1, 1]], np.uint8), np.ones((4, 1), np.uint8), np.array([[1, 0], [0, 1]], np.uint8)]


@pytest.mark.parametrize("size", [4, 7])
def test_owners_equal_painting_by_hand(size: int) -> None:
    rng = np.random.default_rng(size)
    which = rng.integers(3, size=(2, 50, 4))
    rows, cols = (
        np.array([rng.integers(size - MASKS[k].shape[axis] + 1) for k in which.flat]).reshape(which.shape)
        for axis in (0, 1)
    )
    count = rng.integers(0, 5, size=(2, 50))
    expected = np.zeros((2, 50, size, size), np.uint8)
    for at in np.ndindex(2, 50):
        for number in range(count[at]):
            mask, row, col = MASKS[which[at][number]], rows[at][number], cols[at][number]
            expected[at][row : row + mask.shape[0], col : col + mask.shape[1]][mask > 0] = number + 1
    arrays = (torch.from_numpy(array) for array in (which, rows, cols))
    found = owners(Stencils.of(MASKS), *arrays, size, torch.from_numpy(count))
    assert np.array_equal(found.reshape(expected.shape).numpy(), expected)


def test_positions_get_the_colour_of_their_owner() -> None:
    seen = torch.tensor([[0, 2, 1], [1, 0, 0]], dtype=torch.uint8)
    colours = torch.arange(12.0).reshape(2, 3, 2)
    assert fill(seen, colours).tolist() == [[[0, 1], [4, 5], [2, 3]], [[8, 9], [6, 7], [6, 7]]]
