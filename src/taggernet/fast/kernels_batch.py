"""Triton kernels for BatchNorm: normalise + activate and normalise + combine, forward and backward.

# S seeds · R rows · F features; a seed is axis 1 of every grid

A program owns a block of columns and walks over the rows twice: down for the sums, and up again to write, so that it
first meets what the cache still holds. Sums run in blocks of rows x columns and are reduced once at the end: reducing
at every step costs more than everything else. With STAGES above 1 the next blocks of rows are loaded while one is
worked on. fast/kernels_small.py has versions for few rows and columns.
"""

from __future__ import annotations

import triton
import triton.language as tl

from taggernet.fast.kernel_parts import combine_gradients, gates, load_a, store_a, store_activated, through_u


@triton.jit
def _column_statistics(
    x, R: tl.constexpr, cols, cmask, stride, eps, BR: tl.constexpr, BF: tl.constexpr, STAGES: tl.constexpr
):
    """Mean and 1/sd of each column, in one pass of sums taken relative to the first row."""
    shift = tl.load(x + cols, mask=cmask, other=0.0).to(tl.float32)
    total = tl.zeros([BR, BF], tl.float32)
    squares = tl.zeros([BR, BF], tl.float32)
    for r0 in tl.range(0, R, BR, num_stages=STAGES):
        rows = r0 + tl.arange(0, BR)
        mask = (rows < R)[:, None] & cmask[None, :]
        t = tl.load(x + rows[:, None] * stride + cols[None, :], mask=mask, other=0.0).to(tl.float32)
        t = tl.where(mask, t - shift[None, :], 0.0)
        total += t
        squares += t * t
    mean = tl.sum(total, 0) / R
    variance = tl.maximum(tl.sum(squares, 0) / R - mean * mean, 0.0)
    return mean + shift, tl.rsqrt(variance + eps)


@triton.jit
def batch_norm_forward(
    x, bias, scale, normed, out, mean, rstd, R: tl.constexpr, F, stride, eps,
    RELU: tl.constexpr, SCALED: tl.constexpr, WRITE_NORMED: tl.constexpr,
    BR: tl.constexpr, BF: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    s = tl.program_id(1).to(tl.int64)
    cols = tl.program_id(0) * BF + tl.arange(0, BF)
    cmask = cols < F
    x += s * R * stride
    mu, r = _column_statistics(x, R, cols, cmask, stride, eps, BR, BF, STAGES)
    tl.store(mean + s * F + cols, mu, mask=cmask)
    tl.store(rstd + s * F + cols, r, mask=cmask)
    b = tl.load(bias + s * F + cols, mask=cmask, other=0.0)[None, :]
    c = tl.load(scale + s * F + cols, mask=cmask, other=0.0)[None, :] if SCALED else 1.0
    for r0 in tl.range(0, R, BR, num_stages=STAGES):
        rows = R - BR - r0 + tl.arange(0, BR)
        mask = (rows >= 0)[:, None] & cmask[None, :]
        t = tl.load(x + rows[:, None] * stride + cols[None, :], mask=mask, other=0.0).to(tl.float32)
        t = (t - mu[None, :]) * r[None, :]
        at = s * R * F + rows[:, None] * F + cols[None, :]
        store_activated(t, b, c, normed, out, at, mask, RELU, SCALED, WRITE_NORMED)


@triton.jit
def batch_norm_backward(
    x, bias, scale, mean, rstd, g_normed, g_out, g_x, g_bias, g_scale, R: tl.constexpr, F, stride,
    RELU: tl.constexpr, SCALED: tl.constexpr, HAS_NORMED: tl.constexpr,
    BR: tl.constexpr, BF: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    s = tl.program_id(1).to(tl.int64)
    cols = tl.program_id(0) * BF + tl.arange(0, BF)
    cmask = cols < F
    x += s * R * stride
    mu = tl.load(mean + s * F + cols, mask=cmask, other=0.0)
    r = tl.load(rstd + s * F + cols, mask=cmask, other=0.0)
    b = tl.load(bias + s * F + cols, mask=cmask, other=0.0)
    c = tl.load(scale + s * F + cols, mask=cmask, other=0.0) if SCALED else tl.full([BF], 1.0, tl.float32)
    sum_g = tl.zeros([BR, BF], tl.float32)
    sum_gn = tl.zeros([BR, BF], tl.float32)
    sum_b = tl.zeros([BR, BF], tl.float32)
    sum_c = tl.zeros([BR, BF], tl.float32)
    for r0 in tl.range(0, R, BR, num_stages=STAGES):
        rows = r0 + tl.arange(0, BR)
        mask = (rows < R)[:, None] & cmask[None, :]
        at = s * R * F + rows[:, None] * F + cols[None, :]
        t = tl.load(x + rows[:, None] * stride + cols[None, :], mask=mask, other=0.0).to(tl.float32)
        n = (t - mu[None, :]) * r[None, :]
        g = tl.load(g_out + at, mask=mask, other=0.0).to(tl.float32)
        if RELU:
            g = tl.where(n * c[None, :] + b[None, :] > 0, g, 0.0)
        sum_b += g
        if SCALED:
            sum_c += g * n
        g = g * c[None, :]
        if HAS_NORMED:
            g += tl.load(g_normed + at, mask=mask, other=0.0).to(tl.float32)
        sum_g += g
        sum_gn += g * n
    tl.store(g_bias + s * F + cols, tl.sum(sum_b, 0), mask=cmask)
    if SCALED:
        tl.store(g_scale + s * F + cols, tl.sum(sum_c, 0), mask=cmask)
    mean_g = tl.sum(sum_g, 0)[None, :] / R
    mean_gn = tl.sum(sum_gn, 0)[None, :] / R
    for r0 in tl.range(0, R, BR, num_stages=STAGES):
        rows = R - BR - r0 + tl.arange(0, BR)
        mask = (rows >= 0)[:, None] & cmask[None, :]
        at = s * R * F + rows[:, None] * F + cols[None, :]
        t = tl.load(x + rows[:, None] * stride + cols[None, :], mask=mask, other=0.0).to(tl.float32)
        n = (t - mu[None, :]) * r[None, :]
        g = tl.load(g_out + at, mask=mask, other=0.0).to(tl.float32)
        if RELU:
            g = tl.where(n * c[None, :] + b[None, :] > 0, g, 0.0)
        g = g * c[None, :]
        if HAS_NORMED:
            g += tl.load(g_normed + at, mask=mask, other=0.0).to(tl.float32)
        g = r[None, :] * (g - mean_g - n * mean_gn)
        tl.store(g_x + at, g.to(g_x.dtype.element_ty), mask=mask)


@triton.jit
def batch_combine_forward(
    z, x, a, out, mean, rstd, R: tl.constexpr, F, eps,
    STABLE: tl.constexpr, BR: tl.constexpr, BF: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    HALF: tl.constexpr = x.dtype.element_ty == tl.bfloat16
    s = tl.program_id(1).to(tl.int64)
    cols = tl.program_id(0) * BF + tl.arange(0, BF)
    cmask = cols < F
    x += s * R * F
    m, r = _column_statistics(x, R, cols, cmask, F, eps, BR, BF, STAGES)
    tl.store(mean + s * F + cols, m, mask=cmask)
    tl.store(rstd + s * F + cols, r, mask=cmask)
    a1, a2, a3, a4, a5, a6, a7, a8, a9, a10 = load_a(a + s * 10 * F, F, cols[None, :], cmask[None, :])
    for r0 in tl.range(0, R, BR, num_stages=STAGES):
        rows = R - BR - r0 + tl.arange(0, BR)
        mask = (rows >= 0)[:, None] & cmask[None, :]
        at = rows[:, None] * F + cols[None, :]
        u = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        u = (u - m[None, :]) * r[None, :]
        mu, v, _t1, _t2 = gates(u, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, STABLE, HALF)
        lateral = tl.load(z + s * R * F + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + s * R * F + at, ((lateral - mu) * v + mu).to(out.dtype.element_ty), mask=mask)


@triton.jit
def combine_parameter_gradients(
    z, x, a, mean, rstd, g_out, g_z, g_x, g_a, R: tl.constexpr, F,
    STABLE: tl.constexpr, BATCH: tl.constexpr, BR: tl.constexpr, BF: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Column sums for a; with BATCH also the gradients of z and x, whose own sums follow from a's."""
    HALF: tl.constexpr = x.dtype.element_ty == tl.bfloat16
    s = tl.program_id(1).to(tl.int64)
    cols = tl.program_id(0) * BF + tl.arange(0, BF)
    cmask = cols < F
    a1, a2, a3, a4, a5, a6, a7, a8, a9, a10 = load_a(a + s * 10 * F, F, cols[None, :], cmask[None, :])
    if BATCH:
        b2, b7 = a1 * a2, a6 * a7
        m = tl.load(mean + s * F + cols, mask=cmask, other=0.0)[None, :]
        r = tl.load(rstd + s * F + cols, mask=cmask, other=0.0)[None, :]
    t1 = tl.zeros([BR, BF], tl.float32)
    t2 = tl.zeros([BR, BF], tl.float32)
    t3 = tl.zeros([BR, BF], tl.float32)
    t4 = tl.zeros([BR, BF], tl.float32)
    t5 = tl.zeros([BR, BF], tl.float32)
    t6 = tl.zeros([BR, BF], tl.float32)
    t7 = tl.zeros([BR, BF], tl.float32)
    t8 = tl.zeros([BR, BF], tl.float32)
    t9 = tl.zeros([BR, BF], tl.float32)
    t10 = tl.zeros([BR, BF], tl.float32)
    for r0 in tl.range(0, R, BR, num_stages=STAGES):
        rows = r0 + tl.arange(0, BR)
        mask = (rows < R)[:, None] & cmask[None, :]
        at = s * R * F + rows[:, None] * F + cols[None, :]
        if not BATCH:
            m = tl.load(mean + s * R + rows, mask=rows < R, other=0.0)[:, None]
            r = tl.load(rstd + s * R + rows, mask=rows < R, other=0.0)[:, None]
        u = tl.load(x + at, mask=mask, other=0.0).to(tl.float32) * r - m * r
        lateral = tl.load(z + at, mask=mask, other=0.0).to(tl.float32)
        g = tl.load(g_out + at, mask=mask, other=0.0).to(tl.float32)
        gz, g_mu, g_v, g_1, g_2, h1, h2 = combine_gradients(
            lateral, u, g, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, STABLE, HALF
        )
        if BATCH:
            tl.store(g_z + at, gz.to(g_z.dtype.element_ty), mask=mask)
            gu = through_u(g_mu, g_v, g_1, g_2, a4, a9, b2, b7)
            tl.store(g_x + at, gu.to(g_x.dtype.element_ty), mask=mask)
        t1 += g_mu * h1
        t2 += g_1 * u
        t3 += g_1
        t4 += g_mu * u
        t5 += g_mu
        t6 += g_v * h2
        t7 += g_2 * u
        t8 += g_2
        t9 += g_v * u
        t10 += g_v
    t1 = tl.sum(t1, 0)
    t2 = tl.sum(t2, 0)
    t3 = tl.sum(t3, 0)
    t4 = tl.sum(t4, 0)
    t5 = tl.sum(t5, 0)
    t6 = tl.sum(t6, 0)
    t7 = tl.sum(t7, 0)
    t8 = tl.sum(t8, 0)
    t9 = tl.sum(t9, 0)
    t10 = tl.sum(t10, 0)
    store_a(a + s * 10 * F, g_a + s * 10 * F, F, cols, cmask, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10)
    if BATCH:
        mean_g = through_u(t5[None, :], t10[None, :], t3[None, :], t8[None, :], a4, a9, b2, b7) / R
        mean_gu = through_u(t4[None, :], t9[None, :], t2[None, :], t7[None, :], a4, a9, b2, b7) / R
        tl.debug_barrier()  # g_x holds the gradient of u, written above, until it is replaced here
        for r0 in tl.range(0, R, BR, num_stages=STAGES):
            rows = R - BR - r0 + tl.arange(0, BR)
            mask = (rows >= 0)[:, None] & cmask[None, :]
            at = s * R * F + rows[:, None] * F + cols[None, :]
            u = tl.load(x + at, mask=mask, other=0.0).to(tl.float32) * r - m * r
            gu = tl.load(g_x + at, mask=mask, other=0.0).to(tl.float32)
            tl.store(g_x + at, (r * (gu - mean_g - u * mean_gu)).to(g_x.dtype.element_ty), mask=mask)
