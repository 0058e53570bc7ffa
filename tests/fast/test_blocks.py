"""Blocks cover what they are launched on, whatever its size; test_ops.py runs the kernels on them."""

from __future__ import annotations

import itertools

import pytest

pytest.importorskip("triton", reason="Triton is not installed")

from taggernet.fast import blocks
from taggernet.fast.blocks import column_kernel, row_blocks

SEEDS, ROWS, FEATURES = (1, 5, 20), (1, 37, 400, 512, 513, 4000), (1, 9, 36, 784, 1000, 3000)
SIZES = list(itertools.product(SEEDS, ROWS, FEATURES))


def is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


@pytest.mark.parametrize("task", sorted(blocks._COLUMN_BLOCKS))
def test_column_blocks_cover_the_features(task: str) -> None:
    for seeds, rows, features in SIZES:
        kernel, ((programs, layers), shape) = column_kernel(task, seeds, rows, features)
        assert layers == seeds
        assert (programs - 1) * shape["BF"] < features <= programs * shape["BF"]
        assert all(is_power_of_two(shape[name]) for name in ("BF", "BR", "num_warps"))
        if kernel in blocks._SMALL.values():
            assert rows <= shape["BR"] < 2 * max(rows, 16), "a kernel without a loop holds every row"
            assert rows <= blocks.MOST_ROWS_HELD
        else:
            assert kernel is blocks._LOOPING[task][0]


def test_both_kinds_of_kernels_are_used() -> None:
    for task, kernel in blocks._SMALL.items():
        chosen = {column_kernel(task, *size)[0] for size in SIZES}
        assert chosen == {kernel, blocks._LOOPING[task][0]}


@pytest.mark.parametrize("task", sorted(blocks._ROW_STAGES))
def test_row_blocks_cover_the_rows_and_hold_every_feature(task: str) -> None:
    for seeds, rows, features in SIZES:
        (programs, layers), shape = row_blocks(task, seeds, rows, features)
        assert layers == seeds
        assert (programs - 1) * shape["RP"] < rows <= programs * shape["RP"]
        assert features <= shape["BF"] < 2 * features
        assert is_power_of_two(shape["BF"])
