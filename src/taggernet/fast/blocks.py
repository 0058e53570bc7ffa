"""Which kernel runs, and on blocks of which shape: tables timed on an H200.

Programs own either columns (seeds x features are shared out) or whole rows.
"""

from __future__ import annotations

from typing import Any

import triton

from taggernet.fast import kernels_batch, kernels_layer, kernels_small

_COLUMN_SIZES = (20_000, 8_000, 4_000, 1_500, 750)
"""Numbers of columns, seeds times features, at which other block shapes become better."""
_COLUMN_BLOCKS = {
    "norm forward": [(32, 128, 8, 1), (32, 16, 8, 1), (32, 16, 8, 1), (16, 128, 8, 1), (8, 256, 8, 1)],
    "norm backward": [(32, 128, 8, 1), (32, 64, 4, 1), (32, 64, 4, 1), (16, 128, 8, 1), (8, 256, 8, 1)],
    "norm parameters": [(32, 32, 4, 1), (16, 64, 4, 1), (16, 64, 4, 1), (16, 128, 8, 1), (8, 256, 8, 1)],
    "combine forward": [(32, 16, 8, 1), (16, 16, 4, 1), (16, 16, 4, 1), (16, 64, 8, 1), (8, 256, 8, 1)],
    "combine backward": [(32, 32, 4, 3), (16, 32, 4, 1), (16, 32, 4, 1), (16, 32, 4, 3), (8, 256, 8, 1)],
    "combine parameters": [(32, 16, 4, 3), (16, 16, 4, 1), (16, 16, 4, 1), (16, 32, 4, 3), (8, 256, 8, 1)],
}
"""Columns, rows, warps and stages of a block, from many columns to few; the last two sizes share a shape."""
_SMALL_BLOCKS = {
    "norm forward": {3: (16, 8), 4: (16, 8), 5: (8, 8)},
    "norm backward": {0: (16, 8), 1: (16, 8), 2: (16, 8), 3: (16, 8), 4: (16, 8), 5: (8, 4)},
    "combine forward": {3: (16, 8), 4: (8, 4), 5: (8, 4)},
    "combine backward": {4: (8, 8), 5: (8, 8)},
}
"""The sizes at which a program that holds all rows is faster: columns and warps of its block."""
MOST_ROWS_HELD = 512
"""More rows than this are never held at once."""
_LOOPING: dict[str, tuple[Any, dict[str, Any]]] = {
    "norm forward": (kernels_batch.batch_norm_forward, {}),
    "norm backward": (kernels_batch.batch_norm_backward, {}),
    "norm parameters": (kernels_layer.layer_parameter_gradients, {}),
    "combine forward": (kernels_batch.batch_combine_forward, {}),
    "combine backward": (kernels_batch.combine_parameter_gradients, {"BATCH": True}),
    "combine parameters": (kernels_batch.combine_parameter_gradients, {"BATCH": False}),
}
"""The kernel of each task that loops over the rows, and its flags."""
_SMALL: dict[str, Any] = {
    "norm forward": kernels_small.norm_forward,
    "norm backward": kernels_small.norm_backward,
    "combine forward": kernels_small.combine_forward,
    "combine backward": kernels_small.combine_backward,
}
"""The kernel of each task that holds all rows."""
_ROW_STAGES = {"norm": 1, "combine forward": 3, "combine backward": 2}
"""How many rows are being loaded at once where programs own rows."""

Launch = tuple[tuple[int, int], dict[str, Any]]
"""The grid of a kernel, (blocks, seeds), and its block shape and flags."""


def column_kernel(task: str, seeds: int, rows: int, features: int) -> tuple[Any, Launch]:
    """A kernel whose programs own columns: narrower blocks where there are fewer columns to share out."""
    size = sum(seeds * features < bound for bound in _COLUMN_SIZES)
    if rows <= MOST_ROWS_HELD and size in _SMALL_BLOCKS.get(task, {}):
        columns, warps = _SMALL_BLOCKS[task][size]
        shape = {"BF": columns, "BR": max(16, triton.next_power_of_2(rows)), "num_warps": warps}
        return _SMALL[task], ((triton.cdiv(features, columns), seeds), shape)
    columns, block, warps, stages = _COLUMN_BLOCKS[task][min(size, len(_COLUMN_BLOCKS[task]) - 1)]
    kernel, flags = _LOOPING[task]
    shape = {"BF": columns, "BR": block, "num_warps": warps, "STAGES": stages, **flags}
    return kernel, ((triton.cdiv(features, columns), seeds), shape)


def row_blocks(task: str, seeds: int, rows: int, features: int) -> Launch:
    """For a kernel whose programs own rows: with parameters to load, several rows each once there are enough."""
    block = triton.next_power_of_2(features)
    shape: dict[str, Any] = {"BF": block, "STAGES": _ROW_STAGES[task]}
    if task == "norm":
        rows_each, warps = 1, 2 if block <= 512 else 4 if block <= 2048 else 16
    else:
        wide = block > 1024
        rows_each, warps = 2, 16 if block > 2048 else 8 if wide else 4
        if seeds * rows >= 2000:
            rows_each, warps = (16, warps) if wide else (8, 2)
        if task == "combine backward" and wide:
            shape["maxnreg"] = 128  # 16 warps on a processor instead of 8
    return (triton.cdiv(rows, rows_each), seeds), {**shape, "RP": rows_each, "num_warps": warps}
