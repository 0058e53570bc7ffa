"""Device functions that the Triton kernels share: the combinator with its gradients, and the activation.

The combinator's sigmoids are computed as sigmoid(x) = (1 + tanh(x / 2)) / 2; ``load_a`` folds the factors in.
"""

from __future__ import annotations

import os

import torch
import triton
import triton.language as tl

FAST = tl.constexpr(torch.version.cuda is not None and os.environ.get("TRITON_INTERPRET") != "1")
"""Whether NVIDIA's own instructions for tanh x (good to 2^-11), 2^x and 1/x (good to 2^-22) may be used."""
TWICE_LOG2E = tl.constexpr(2.8853900817779268)


@triton.jit
def tanh(t, HALF: tl.constexpr):
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
def gates(u, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, STABLE: tl.constexpr, HALF: tl.constexpr):
    """mu(u), v(u) and the two tanh inside them, for parameters as ``load_a`` gives them."""
    t1 = tanh(a2 * u + a3, HALF)
    t2 = tanh(a7 * u + a8, HALF)
    mu = a1 * t1 + (a4 * u + a5)
    v = a6 * t2 + (a9 * u + a10)
    if STABLE:
        v = 0.5 + 0.5 * tanh(0.5 * v, HALF)
    return mu, v, t1, t2


@triton.jit
def combine_gradients(z, u, g, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, STABLE: tl.constexpr, HALF: tl.constexpr):
    """What all gradients of (z - mu) v + mu are made of: that of z, and those of mu, v and the insides of tanh.

    The last two lack their factors a1 and a6, which are the same for all rows.
    """
    mu, v, t1, t2 = gates(u, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, STABLE, HALF)
    g_z = g * v
    g_mu = g - g_z
    g_v = g * (z - mu)
    if STABLE:
        g_v = g_v * (v - v * v)
    return g_z, g_mu, g_v, g_mu * (1.0 - t1 * t1), g_v * (1.0 - t2 * t2), t1, t2


@triton.jit
def through_u(g_mu, g_v, g_1, g_2, a4, a9, b2, b7):
    """The gradient of u, or a sum of them, from those of ``combine_gradients``, or their sums."""
    return g_mu * a4 + g_1 * b2 + g_v * a9 + g_2 * b7


@triton.jit
def store_activated(
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


@triton.jit
def load_a(a, F, cols, cmask):
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
def store_a(a, g_a, F, cols, cmask, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10):
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
