"""Triton kernels for LayerNorm: normalise + activate and normalise + combine, forward and backward.

# S seeds · R rows · F features; a seed is axis 1 of every grid

A program holds a row in registers, RP rows one after the other so that parameters are read once. The gradients of
per-feature parameters are column sums, so they come from a second kernel that walks down the rows and reads the row
statistics; for the combinator that is ``combine_parameter_gradients`` in fast/kernels_batch.py.
"""

from __future__ import annotations

import triton
import triton.language as tl

from taggernet.fast.kernel_parts import combine_gradients, gates, load_a, store_activated, through_u


@triton.jit
def _row_statistics(t, mask, F, eps):
    mean = tl.sum(t, 0) / F
    centred = tl.where(mask, t - mean, 0.0)
    return mean, tl.rsqrt(tl.sum(centred * centred, 0) / F + eps)


@triton.jit
def layer_norm_forward(
    x, bias, scale, normed, out, mean, rstd, R, F, stride, eps,
    RELU: tl.constexpr, SCALED: tl.constexpr, WRITE_NORMED: tl.constexpr,
    RP: tl.constexpr, BF: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    s = tl.program_id(1).to(tl.int64)
    cols = tl.arange(0, BF)
    b = tl.load(bias + s * F + cols, mask=cols < F, other=0.0)
    c = tl.load(scale + s * F + cols, mask=cols < F, other=0.0) if SCALED else 1.0
    for i in tl.range(0, RP, num_stages=STAGES):
        row = tl.program_id(0) * RP + i
        mask = (cols < F) & (row + 0 * cols < R)  # a block, as the interpreter does not broadcast a mask
        t = tl.load(x + (s * R + row) * stride + cols, mask=mask, other=0.0).to(tl.float32)
        m, r = _row_statistics(t, mask, F, eps)
        tl.store(mean + s * R + row, m, mask=row < R)
        tl.store(rstd + s * R + row, r, mask=row < R)
        t = (t - m) * r
        at = (s * R + row) * F + cols
        store_activated(t, b, c, normed, out, at, mask, RELU, SCALED, WRITE_NORMED)


@triton.jit
def layer_norm_backward(
    x, bias, scale, mean, rstd, g_normed, g_out, g_x, R, F, stride,
    RELU: tl.constexpr, SCALED: tl.constexpr, HAS_NORMED: tl.constexpr,
    RP: tl.constexpr, BF: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    s = tl.program_id(1).to(tl.int64)
    cols = tl.arange(0, BF)
    b = tl.load(bias + s * F + cols, mask=cols < F, other=0.0)
    c = tl.load(scale + s * F + cols, mask=cols < F, other=0.0) if SCALED else 1.0
    for i in tl.range(0, RP, num_stages=STAGES):
        row = tl.program_id(0) * RP + i
        mask = (cols < F) & (row + 0 * cols < R)
        at = (s * R + row) * F + cols
        m = tl.load(mean + s * R + row, mask=row < R, other=0.0)
        r = tl.load(rstd + s * R + row, mask=row < R, other=0.0)
        t = tl.load(x + (s * R + row) * stride + cols, mask=mask, other=0.0).to(tl.float32)
        n = tl.where(mask, (t - m) * r, 0.0)
        g = tl.load(g_out + at, mask=mask, other=0.0).to(tl.float32)
        if RELU:
            g = tl.where(n * c + b > 0, g, 0.0)
        g = g * c
        if HAS_NORMED:
            g += tl.load(g_normed + at, mask=mask, other=0.0).to(tl.float32)
        g = r * (g - tl.sum(g, 0) / F - n * (tl.sum(g * n, 0) / F))
        tl.store(g_x + at, g.to(g_x.dtype.element_ty), mask=mask)


@triton.jit
def layer_parameter_gradients(
    x, bias, scale, mean, rstd, g_out, g_bias, g_scale, R: tl.constexpr, F, stride,
    RELU: tl.constexpr, SCALED: tl.constexpr, BR: tl.constexpr, BF: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    s = tl.program_id(1).to(tl.int64)
    cols = tl.program_id(0) * BF + tl.arange(0, BF)
    cmask = cols < F
    b = tl.load(bias + s * F + cols, mask=cmask, other=0.0)[None, :]
    c = tl.load(scale + s * F + cols, mask=cmask, other=0.0)[None, :] if SCALED else 1.0
    sum_b = tl.zeros([BR, BF], tl.float32)
    sum_c = tl.zeros([BR, BF], tl.float32)
    for r0 in tl.range(0, R, BR, num_stages=STAGES):
        rows = r0 + tl.arange(0, BR)
        mask = (rows < R)[:, None] & cmask[None, :]
        g = tl.load(g_out + s * R * F + rows[:, None] * F + cols[None, :], mask=mask, other=0.0).to(tl.float32)
        if RELU or SCALED:
            m = tl.load(mean + s * R + rows, mask=rows < R, other=0.0)[:, None]
            r = tl.load(rstd + s * R + rows, mask=rows < R, other=0.0)[:, None]
            at = s * R * stride + rows[:, None] * stride + cols[None, :]
            n = (tl.load(x + at, mask=mask, other=0.0).to(tl.float32) - m) * r
            if RELU:
                g = tl.where(n * c + b > 0, g, 0.0)
            if SCALED:
                sum_c += g * n
        sum_b += g
    tl.store(g_bias + s * F + cols, tl.sum(sum_b, 0), mask=cmask)
    if SCALED:
        tl.store(g_scale + s * F + cols, tl.sum(sum_c, 0), mask=cmask)


@triton.jit
def layer_combine_forward(
    z, x, a, out, mean, rstd, R, F, eps, STABLE: tl.constexpr, RP: tl.constexpr, BF: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    HALF: tl.constexpr = x.dtype.element_ty == tl.bfloat16
    s = tl.program_id(1).to(tl.int64)
    cols = tl.arange(0, BF)
    a1, a2, a3, a4, a5, a6, a7, a8, a9, a10 = load_a(a + s * 10 * F, F, cols, cols < F)
    for i in tl.range(0, RP, num_stages=STAGES):
        row = tl.program_id(0) * RP + i
        mask = (cols < F) & (row + 0 * cols < R)
        at = (s * R + row) * F + cols
        u = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        lateral = tl.load(z + at, mask=mask, other=0.0).to(tl.float32)
        m, r = _row_statistics(u, mask, F, eps)
        tl.store(mean + s * R + row, m, mask=row < R)
        tl.store(rstd + s * R + row, r, mask=row < R)
        u = (u - m) * r
        mu, v, _t1, _t2 = gates(u, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, STABLE, HALF)
        tl.store(out + at, ((lateral - mu) * v + mu).to(out.dtype.element_ty), mask=mask)


@triton.jit
def layer_combine_backward(
    z, x, a, mean, rstd, g_out, g_z, g_x, R, F, STABLE: tl.constexpr, RP: tl.constexpr, BF: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    HALF: tl.constexpr = x.dtype.element_ty == tl.bfloat16
    s = tl.program_id(1).to(tl.int64)
    cols = tl.arange(0, BF)
    a1, a2, a3, a4, a5, a6, a7, a8, a9, a10 = load_a(a + s * 10 * F, F, cols, cols < F)
    b2, b7 = a1 * a2, a6 * a7
    for i in tl.range(0, RP, num_stages=STAGES):
        row = tl.program_id(0) * RP + i
        mask = (cols < F) & (row + 0 * cols < R)
        at = (s * R + row) * F + cols
        m = tl.load(mean + s * R + row, mask=row < R, other=0.0)
        r = tl.load(rstd + s * R + row, mask=row < R, other=0.0)
        u = tl.where(mask, (tl.load(x + at, mask=mask, other=0.0).to(tl.float32) - m) * r, 0.0)
        lateral = tl.load(z + at, mask=mask, other=0.0).to(tl.float32)
        g = tl.load(g_out + at, mask=mask, other=0.0).to(tl.float32)
        gz, g_mu, g_v, g_1, g_2, _h1, _h2 = combine_gradients(
            lateral, u, g, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, STABLE, HALF
        )
        gu = through_u(g_mu, g_v, g_1, g_2, a4, a9, b2, b7)
        tl.store(g_z + at, gz.to(g_z.dtype.element_ty), mask=mask)
        gx = r * (gu - tl.sum(gu, 0) / F - u * (tl.sum(gu * u, 0) / F))
        tl.store(g_x + at, gx.to(g_x.dtype.element_ty), mask=mask)
