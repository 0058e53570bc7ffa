"""Normalise + activate and normalise + combine as single operations with gradients, by Triton kernels.

# S seeds (optional) · R rows · F features

The references are in nets/norm.py and nets/ladder.py. ``batch`` says which norm: over the R rows (BatchNorm) or over
the F features (LayerNorm). ``half`` says in which precision the result is written: bfloat16 or float32.
"""

import os
from typing import Any

import torch
from torch import Tensor

try:
    import triton

    from taggernet.fast import kernels_layer
    from taggernet.fast.blocks import column_kernel, row_blocks
except ImportError:  # no Triton on this machine: the plain equations are used
    triton = None

WIDEST_ROW = 8192
"""LayerNorm keeps a row in registers up to this many features."""


def applies(x: Tensor, *, batch: bool) -> bool:
    """Whether the two functions take this input: on CUDA (or in Triton's interpreter), not too wide, no double."""
    if triton is None or not (x.is_cuda or os.environ.get("TRITON_INTERPRET") == "1"):
        return False
    return x.ndim in (2, 3) and x.dtype != torch.float64 and (batch or x.shape[-1] <= WIDEST_ROW)


def norm_activate(
    x: Tensor, bias: Tensor, scale: Tensor | None = None, *,
    batch: bool, relu: bool, eps: float, half: bool, keep_normed: bool = True,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """norm(x), and act(norm(x) scale + bias) with act a ReLU or nothing.

    Reference: ``rectified`` and ``scaled`` in nets/norm.py. Without ``keep_normed`` the first result is empty.
    """
    normed, out, _, _ = norm_activate_forward(x, bias, scale, batch, relu, keep_normed, eps, half)
    return normed, out


def norm_combine(z: Tensor, x: Tensor, a: Tensor, *, batch: bool, stable: bool, eps: float, half: bool) -> Tensor:
    """g(z, norm(x)), where g is the combinator with parameters a, its gate v through a sigmoid if ``stable``.

    Reference: ``Combinator.forward`` in nets/ladder.py, applied to z and norm(x).
    """
    out: Tensor = norm_combine_forward(z, x, a, batch, stable, eps, half)[0]
    return out


def _sizes(x: Tensor) -> tuple[int, int, int]:
    """S, R and F; S is 1 without a dimension of seeds."""
    return (x.shape[0] if x.ndim == 3 else 1), x.shape[-2], x.shape[-1]


def _evenly_spaced(x: Tensor) -> Tensor:
    """x if its rows are dense and equally far from each other, as in a matrix with columns cut off; else a copy."""
    if x.stride(-1) == 1 and (x.ndim == 2 or x.stride(0) == x.shape[1] * x.stride(1)):
        return x
    return x.clone(memory_format=torch.contiguous_format)


def _result(x: Tensor, half: bool) -> Tensor:
    return torch.empty(x.shape, dtype=torch.bfloat16 if half else torch.float32, device=x.device)


def _statistics(x: Tensor, batch: bool) -> tuple[Tensor, Tensor]:
    """Room for mean and 1/sd, of every column or of every row."""
    seeds, rows, features = _sizes(x)
    shape = (seeds, features if batch else rows)
    mean, rstd = (torch.empty(shape, dtype=torch.float32, device=x.device) for _ in range(2))
    return mean, rstd


def _dense_like(x: Tensor) -> Tensor:
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


# --- normalise + activate -------------------------------------------------------------------------------------


@torch.library.custom_op("taggernet::norm_activate", mutates_args=())
def norm_activate_forward(
    x: Tensor, bias: Tensor, scale: Tensor | None, batch: bool, relu: bool, keep_normed: bool, eps: float, half: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(normed or empty, activated, mean, 1/sd)."""
    seeds, rows, features = _sizes(x)
    x, out = _evenly_spaced(x), _result(x, half)
    normed = torch.empty_like(out) if keep_normed else out.new_empty(0)
    mean, rstd = _statistics(x, batch)
    args = (x, bias, bias if scale is None else scale, normed, out, mean, rstd, rows, features, x.stride(-2), eps)
    flags = {"RELU": relu, "SCALED": scale is not None, "WRITE_NORMED": keep_normed}
    if batch:
        kernel, (grid, shape) = column_kernel("norm forward", seeds, rows, features)
    else:
        kernel, (grid, shape) = kernels_layer.layer_norm_forward, row_blocks("norm", seeds, rows, features)
    kernel[grid](*args, **flags, **shape)
    return normed, out, mean, rstd


@norm_activate_forward.register_fake
def _(
    x: Tensor, bias: Tensor, scale: Tensor | None, batch: bool, relu: bool, keep_normed: bool, eps: float, half: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    out = _result(x, half)
    return torch.empty_like(out) if keep_normed else out.new_empty(0), out, *_statistics(x, batch)


@torch.library.custom_op("taggernet::norm_activate_backward", mutates_args=())
def norm_activate_backward(
    x: Tensor, bias: Tensor, scale: Tensor | None, mean: Tensor, rstd: Tensor, g_normed: Tensor | None,
    g_out: Tensor, batch: bool, relu: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of x, bias and scale."""
    seeds, rows, features = _sizes(x)
    x, g_out = _evenly_spaced(x), g_out.contiguous()
    g_n = g_out if g_normed is None else g_normed.contiguous()
    g_x, g_bias = _dense_like(x), torch.empty_like(bias)
    g_scale = bias.new_empty(0) if scale is None else torch.empty_like(scale)
    inputs, sizes = (x, bias, bias if scale is None else scale, mean, rstd), (rows, features, x.stride(-2))
    flags = {"RELU": relu, "SCALED": scale is not None}
    has_normed = g_normed is not None
    if batch:
        kernel, (grid, shape) = column_kernel("norm backward", seeds, rows, features)
        kernel[grid](*inputs, g_n, g_out, g_x, g_bias, g_scale, *sizes, **flags, HAS_NORMED=has_normed, **shape)
    else:
        grid, shape = row_blocks("norm", seeds, rows, features)
        kernels_layer.layer_norm_backward[grid](
            *inputs, g_n, g_out, g_x, *sizes, **flags, HAS_NORMED=has_normed, **shape
        )
        kernel, (grid, shape) = column_kernel("norm parameters", seeds, rows, features)
        kernel[grid](*inputs, g_out, g_bias, g_scale, *sizes, **flags, **shape)
    return g_x, g_bias, g_scale


@norm_activate_backward.register_fake
def _(
    x: Tensor, bias: Tensor, scale: Tensor | None, mean: Tensor, rstd: Tensor, g_normed: Tensor | None,
    g_out: Tensor, batch: bool, relu: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    g_scale = bias.new_empty(0) if scale is None else torch.empty_like(scale)
    return _dense_like(x), torch.empty_like(bias), g_scale


def _norm_setup(ctx: Any, inputs: Any, output: Any) -> None:
    x, bias, scale, ctx.batch, ctx.relu, ctx.keep_normed, _, _ = inputs
    ctx.scaled = scale is not None
    ctx.save_for_backward(x, bias, *([scale] if ctx.scaled else []), output[2], output[3])


def _norm_backward(ctx: Any, g_normed: Tensor, g_out: Tensor, *_: Tensor) -> tuple[Any, ...]:
    x, bias, *scale, mean, rstd = ctx.saved_tensors
    g_x, g_bias, g_scale = norm_activate_backward(
        x, bias, scale[0] if scale else None, mean, rstd, g_normed if ctx.keep_normed else None, g_out,
        ctx.batch, ctx.relu,
    )  # fmt: skip
    return g_x, g_bias, g_scale if ctx.scaled else None, None, None, None, None, None


norm_activate_forward.register_autograd(_norm_backward, setup_context=_norm_setup)


# --- normalise + combine --------------------------------------------------------------------------------------


@torch.library.custom_op("taggernet::norm_combine", mutates_args=())
def norm_combine_forward(
    z: Tensor, x: Tensor, a: Tensor, batch: bool, stable: bool, eps: float, half: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """(estimate, mean, 1/sd)."""
    seeds, rows, features = _sizes(x)
    out, (mean, rstd) = _result(x, half), _statistics(x, batch)
    args = (z.contiguous(), x.contiguous(), a, out, mean, rstd, rows, features, eps)
    if batch:
        kernel, (grid, shape) = column_kernel("combine forward", seeds, rows, features)
    else:
        kernel = kernels_layer.layer_combine_forward
        grid, shape = row_blocks("combine forward", seeds, rows, features)
    kernel[grid](*args, STABLE=stable, **shape)
    return out, mean, rstd


@norm_combine_forward.register_fake
def _(
    z: Tensor, x: Tensor, a: Tensor, batch: bool, stable: bool, eps: float, half: bool
) -> tuple[Tensor, Tensor, Tensor]:
    return _result(x, half), *_statistics(x, batch)


@torch.library.custom_op("taggernet::norm_combine_backward", mutates_args=())
def norm_combine_backward(
    z: Tensor, x: Tensor, a: Tensor, mean: Tensor, rstd: Tensor, g_out: Tensor, batch: bool, stable: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of z, x and a."""
    seeds, rows, features = _sizes(x)
    z, x, g_out = z.contiguous(), x.contiguous(), g_out.contiguous()
    g_z, g_x, g_a = torch.empty_like(z), torch.empty_like(x), torch.empty_like(a)
    args = (z, x, a, mean, rstd, g_out, g_z, g_x)
    kernel, (grid, shape) = column_kernel("combine backward" if batch else "combine parameters", seeds, rows, features)
    kernel[grid](*args, g_a, rows, features, STABLE=stable, **shape)
    if not batch:
        grid, shape = row_blocks("combine backward", seeds, rows, features)
        kernels_layer.layer_combine_backward[grid](*args, rows, features, STABLE=stable, **shape)
    return g_z, g_x, g_a


@norm_combine_backward.register_fake
def _(
    z: Tensor, x: Tensor, a: Tensor, mean: Tensor, rstd: Tensor, g_out: Tensor, batch: bool, stable: bool
) -> tuple[Tensor, Tensor, Tensor]:
    return _dense_like(z), _dense_like(x), torch.empty_like(a)


def _combine_setup(ctx: Any, inputs: Any, output: Any) -> None:
    z, x, a, ctx.batch, ctx.stable, _, _ = inputs
    ctx.save_for_backward(z, x, a, output[1], output[2])


def _combine_backward(ctx: Any, g_out: Tensor, *_: Tensor) -> tuple[Any, ...]:
    return *norm_combine_backward(*ctx.saved_tensors, g_out, ctx.batch, ctx.stable), None, None, None, None


norm_combine_forward.register_autograd(_combine_backward, setup_context=_combine_setup)
