"""Triton kernels behind fast/ops.py: normalise + activate, and normalise + combine, forward and backward.

# S seeds · R rows · F features; a seed is axis 1 of every grid

BatchNorm works on blocks of columns and walks over the rows twice: down for sums, and up again to write, so that it
meets first what the cache still holds. LayerNorm holds a row in registers, RP rows one after the other so that
parameters are read once; the gradients of its per-feature parameters are column sums over the same values, so they
come from a second kernel that walks down the rows with the row statistics at hand. Sums run in blocks of
rows x columns and are folded once at the end: folding at every step costs more than all the rest. With STAGES above 1
the next blocks of rows are on their way while one is worked on. The gradient of x may lie in a larger stack: ``jump``
leads from one seed's rows to the next one's.
"""

from __future__ import annotations

import os

import torch
import triton
import triton.language as tl

FAST = tl.constexpr(torch.version.cuda is not None and os.environ.get("TRITON_INTERPRET") != "1")
"""Whether NVIDIA's own instructions for tanh x (good to 2^-11), 2^x and 1/x (good to 2^-22) may be written down."""
TWICE_LOG2E = tl.constexpr(2.8853900817779268)


@triton.jit
def _tanh(t, HALF: tl.constexpr):
    """tanh, with HALF in one instruction whose error is smaller than that of rounding to bfloat16."""
    if FAST and HALF:
        return tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [t], dtype=tl.float32, is_pure=True, pack=1)
    t = t * TWICE_LOG2E
    if FAST:
        share = tl.inline_asm_elementwise(
            "ex2.approx.ftz.f32 $0, $1; add.f32 $0, $0, 0f3F800000; rcp.approx.ftz.f32 $0, $0;", "=f,f", [t],
            dtype=tl.float32, is_pure=True, pack=1,
        )  # fmt: skip
    else:
        share = 1.0 / (1.0 + tl.exp2(t))
    return 1.0 - 2.0 * share


@triton.jit
def _gates(u, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, STABLE: tl.constexpr, HALF: tl.constexpr):
    """mu(u), v(u) and the two tanh inside them, for parameters as ``_load_a`` gives them."""
    t1 = _tanh(a2 * u + a3, HALF)
    t2 = _tanh(a7 * u + a8, HALF)
    mu = a1 * t1 + (a4 * u + a5)
    v = a6 * t2 + (a9 * u + a10)
    if STABLE:
        v = 0.5 + 0.5 * _tanh(0.5 * v, HALF)
    return mu, v, t1, t2


@triton.jit
def _combine_gradients(z, u, g, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, STABLE: tl.constexpr, HALF: tl.constexpr):
    """What all gradients of (z - mu) v + mu are made of: that of z, and those of mu, v and the insides of tanh.

    The last two lack their factors a1 and a6, which are the same for all rows.
    """
    mu, v, t1, t2 = _gates(u, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, STABLE, HALF)
    g_z = g * v
    g_mu = g - g_z
    g_v = g * (z - mu)
    if STABLE:
        g_v = g_v * (v - v * v)
    return g_z, g_mu, g_v, g_mu * (1.0 - t1 * t1), g_v * (1.0 - t2 * t2), t1, t2


@triton.jit
def _through_u(g_mu, g_v, g_1, g_2, a4, a9, b2, b7):
    """The gradient of u, or a sum of them, from those of ``_combine_gradients``, or their sums."""
    return g_mu * a4 + g_1 * b2 + g_v * a9 + g_2 * b7


@triton.jit
def _store_activated(
    t, b, c, normed, out, at, mask, RELU: tl.constexpr, SCALED: tl.constexpr, WRITE_NORMED: tl.constexpr
):
    """Write normalised values, where they are wanted, and what becomes of them: act(t c + b)."""
    if WRITE_NORMED:
        tl.store(normed + at, t.to(normed.dtype.element_ty), mask=mask)
    if SCALED:
        t = t * c
    t = t + b
    if RELU:
        t = tl.maximum(t, 0.0)
    tl.store(out + at, t.to(out.dtype.element_ty), mask=mask)


# --- BatchNorm: a program owns a block of columns -------------------------------------------------------------


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
        _store_activated(t, b, c, normed, out, at, mask, RELU, SCALED, WRITE_NORMED)


@triton.jit
def batch_norm_backward(
    x, bias, scale, mean, rstd, g_normed, g_out, g_x, g_bias, g_scale, R: tl.constexpr, F, stride, jump,
    RELU: tl.constexpr, SCALED: tl.constexpr, HAS_NORMED: tl.constexpr,
    BR: tl.constexpr, BF: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    s = tl.program_id(1).to(tl.int64)
    cols = tl.program_id(0) * BF + tl.arange(0, BF)
    cmask = cols < F
    x += s * R * stride
    g_x += s * (jump - R * F)
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
def _load_a(a, F, cols, cmask):
    """The combinator's parameters, as sigmoid(x) = (1 + tanh(x / 2)) / 2 wants them."""
    a1 = tl.load(a + cols, mask=cmask, other=0.0)
    a2 = tl.load(a + F + cols, mask=cmask, other=0.0)
    a3 = tl.load(a + 2 * F + cols, mask=cmask, other=0.0)
    a4 = tl.load(a + 3 * F + cols, mask=cmask, other=0.0)
    a5 = tl.load(a + 4 * F + cols, mask=cmask, other=0.0)
    a6 = tl.load(a + 5 * F + cols, mask=cmask, other=0.0)
    a7 = tl.load(a + 6 * F + cols, mask=cmask, other=0.0)
    a8 = tl.load(a + 7 * F + cols, mask=cmask, other=0.0)
    a9 = tl.load(a + 8 * F + cols, mask=cmask, other=0.0)
    a10 = tl.load(a + 9 * F + cols, mask=cmask, other=0.0)
    a1, a2, a3, a6, a7, a8 = 0.5 * a1, 0.5 * a2, 0.5 * a3, 0.5 * a6, 0.5 * a7, 0.5 * a8
    return a1, a2, a3, a4, a5 + a1, a6, a7, a8, a9, a10 + a6


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
    a1, a2, a3, a4, a5, a6, a7, a8, a9, a10 = _load_a(a + s * 10 * F, F, cols[None, :], cmask[None, :])
    for r0 in tl.range(0, R, BR, num_stages=STAGES):
        rows = R - BR - r0 + tl.arange(0, BR)
        mask = (rows >= 0)[:, None] & cmask[None, :]
        at = rows[:, None] * F + cols[None, :]
        u = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        u = (u - m[None, :]) * r[None, :]
        mu, v, _t1, _t2 = _gates(u, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, STABLE, HALF)
        lateral = tl.load(z + s * R * F + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + s * R * F + at, ((lateral - mu) * v + mu).to(out.dtype.element_ty), mask=mask)


@triton.jit
def _store_a(a, g_a, F, cols, cmask, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10):
    """Write the gradients of a: sums t with tanh instead of sigmoids, and without the factors a1 and a6."""
    a1 = 0.25 * tl.load(a + cols, mask=cmask, other=0.0)
    a6 = 0.25 * tl.load(a + 5 * F + cols, mask=cmask, other=0.0)
    tl.store(g_a + cols, 0.5 * (t1 + t5), mask=cmask)
    tl.store(g_a + F + cols, t2 * a1, mask=cmask)
    tl.store(g_a + 2 * F + cols, t3 * a1, mask=cmask)
    tl.store(g_a + 3 * F + cols, t4, mask=cmask)
    tl.store(g_a + 4 * F + cols, t5, mask=cmask)
    tl.store(g_a + 5 * F + cols, 0.5 * (t6 + t10), mask=cmask)
    tl.store(g_a + 6 * F + cols, t7 * a6, mask=cmask)
    tl.store(g_a + 7 * F + cols, t8 * a6, mask=cmask)
    tl.store(g_a + 8 * F + cols, t9, mask=cmask)
    tl.store(g_a + 9 * F + cols, t10, mask=cmask)


@triton.jit
def combine_parameter_gradients(
    z, x, a, mean, rstd, g_out, g_z, g_x, g_a, R: tl.constexpr, F, jump,
    STABLE: tl.constexpr, BATCH: tl.constexpr, BR: tl.constexpr, BF: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Column sums for a; with BATCH also the gradients of z and x, whose own sums follow from a's."""
    HALF: tl.constexpr = x.dtype.element_ty == tl.bfloat16
    s = tl.program_id(1).to(tl.int64)
    cols = tl.program_id(0) * BF + tl.arange(0, BF)
    cmask = cols < F
    g_x += s * (jump - R * F)
    a1, a2, a3, a4, a5, a6, a7, a8, a9, a10 = _load_a(a + s * 10 * F, F, cols[None, :], cmask[None, :])
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
        gz, g_mu, g_v, g_1, g_2, h1, h2 = _combine_gradients(
            lateral, u, g, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, STABLE, HALF
        )
        if BATCH:
            tl.store(g_z + at, gz.to(g_z.dtype.element_ty), mask=mask)
            gu = _through_u(g_mu, g_v, g_1, g_2, a4, a9, b2, b7)
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
    _store_a(a + s * 10 * F, g_a + s * 10 * F, F, cols, cmask, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10)
    if BATCH:
        mean_g = _through_u(t5[None, :], t10[None, :], t3[None, :], t8[None, :], a4, a9, b2, b7) / R
        mean_gu = _through_u(t4[None, :], t9[None, :], t2[None, :], t7[None, :], a4, a9, b2, b7) / R
        tl.debug_barrier()  # g_x holds the gradient of u, written above, until it is replaced here
        for r0 in tl.range(0, R, BR, num_stages=STAGES):
            rows = R - BR - r0 + tl.arange(0, BR)
            mask = (rows >= 0)[:, None] & cmask[None, :]
            at = s * R * F + rows[:, None] * F + cols[None, :]
            u = tl.load(x + at, mask=mask, other=0.0).to(tl.float32) * r - m * r
            gu = tl.load(g_x + at, mask=mask, other=0.0).to(tl.float32)
            tl.store(g_x + at, (r * (gu - mean_g - u * mean_gu)).to(g_x.dtype.element_ty), mask=mask)


# --- LayerNorm: a program owns a row --------------------------------------------------------------------------


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
        mask = (cols < F) & (row < R)
        t = tl.load(x + (s * R + row) * stride + cols, mask=mask, other=0.0).to(tl.float32)
        m, r = _row_statistics(t, mask, F, eps)
        tl.store(mean + s * R + row, m, mask=row < R)
        tl.store(rstd + s * R + row, r, mask=row < R)
        t = (t - m) * r
        at = (s * R + row) * F + cols
        _store_activated(t, b, c, normed, out, at, mask, RELU, SCALED, WRITE_NORMED)


@triton.jit
def layer_norm_backward(
    x, bias, scale, mean, rstd, g_normed, g_out, g_x, R, F, stride, jump,
    RELU: tl.constexpr, SCALED: tl.constexpr, HAS_NORMED: tl.constexpr,
    RP: tl.constexpr, BF: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    s = tl.program_id(1).to(tl.int64)
    cols = tl.arange(0, BF)
    g_x += s * (jump - R * F)
    b = tl.load(bias + s * F + cols, mask=cols < F, other=0.0)
    c = tl.load(scale + s * F + cols, mask=cols < F, other=0.0) if SCALED else 1.0
    for i in tl.range(0, RP, num_stages=STAGES):
        row = tl.program_id(0) * RP + i
        mask = (cols < F) & (row < R)
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
    a1, a2, a3, a4, a5, a6, a7, a8, a9, a10 = _load_a(a + s * 10 * F, F, cols, cols < F)
    for i in tl.range(0, RP, num_stages=STAGES):
        row = tl.program_id(0) * RP + i
        mask = (cols < F) & (row < R)
        at = (s * R + row) * F + cols
        u = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        lateral = tl.load(z + at, mask=mask, other=0.0).to(tl.float32)
        m, r = _row_statistics(u, mask, F, eps)
        tl.store(mean + s * R + row, m, mask=row < R)
        tl.store(rstd + s * R + row, r, mask=row < R)
        u = (u - m) * r
        mu, v, _t1, _t2 = _gates(u, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, STABLE, HALF)
        tl.store(out + at, ((lateral - mu) * v + mu).to(out.dtype.element_ty), mask=mask)


@triton.jit
def layer_combine_backward(
    z, x, a, mean, rstd, g_out, g_z, g_x, R, F, jump, STABLE: tl.constexpr, RP: tl.constexpr, BF: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    HALF: tl.constexpr = x.dtype.element_ty == tl.bfloat16
    s = tl.program_id(1).to(tl.int64)
    cols = tl.arange(0, BF)
    g_x += s * (jump - R * F)
    a1, a2, a3, a4, a5, a6, a7, a8, a9, a10 = _load_a(a + s * 10 * F, F, cols, cols < F)
    b2, b7 = a1 * a2, a6 * a7
    for i in tl.range(0, RP, num_stages=STAGES):
        row = tl.program_id(0) * RP + i
        mask = (cols < F) & (row < R)
        at = (s * R + row) * F + cols
        m = tl.load(mean + s * R + row, mask=row < R, other=0.0)
        r = tl.load(rstd + s * R + row, mask=row < R, other=0.0)
        u = tl.where(mask, (tl.load(x + at, mask=mask, other=0.0).to(tl.float32) - m) * r, 0.0)
        lateral = tl.load(z + at, mask=mask, other=0.0).to(tl.float32)
        g = tl.load(g_out + at, mask=mask, other=0.0).to(tl.float32)
        gz, g_mu, g_v, g_1, g_2, _h1, _h2 = _combine_gradients(
            lateral, u, g, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, STABLE, HALF
        )
        gu = _through_u(g_mu, g_v, g_1, g_2, a4, a9, b2, b7)
        tl.store(g_z + at, gz.to(g_z.dtype.element_ty), mask=mask)
        gx = r * (gu - tl.sum(gu, 0) / F - u * (tl.sum(gu * u, 0) / F))
        tl.store(g_x + at, gx.to(g_x.dtype.element_ty), mask=mask)
