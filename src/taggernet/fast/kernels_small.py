"""The kernels of fast/kernels_batch.py for few rows and columns: a program holds all rows of its columns at once.

# S seeds · R rows · F features; a seed is axis 1 of every grid

Everything is read once, and sums need no loop over the rows. This is faster where the columns of a single run hardly
fill the GPU; with many columns it is slower, because too few programs fit on a processor at once.
"""

from __future__ import annotations

import triton
import triton.language as tl

from taggernet.fast.kernel_parts import combine_gradients, gates, load_a, store_a, store_activated, through_u


@triton.jit
def _block(s, R: tl.constexpr, F, BR: tl.constexpr, BF: tl.constexpr):
    """Columns and rows of a program, which of them there are, and where their elements lie."""
    cols = tl.program_id(0) * BF + tl.arange(0, BF)
    rows = tl.arange(0, BR)
    cmask = cols < F
    mask = (rows < R)[:, None] & cmask[None, :]
    return cols, rows, cmask, mask, s * R * F + rows[:, None] * F + cols[None, :]


@triton.jit
def _centred(t, mask, R: tl.constexpr, eps):
    """Mean, 1/sd, and the values less the mean."""
    mean = tl.sum(t, 0) / R
    t = tl.where(mask, t - mean[None, :], 0.0)
    return mean, tl.rsqrt(tl.sum(t * t, 0) / R + eps), t


@triton.jit
def norm_forward(
    x, bias, scale, normed, out, mean, rstd, R: tl.constexpr, F, stride, eps,
    RELU: tl.constexpr, SCALED: tl.constexpr, WRITE_NORMED: tl.constexpr, BR: tl.constexpr, BF: tl.constexpr,
):  # fmt: skip
    s = tl.program_id(1).to(tl.int64)
    cols, rows, cmask, mask, at = _block(s, R, F, BR, BF)
    t = tl.load(x + s * R * stride + rows[:, None] * stride + cols[None, :], mask=mask, other=0.0).to(tl.float32)
    b = tl.load(bias + s * F + cols, mask=cmask, other=0.0)[None, :]
    c = tl.load(scale + s * F + cols, mask=cmask, other=0.0)[None, :] if SCALED else 1.0
    m, r, t = _centred(t, mask, R, eps)
    tl.store(mean + s * F + cols, m, mask=cmask)
    tl.store(rstd + s * F + cols, r, mask=cmask)
    store_activated(t * r[None, :], b, c, normed, out, at, mask, RELU, SCALED, WRITE_NORMED)


@triton.jit
def norm_backward(
    x, bias, scale, mean, rstd, g_normed, g_out, g_x, g_bias, g_scale, R: tl.constexpr, F, stride,
    RELU: tl.constexpr, SCALED: tl.constexpr, HAS_NORMED: tl.constexpr, BR: tl.constexpr, BF: tl.constexpr,
):  # fmt: skip
    s = tl.program_id(1).to(tl.int64)
    cols, rows, cmask, mask, at = _block(s, R, F, BR, BF)
    t = tl.load(x + s * R * stride + rows[:, None] * stride + cols[None, :], mask=mask, other=0.0).to(tl.float32)
    g = tl.load(g_out + at, mask=mask, other=0.0).to(tl.float32)
    if HAS_NORMED:
        lateral = tl.load(g_normed + at, mask=mask, other=0.0)
    m = tl.load(mean + s * F + cols, mask=cmask, other=0.0)
    r = tl.load(rstd + s * F + cols, mask=cmask, other=0.0)
    b = tl.load(bias + s * F + cols, mask=cmask, other=0.0)
    c = tl.load(scale + s * F + cols, mask=cmask, other=0.0) if SCALED else tl.full([BF], 1.0, tl.float32)
    n = (t - m[None, :]) * r[None, :]
    if RELU:
        g = tl.where(n * c[None, :] + b[None, :] > 0, g, 0.0)
    tl.store(g_bias + s * F + cols, tl.sum(g, 0), mask=cmask)
    if SCALED:
        tl.store(g_scale + s * F + cols, tl.sum(g * n, 0), mask=cmask)
    g = g * c[None, :]
    if HAS_NORMED:
        g += lateral.to(tl.float32)
    g = r[None, :] * (g - (tl.sum(g, 0) / R)[None, :] - n * (tl.sum(g * n, 0) / R)[None, :])
    tl.store(g_x + at, g.to(g_x.dtype.element_ty), mask=mask)


@triton.jit
def combine_forward(
    z, x, a, out, mean, rstd, R: tl.constexpr, F, eps, STABLE: tl.constexpr, BR: tl.constexpr, BF: tl.constexpr
):
    HALF: tl.constexpr = x.dtype.element_ty == tl.bfloat16
    s = tl.program_id(1).to(tl.int64)
    cols, _rows, cmask, mask, at = _block(s, R, F, BR, BF)
    u = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
    lateral = tl.load(z + at, mask=mask, other=0.0)
    a1, a2, a3, a4, a5, a6, a7, a8, a9, a10 = load_a(a + s * 10 * F, F, cols[None, :], cmask[None, :])
    m, r, u = _centred(u, mask, R, eps)
    tl.store(mean + s * F + cols, m, mask=cmask)
    tl.store(rstd + s * F + cols, r, mask=cmask)
    mu, v, _t1, _t2 = gates(u * r[None, :], a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, STABLE, HALF)
    tl.store(out + at, ((lateral.to(tl.float32) - mu) * v + mu).to(out.dtype.element_ty), mask=mask)


@triton.jit
def combine_backward(
    z, x, a, mean, rstd, g_out, g_z, g_x, g_a, R: tl.constexpr, F,
    STABLE: tl.constexpr, BR: tl.constexpr, BF: tl.constexpr,
):  # fmt: skip
    HALF: tl.constexpr = x.dtype.element_ty == tl.bfloat16
    s = tl.program_id(1).to(tl.int64)
    cols, _rows, cmask, mask, at = _block(s, R, F, BR, BF)
    u = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
    lateral = tl.load(z + at, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(g_out + at, mask=mask, other=0.0).to(tl.float32)
    a1, a2, a3, a4, a5, a6, a7, a8, a9, a10 = load_a(a + s * 10 * F, F, cols[None, :], cmask[None, :])
    b2, b7 = a1 * a2, a6 * a7
    m = tl.load(mean + s * F + cols, mask=cmask, other=0.0)[None, :]
    r = tl.load(rstd + s * F + cols, mask=cmask, other=0.0)[None, :]
    u = u * r - m * r
    gz, g_mu, g_v, g_1, g_2, h1, h2 = combine_gradients(
        lateral, u, g, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, STABLE, HALF
    )
    tl.store(g_z + at, gz.to(g_z.dtype.element_ty), mask=mask)
    gu = through_u(g_mu, g_v, g_1, g_2, a4, a9, b2, b7)
    t1, t2, t3, t4, t5 = tl.sum(g_mu * h1, 0), tl.sum(g_1 * u, 0), tl.sum(g_1, 0), tl.sum(g_mu * u, 0), tl.sum(g_mu, 0)
    t6, t7, t8, t9, t10 = tl.sum(g_v * h2, 0), tl.sum(g_2 * u, 0), tl.sum(g_2, 0), tl.sum(g_v * u, 0), tl.sum(g_v, 0)
    store_a(a + s * 10 * F, g_a + s * 10 * F, F, cols, cmask, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10)
    mean_g = through_u(t5[None, :], t10[None, :], t3[None, :], t8[None, :], a4, a9, b2, b7) / R
    mean_gu = through_u(t4[None, :], t9[None, :], t2[None, :], t7[None, :], a4, a9, b2, b7) / R
    tl.store(g_x + at, (r * (gu - mean_g - u * mean_gu)).to(g_x.dtype.element_ty), mask=mask)
