"""Normalise + activate and normalise + combine as single operations on CUDA, with gradients.

# S seeds (optional) · R rows · F features

The equations are in nets/norm.py and nets/ladder.py; what is here computes the same, reads and writes each
activation as few times as it can, and is used only where it helps: CUDA tensors, Triton at hand, statistics not
shared between processes. tests/fast/test_ops.py holds the two against each other.
"""

import os
from typing import Any

import torch
from torch import Tensor

try:
    import triton

    from taggernet.fast import kernels, kernels_small
except ImportError:  # no Triton on this machine: the plain equations serve
    triton = None

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
"""Columns, rows, warps and stages of a block from many columns to few, the last two sizes alike; timed on an H200."""
_WHOLE_COLUMNS = {
    "norm forward": {3: (16, 8), 4: (16, 8), 5: (8, 8)},
    "norm backward": {0: (16, 8), 1: (16, 8), 2: (16, 8), 3: (16, 8), 4: (16, 8), 5: (8, 4)},
    "combine forward": {3: (16, 8), 4: (8, 4), 5: (8, 4)},
    "combine backward": {4: (8, 8), 5: (8, 8)},
}
"""The sizes at which holding all rows is faster: columns and warps of a block."""
MOST_ROWS_HELD = 512
_WALKING: dict[str, tuple[str, dict[str, Any]]] = {
    "norm forward": ("batch_norm_forward", {}),
    "norm backward": ("batch_norm_backward", {}),
    "norm parameters": ("layer_parameter_gradients", {}),
    "combine forward": ("batch_combine_forward", {}),
    "combine backward": ("combine_parameter_gradients", {"BATCH": True}),
    "combine parameters": ("combine_parameter_gradients", {"BATCH": False}),
}
"""The kernel of each task that walks over the rows, and what it is told."""

WIDEST_ROW = 8192
"""LayerNorm keeps a row in registers up to this many features."""


def usable(x: Tensor, batch: bool) -> bool:
    """Whether the fused kernels apply to this input."""
    if triton is None or not (x.is_cuda or os.environ.get("TRITON_INTERPRET") == "1"):
        return False
    return x.ndim in (2, 3) and (batch or x.shape[-1] <= WIDEST_ROW)


def _sizes(x: Tensor) -> tuple[int, int, int]:
    return (x.shape[0] if x.ndim == 3 else 1), x.shape[-2], x.shape[-1]


def _columns(task: str, seeds: int, rows: int, features: int) -> tuple[Any, dict[str, Any]]:
    """Kernel and block shape where programs own columns: narrower blocks when there are few columns to share out.

    Few rows and columns are held as a whole; otherwise a kernel walks over the rows.
    """
    size = sum(seeds * features < bound for bound in _COLUMN_SIZES)
    if rows <= MOST_ROWS_HELD and size in _WHOLE_COLUMNS.get(task, {}):
        columns, warps = _WHOLE_COLUMNS[task][size]
        whole = {"BF": columns, "BR": max(16, triton.next_power_of_2(rows)), "num_warps": warps}
        return getattr(kernels_small, task.replace(" ", "_")), whole
    columns, block, warps, stages = _COLUMN_BLOCKS[task][min(size, len(_COLUMN_BLOCKS[task]) - 1)]
    name, flags = _WALKING[task]
    return getattr(kernels, name), {"BF": columns, "BR": block, "num_warps": warps, "STAGES": stages, **flags}


_ROW_STAGES = {"norm": 1, "combine forward": 3, "combine backward": 2}
"""How many rows are on their way at once where programs own rows."""


def _rows(kernel: str, seeds: int, rows: int, features: int) -> dict[str, int]:
    """Block shape for kernels that own rows: with parameters to load, several rows each once there are enough."""
    block = triton.next_power_of_2(features)
    stages = _ROW_STAGES[kernel]
    if kernel == "norm":
        return {"BF": block, "RP": 1, "num_warps": 2 if block <= 512 else 4 if block <= 2048 else 16, "STAGES": stages}
    wide = block > 1024
    rows_each, warps = 2, 16 if block > 2048 else 8 if wide else 4
    if seeds * rows >= 2000:
        rows_each, warps = (16, warps) if wide else (8, 2)
    shape = {"BF": block, "RP": rows_each, "num_warps": warps, "STAGES": stages}
    if kernel == "combine backward" and wide:
        shape["maxnreg"] = 128  # 16 warps on a processor instead of 8
    return shape


def _row_blocks(rows: int, shape: dict[str, int]) -> int:
    return -(-rows // shape["RP"])


def _blocks(features: int, shape: dict[str, int]) -> int:
    return -(-features // shape["BF"])


@torch.library.custom_op("taggernet::norm_activate", mutates_args=())
def norm_activate(
    x: Tensor, bias: Tensor, scale: Tensor | None, batch: bool, relu: bool, keep: bool, eps: float, half: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(normed or empty, activated, mean, 1/sd) with activated = act(normed * scale + bias)."""
    seeds, rows, features = _sizes(x)
    dtype = torch.bfloat16 if half else torch.float32
    out = torch.empty(x.shape, dtype=dtype, device=x.device)
    normed = torch.empty_like(out) if keep else out.new_empty(0)
    statistics = (seeds, features) if batch else (seeds, rows)
    mean, rstd = (torch.empty(statistics, dtype=torch.float32, device=x.device) for _ in range(2))
    args = (x, bias, bias if scale is None else scale, normed, out, mean, rstd, rows, features, x.stride(-2), eps)
    flags = {"RELU": relu, "SCALED": scale is not None, "WRITE_NORMED": keep}
    if batch:
        kernel, shape = _columns("norm forward", seeds, rows, features)
        kernel[(_blocks(features, shape), seeds)](*args, **flags, **shape)
    else:
        shape = _rows("norm", seeds, rows, features)
        kernels.layer_norm_forward[(_row_blocks(rows, shape), seeds)](*args, **flags, **shape)
    return normed, out, mean, rstd


@norm_activate.register_fake
def _(
    x: Tensor, bias: Tensor, scale: Tensor | None, batch: bool, relu: bool, keep: bool, eps: float, half: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    seeds, rows, features = _sizes(x)
    out = torch.empty(x.shape, dtype=torch.bfloat16 if half else torch.float32, device=x.device)
    statistics = x.new_empty((seeds, features) if batch else (seeds, rows), dtype=torch.float32)
    return torch.empty_like(out) if keep else out.new_empty(0), out, statistics, torch.empty_like(statistics)


def _part(stack: Tensor, index: int, rows: int) -> Tensor:
    """The rows of one of the tensors that lie below each other in a stack."""
    return stack.narrow(-2, index * rows, rows)


def _jump(g_x: Tensor) -> int:
    """From one seed's rows to the next one's, which in a stack are not what comes next."""
    return g_x.stride(0) if g_x.ndim == 3 else g_x.numel()


def _norm_gradients(
    g_x: Tensor, x: Tensor, bias: Tensor, scale: Tensor | None, mean: Tensor, rstd: Tensor, g_normed: Tensor | None,
    g_out: Tensor, batch: bool, relu: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Write the gradient of x into g_x and return those of bias and scale."""
    seeds, rows, features = _sizes(x)
    g_out = g_out.contiguous()
    g_normed = None if g_normed is None else g_normed.contiguous()
    g_bias = torch.empty_like(bias)
    g_scale = bias.new_empty(0) if scale is None else torch.empty_like(scale)
    c = bias if scale is None else scale
    flags = {"RELU": relu, "SCALED": scale is not None}
    kernel, shape = _columns("norm backward" if batch else "norm parameters", seeds, rows, features)
    before, sizes = (x, bias, c, mean, rstd), (rows, features, x.stride(-2))
    g_n = g_out if g_normed is None else g_normed
    if batch:
        kernel[(_blocks(features, shape), seeds)](
            *before, g_n, g_out, g_x, g_bias, g_scale, *sizes, _jump(g_x), **flags, HAS_NORMED=g_normed is not None,
            **shape,
        )  # fmt: skip
    else:
        wide = _rows("norm", seeds, rows, features)
        kernels.layer_norm_backward[(_row_blocks(rows, wide), seeds)](
            *before, g_n, g_out, g_x, *sizes, _jump(g_x), **flags, HAS_NORMED=g_normed is not None, **wide
        )
        kernel[(_blocks(features, shape), seeds)](*before, g_out, g_bias, g_scale, *sizes, **flags, **shape)
    return g_bias, g_scale


@torch.library.custom_op("taggernet::norm_activate_backward", mutates_args=())
def norm_activate_backward(
    x: Tensor, bias: Tensor, scale: Tensor | None, mean: Tensor, rstd: Tensor, g_normed: Tensor | None,
    g_out: Tensor, batch: bool, relu: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of x, bias and scale."""
    g_x = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    return g_x, *_norm_gradients(g_x, x, bias, scale, mean, rstd, g_normed, g_out, batch, relu)


@norm_activate_backward.register_fake
def _(
    x: Tensor, bias: Tensor, scale: Tensor | None, mean: Tensor, rstd: Tensor, g_normed: Tensor | None,
    g_out: Tensor, batch: bool, relu: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    g_scale = bias.new_empty(0) if scale is None else torch.empty_like(scale)
    return torch.empty(x.shape, dtype=x.dtype, device=x.device), torch.empty_like(bias), g_scale


@torch.library.custom_op("taggernet::norm_activate_backward_into", mutates_args=("stack",))
def norm_activate_backward_into(
    stack: Tensor, index: int, x: Tensor, bias: Tensor, scale: Tensor | None, mean: Tensor, rstd: Tensor,
    g_normed: Tensor | None, g_out: Tensor, batch: bool, relu: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The same with the gradient of x written into its place in a stack."""
    g_x = _part(stack, index, x.shape[-2])
    return _norm_gradients(g_x, x, bias, scale, mean, rstd, g_normed, g_out, batch, relu)


@norm_activate_backward_into.register_fake
def _(
    stack: Tensor, index: int, x: Tensor, bias: Tensor, scale: Tensor | None, mean: Tensor, rstd: Tensor,
    g_normed: Tensor | None, g_out: Tensor, batch: bool, relu: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return torch.empty_like(bias), bias.new_empty(0) if scale is None else torch.empty_like(scale)


def _norm_setup(ctx: Any, inputs: Any, output: Any) -> None:
    x, bias, scale, ctx.batch, ctx.relu, ctx.keep, _, _ = inputs
    ctx.scaled = scale is not None
    ctx.save_for_backward(x, bias, *([scale] if ctx.scaled else []), output[2], output[3])


def _norm_backward(ctx: Any, g_normed: Tensor, g_out: Tensor, *_: Tensor) -> tuple[Any, ...]:
    saved = list(ctx.saved_tensors)
    x, bias = saved[:2]
    scale = saved[2] if ctx.scaled else None
    g = g_normed if ctx.keep else None
    g_x, g_bias, g_scale = norm_activate_backward(x, bias, scale, *saved[-2:], g, g_out, ctx.batch, ctx.relu)
    return g_x, g_bias, g_scale if ctx.scaled else None, None, None, None, None, None


norm_activate.register_autograd(_norm_backward, setup_context=_norm_setup)


@torch.library.custom_op("taggernet::norm_combine", mutates_args=())
def norm_combine(
    z: Tensor, x: Tensor, a: Tensor, batch: bool, stable: bool, eps: float, half: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """(estimate, mean, 1/sd) with estimate = g(z, norm(x)) of the combinator."""
    seeds, rows, features = _sizes(x)
    out = torch.empty(x.shape, dtype=torch.bfloat16 if half else torch.float32, device=x.device)
    statistics = (seeds, features) if batch else (seeds, rows)
    mean, rstd = (torch.empty(statistics, dtype=torch.float32, device=x.device) for _ in range(2))
    args = (z.contiguous(), x.contiguous(), a, out, mean, rstd, rows, features, eps)
    if batch:
        kernel, shape = _columns("combine forward", seeds, rows, features)
        kernel[(_blocks(features, shape), seeds)](*args, STABLE=stable, **shape)
    else:
        shape = _rows("combine forward", seeds, rows, features)
        kernels.layer_combine_forward[(_row_blocks(rows, shape), seeds)](*args, STABLE=stable, **shape)
    return out, mean, rstd


@norm_combine.register_fake
def _(
    z: Tensor, x: Tensor, a: Tensor, batch: bool, stable: bool, eps: float, half: bool
) -> tuple[Tensor, Tensor, Tensor]:
    seeds, rows, features = _sizes(x)
    statistics = x.new_empty((seeds, features) if batch else (seeds, rows), dtype=torch.float32)
    out = torch.empty(x.shape, dtype=torch.bfloat16 if half else torch.float32, device=x.device)
    return out, statistics, torch.empty_like(statistics)


def _combine_gradients(
    g_x: Tensor, z: Tensor, x: Tensor, a: Tensor, mean: Tensor, rstd: Tensor, g_out: Tensor, batch: bool, stable: bool
) -> tuple[Tensor, Tensor]:
    """Write the gradient of x into g_x and return those of z and a."""
    seeds, rows, features = _sizes(x)
    z, x, g_out = z.contiguous(), x.contiguous(), g_out.contiguous()
    g_z, g_a = torch.empty_like(z), torch.empty_like(a)
    kernel, shape = _columns("combine backward" if batch else "combine parameters", seeds, rows, features)
    args, jump = (z, x, a, mean, rstd, g_out, g_z, g_x), _jump(g_x)
    kernel[(_blocks(features, shape), seeds)](*args, g_a, rows, features, jump, STABLE=stable, **shape)
    if not batch:
        wide = _rows("combine backward", seeds, rows, features)
        kernels.layer_combine_backward[(_row_blocks(rows, wide), seeds)](
            *args, rows, features, jump, STABLE=stable, **wide
        )
    return g_z, g_a


@torch.library.custom_op("taggernet::norm_combine_backward", mutates_args=())
def norm_combine_backward(
    z: Tensor, x: Tensor, a: Tensor, mean: Tensor, rstd: Tensor, g_out: Tensor, batch: bool, stable: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of z, x and a."""
    g_x = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    g_z, g_a = _combine_gradients(g_x, z, x, a, mean, rstd, g_out, batch, stable)
    return g_z, g_x, g_a


@norm_combine_backward.register_fake
def _(
    z: Tensor, x: Tensor, a: Tensor, mean: Tensor, rstd: Tensor, g_out: Tensor, batch: bool, stable: bool
) -> tuple[Tensor, Tensor, Tensor]:
    return (
        torch.empty(z.shape, dtype=z.dtype, device=z.device),
        torch.empty(x.shape, dtype=x.dtype, device=x.device),
        torch.empty_like(a),
    )


@torch.library.custom_op("taggernet::norm_combine_backward_into", mutates_args=("stack",))
def norm_combine_backward_into(
    stack: Tensor, index: int, z: Tensor, x: Tensor, a: Tensor, mean: Tensor, rstd: Tensor, g_out: Tensor,
    batch: bool, stable: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The same with the gradient of x written into its place in a stack."""
    return _combine_gradients(_part(stack, index, x.shape[-2]), z, x, a, mean, rstd, g_out, batch, stable)


@norm_combine_backward_into.register_fake
def _(
    stack: Tensor, index: int, z: Tensor, x: Tensor, a: Tensor, mean: Tensor, rstd: Tensor, g_out: Tensor,
    batch: bool, stable: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return torch.empty(z.shape, dtype=z.dtype, device=z.device), torch.empty_like(a)


def _combine_setup(ctx: Any, inputs: Any, output: Any) -> None:
    z, x, a, ctx.batch, ctx.stable, _, _ = inputs
    ctx.save_for_backward(z, x, a, output[1], output[2])


def _combine_backward(ctx: Any, g_out: Tensor, *_: Tensor) -> tuple[Any, ...]:
    return *norm_combine_backward(*ctx.saved_tensors, g_out, ctx.batch, ctx.stable), None, None, None, None


norm_combine.register_autograd(_combine_backward, setup_context=_combine_setup)


_OPS = torch.ops.taggernet
INTO: dict[object, tuple[Any, int]] = {
    _OPS.norm_activate_backward.default: (_OPS.norm_activate_backward_into.default, 0),
    _OPS.norm_combine_backward.default: (_OPS.norm_combine_backward_into.default, 1),
}
"""For an operation, the one that writes one of its results into a stack, and which result that is."""
