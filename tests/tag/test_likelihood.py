"""Likelihoods beyond their formulas: extremes, precision, gradients of what training differentiates."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from taggernet.tag import BernoulliGroups, GaussianGroups, Likelihood

BINARY: list[Any] = [BernoulliGroups(0.2), BernoulliGroups(0.0), BernoulliGroups(0.2, "probabilities")]
REAL: list[Any] = [
    GaussianGroups(0.2, delta, variance)
    for delta in ("eq4", "algorithm", "exact")
    for variance in ("v+sigma2", "reference")
]


def outputs(likelihood: Likelihood, x: Tensor, z: Tensor, m: Tensor, v: Tensor) -> dict[str, Tensor]:
    return {
        "delta_z": likelihood.delta_z(x, z, m, v),
        "likelihood_ratio": likelihood.likelihood_ratio(x, z, v),
        "cost": likelihood.cost(x, z, m, v),
    }


def check_finite(likelihood: Likelihood, x: Tensor, z: Tensor, m: Tensor, v: Tensor) -> None:
    """Values and gradients of all three quantities; each sum carries weights so that nothing cancels."""
    leaves = [t.clone().requires_grad_() for t in (z, m, v)]
    for name, value in outputs(likelihood, x, *leaves).items():
        assert torch.isfinite(value).all(), name
        weights = torch.linspace(0.5, 1.5, value.numel()).reshape(value.shape).to(value.dtype)
        gradients = torch.autograd.grad((value * weights).sum(), leaves, allow_unused=True)
        for wrt, gradient in zip(("z", "m", "v"), gradients, strict=True):
            assert gradient is None or torch.isfinite(gradient).all(), f"d {name} / d {wrt}"
    check_ratio(likelihood, x, z, v)


def check_ratio(likelihood: Likelihood, x: Tensor, z: Tensor, v: Tensor) -> None:
    ratio = likelihood.likelihood_ratio(x, z, v)
    torch.testing.assert_close(ratio.sum(-2), torch.ones_like(ratio.sum(-2)), rtol=0, atol=1e-4)


# Masks at which training arrives: certain, undecided, and all but certain.
MASKS = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1 / 3, 1 / 3, 1 / 3], [1 - 1e-7, 1e-7, 0.0]]).T


@pytest.mark.parametrize("likelihood", BINARY)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_binary_extremes_are_finite(likelihood: Likelihood, dtype: torch.dtype) -> None:
    m = MASKS.to(dtype)[None]
    for clean in (0.0, 1.0):
        x = torch.full((1, 1, 4), clean)
        for first in (0.0, 1.0, 0.5):
            for others in (0.0, 1.0):
                z = torch.full((1, 3, 4), others, dtype=dtype)
                z[:, 0] = first
                check_finite(likelihood, x, z, m, torch.ones(1, 1, 1))


@pytest.mark.parametrize("likelihood", REAL)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("v", [1e-8, 1e-4, 1.0, 1e8])
def test_real_extremes_are_finite(likelihood: Likelihood, dtype: torch.dtype, v: float) -> None:
    m = MASKS.to(dtype)[None]
    x = torch.zeros(1, 1, 4)
    for far in (0.0, 1.0, -1e4, 1e4):
        z = torch.zeros(1, 3, 4, dtype=dtype)
        z[:, 0] = far
        check_finite(likelihood, x, z, m, torch.full((1, 1, 1), v))
        check_finite(likelihood, x, torch.full_like(z, far), m, torch.full((1, 1, 1), v))


@pytest.mark.parametrize("likelihood", BINARY + REAL)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_extremes_in_half_precision_are_finite(likelihood: Likelihood, dtype: torch.dtype) -> None:
    """Values alone: a gradient of 1e5 does not fit in float16, and no half mask is differentiated."""
    m = (MASKS * 0.99).to(dtype)[None]
    for near, far in ((0.0, 1.0), (1.0, 0.0), (0.5, 0.5)):
        z = torch.full((1, 3, 4), near, dtype=dtype)
        z[:, 0] = far
        for value in (0.0, 1.0):
            x = torch.full((1, 1, 4), value)
            for name, quantity in outputs(likelihood, x, z, m, torch.full((1, 1, 1), 1e-4)).items():
                assert torch.isfinite(quantity).all(), name
            check_ratio(likelihood, x, z, torch.ones(1, 1, 1))


def test_exact_delta_z_of_a_certain_but_wrong_mask_has_a_finite_gradient() -> None:
    """m is 0 in float32 for the groups that explain x~; training goes back through m's softmax."""
    m_pre = torch.tensor([200.0, 0.0, 0.0]).reshape(1, 3, 1).requires_grad_()
    z = torch.tensor([100.0, 0.1, -0.1]).reshape(1, 3, 1)
    groups = GaussianGroups(0.02, "exact")
    delta_z = groups.delta_z(torch.zeros(1, 1, 1), z, torch.softmax(m_pre, 1), torch.tensor(1e-3))
    (gradient,) = torch.autograd.grad((delta_z * torch.tensor([[[1.0], [2.0], [3.0]]])).sum(), m_pre)
    assert torch.isfinite(delta_z).all()
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("rival", [0.0, -10.0, -40.0])
def test_exact_delta_z_has_autograds_gradient_for_small_masks(rival: float) -> None:
    """The oracle never leaves log space: log m is a log_softmax. Masks down to e^-40."""
    m_pre = torch.tensor([0.0, rival, -3.0], dtype=torch.float64).reshape(1, 3, 1).requires_grad_()
    z = torch.tensor([1.0, 0.1, -0.4], dtype=torch.float64).reshape(1, 3, 1)
    x, v, sigma = torch.zeros(1, 1, 1, dtype=torch.float64), torch.tensor(0.01, dtype=torch.float64), 0.05
    log_joint = torch.log_softmax(m_pre, 1) - 0.5 * (x - z) ** 2 / (v + sigma**2)
    expected = torch.softmax(log_joint, 1) * (x - z) / (v + sigma**2)
    delta_z = GaussianGroups(sigma, "exact").delta_z(x, z, torch.softmax(m_pre, 1), v)
    torch.testing.assert_close(delta_z, expected, rtol=1e-2, atol=1e-12)
    weights = torch.tensor([[[1.0], [2.0], [3.0]]], dtype=torch.float64)
    gradients = [torch.autograd.grad((value * weights).sum(), m_pre)[0] for value in (delta_z, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-2, atol=1e-12)


@pytest.mark.parametrize("likelihood", BINARY + REAL)
@given(seed=st.integers(0, 2**31), sharpness=st.floats(0, 30))
@settings(max_examples=15)
def test_float32_agrees_with_float64(likelihood: Likelihood, seed: int, sharpness: float) -> None:
    random = torch.Generator().manual_seed(seed)
    z = torch.randn(2, 3, 4, generator=random, dtype=torch.float64)
    m = torch.softmax(sharpness * torch.randn(2, 3, 4, generator=random, dtype=torch.float64), 1)
    x = torch.randn(2, 1, 4, generator=random, dtype=torch.float64)
    v = torch.rand(1, 1, 1, generator=random, dtype=torch.float64) + 0.1
    if isinstance(likelihood, BernoulliGroups):
        x, z = (x > 0).double(), torch.sigmoid(4 * z)
    wide = outputs(likelihood, x, z, m, v)
    single = outputs(likelihood, x.float(), z.float(), m.float(), v.float())
    for name, value in wide.items():
        assert value.dtype == torch.float64
        assert single[name].dtype == torch.float32
        # m below float32's smallest number is 0 there; the cost's floor of 1e-5 hides that, delta z shrinks.
        torch.testing.assert_close(
            single[name].double(), value, rtol=2e-4, atol=2e-5, msg=lambda s, n=name: f"{n}: {s}"
        )


@pytest.mark.parametrize("likelihood", [BernoulliGroups(0.2), GaussianGroups(0.2, "exact")])
def test_half_precision_inputs_are_computed_in_float32(likelihood: Likelihood) -> None:
    torch.manual_seed(0)
    z, m, x = torch.rand(2, 3, 4).half(), torch.softmax(torch.randn(2, 3, 4), 1).half(), torch.ones(2, 1, 4)
    v = torch.ones(1, 1, 1)
    for name, value in outputs(likelihood, x, z, m, v).items():
        assert value.dtype == torch.float32, name
        torch.testing.assert_close(value, outputs(likelihood, x, z.float(), m.float(), v)[name], rtol=1e-3, atol=1e-3)
    assert likelihood.mean(z).dtype == torch.float32


@pytest.mark.parametrize("likelihood", BINARY + REAL)
@given(seed=st.integers(0, 2**31), groups=st.integers(1, 6))
@settings(max_examples=15)
def test_permuting_groups_permutes_every_quantity(likelihood: Likelihood, seed: int, groups: int) -> None:
    random = torch.Generator().manual_seed(seed)
    z = torch.rand(2, groups, 4, generator=random)
    m = torch.softmax(torch.randn(2, groups, 4, generator=random), 1)
    x = (torch.rand(2, 1, 4, generator=random) > 0.5).float()
    order = torch.randperm(groups, generator=random)
    v = torch.ones(1, 1, 1)
    straight = outputs(likelihood, x, z, m, v)
    permuted = outputs(likelihood, x, z[:, order], m[:, order], v)
    torch.testing.assert_close(straight["delta_z"][:, order], permuted["delta_z"])
    torch.testing.assert_close(straight["likelihood_ratio"][:, order], permuted["likelihood_ratio"])
    torch.testing.assert_close(straight["cost"], permuted["cost"])


@given(z=st.floats(0, 1), beta=st.floats(0, 0.49))
def test_binary_cost_is_a_distribution(z: float, beta: float) -> None:
    """exp(-cost) of the two values of x sums to one, at the clip as well."""
    groups = BernoulliGroups(beta)
    zs, ones = torch.full((1, 1, 1), z, dtype=torch.float64), torch.ones(1, 1, 1, dtype=torch.float64)
    total = sum(torch.exp(-groups.cost(x, zs, ones)) for x in (ones, 0 * ones))
    assert float(total) == pytest.approx(1.0, abs=1e-12)
    assert groups.cost(ones, 0 * ones, ones).item() == pytest.approx(-math.log(1e-4))


def test_real_cost_is_a_density() -> None:
    """exp(-cost) integrates to one plus K times the mask floor; the constant 0.5 log(2 pi) is in it."""
    x = torch.linspace(-20, 20, 20001, dtype=torch.float64).reshape(1, 1, -1)
    z = torch.tensor([-1.0, 0.0, 2.0], dtype=torch.float64).reshape(1, 3, 1).expand(1, 3, x.shape[-1])
    m = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64).reshape(1, 3, 1).expand_as(z)
    v = torch.tensor(0.7, dtype=torch.float64)
    area = torch.trapezoid(torch.exp(-GaussianGroups().cost(x, z, m, v)), x[0])
    assert area.item() == pytest.approx(1 + 3e-5, abs=1e-9)


def test_the_cost_finds_the_variance() -> None:
    """With one group at the mean, the v of least cost is the variance of the data."""
    torch.manual_seed(0)
    x = 0.3 * torch.randn(1, 1, 20000, dtype=torch.float64)
    z, m = torch.zeros_like(x), torch.ones_like(x)
    v = x.square().mean().requires_grad_()
    (gradient,) = torch.autograd.grad(GaussianGroups().cost(x, z, m, v).mean(), v)
    assert abs(gradient.item()) < 1e-9


def test_feedback_is_logits_or_probabilities() -> None:
    z_pre = torch.randn(1, 2, 3)
    z = torch.sigmoid(z_pre)
    assert torch.equal(BernoulliGroups(0.2).fed_back(z_pre, z), z_pre)
    assert torch.equal(BernoulliGroups(0.2, "probabilities").fed_back(z_pre, z), z)
    assert torch.equal(BernoulliGroups(0.2).mean(z_pre), z)
    assert torch.equal(GaussianGroups().fed_back(z_pre, z_pre), z_pre)
    assert torch.equal(GaussianGroups().mean(z_pre), z_pre)


def test_protocol() -> None:
    assert isinstance(BernoulliGroups(), Likelihood)
    assert isinstance(GaussianGroups(), Likelihood)
