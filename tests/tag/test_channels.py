"""Inputs with channels: likelihoods against a brute-force loop, delta z against autograd, C = 1 as before."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from taggernet.rng import Key
from taggernet.tag import BernoulliGroups, CategoricalGroups, CategoryFlip, GaussianGroups, Likelihood, Units
from taggernet.tag.grouping import Grouping, State, features
from taggernet.tag.likelihood import sum_channels, to_channels
from taggernet.tag.start import start

K, P, C, BETA, SIGMA, V = 3, 4, 3, 0.2, 0.4, 0.3
LIKELIHOODS: list[Any] = [
    BernoulliGroups(BETA, channels=C),
    CategoricalGroups(C, BETA),
    *(GaussianGroups(SIGMA, delta, channels=C) for delta in ("eq4", "algorithm", "exact")),
]


def estimates(kind: type, seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x or x~ (1, 1, N), z (1, K, N), m (1, K, P) and v, float64."""
    torch.manual_seed(seed)
    m = torch.softmax(torch.randn(1, K, P, dtype=torch.float64), 1)
    z = torch.rand(1, K, P, C, dtype=torch.float64)
    x = torch.randn(1, 1, P, C, dtype=torch.float64)
    if kind is BernoulliGroups:
        x = (x > 0).double()
    if kind is CategoricalGroups:
        z, x = z / z.sum(-1, keepdim=True), torch.eye(C, dtype=torch.float64)[x.argmax(-1)]
    return x.flatten(-2), z.flatten(-2), m, torch.tensor(V, dtype=torch.float64)


def density(likelihood: Any, x: float, z: float, corrupted: bool) -> float:
    """q(x | g_k) of one number; of a category, its factor z^x."""
    if isinstance(likelihood, GaussianGroups):
        variance = V + SIGMA**2 * corrupted
        return math.exp(-((x - z) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
    if isinstance(likelihood, BernoulliGroups):
        p = (1 - BETA) * z + BETA * (1 - z) if corrupted else z
        return p if x else 1 - p
    p = (1 - BETA) * z + BETA / (C - 1) * (1 - z) if corrupted else z
    return p**x


def by_position(likelihood: Any, x: Tensor, z: Tensor, corrupted: bool) -> Tensor:
    """q(x_p | g_kp) (K, P): the product over channels, number by number."""
    numbers, of_groups = x.reshape(P, C).tolist(), z.reshape(K, P, C).tolist()
    found = torch.ones(K, P, dtype=torch.float64)
    for k, p, c in itertools.product(range(K), range(P), range(C)):
        found[k, p] *= density(likelihood, numbers[p][c], of_groups[k][p][c], corrupted)
    return found


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_cost_and_likelihood_ratio_against_a_loop_over_positions(likelihood: Any) -> None:
    x, z, m, v = estimates(type(likelihood))
    cost = -torch.log((m[0] * by_position(likelihood, x, z, corrupted=False)).sum(0))
    torch.testing.assert_close(likelihood.cost(x, z, m, v)[0], cost, rtol=2e-3, atol=1e-4)
    clean = by_position(likelihood, x, z, corrupted=True)
    torch.testing.assert_close(likelihood.likelihood_ratio(x, z, v)[0], clean / clean.sum(0), rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("likelihood", [LIKELIHOODS[0], LIKELIHOODS[1], LIKELIHOODS[4]])
def test_delta_z_is_the_gradient_of_the_log_likelihood(likelihood: Any) -> None:
    x, z, m, v = estimates(type(likelihood))
    z.requires_grad_()
    if isinstance(likelihood, GaussianGroups):
        each = torch.distributions.Normal(z, (v + SIGMA**2).sqrt()).log_prob(x)
    elif isinstance(likelihood, BernoulliGroups):
        each = torch.distributions.Bernoulli(z * (1 - BETA) + (1 - z) * BETA).log_prob(x.expand_as(z))
    else:
        each = x * torch.log(z * (1 - BETA) + (1 - z) * BETA / (C - 1))
    evidence = torch.logsumexp(torch.log(m) + each.reshape(1, K, P, C).sum(-1), 1).sum()
    (gradient,) = torch.autograd.grad(evidence, z)
    torch.testing.assert_close(likelihood.delta_z(x, z.detach(), m, v), gradient, rtol=2e-3, atol=1e-4)


def test_eq4_weights_all_channels_of_a_position_with_its_mask() -> None:
    x, z, m, v = estimates(GaussianGroups)
    delta = LIKELIHOODS[2].delta_z(x, z, m, v).reshape(K, P, C)
    for k, p, c in itertools.product(range(K), range(P), range(C)):
        expected = m[0, k, p] * (x[0, 0, p * C + c] - z[0, k, p * C + c])
        torch.testing.assert_close(delta[k, p, c], expected)


def test_the_pseudocodes_delta_z_uses_the_likelihood_of_the_position() -> None:
    x, z, m, v = estimates(GaussianGroups)
    weight = m[0] * by_position(LIKELIHOODS[3], x, z, corrupted=True)
    expected = weight[..., None] * (x - z).reshape(K, P, C)
    torch.testing.assert_close(LIKELIHOODS[3].delta_z(x, z, m, v).reshape(K, P, C), expected)


@pytest.mark.parametrize("beta", [0.0, 0.2])
def test_the_general_binary_case_equals_the_papers_with_one_channel(beta: float) -> None:
    """A channel that every group predicts alike says nothing of the groups: what is left is the paper's case."""
    paper, general = BernoulliGroups(beta), BernoulliGroups(beta, channels=2)
    x, z, m, v = estimates(BernoulliGroups)
    x, z = x[..., :P], z[..., :P] * 0.8 + 0.1
    same = torch.full_like(z, 0.5)
    pair_x, pair_z = (torch.stack(pair, -1).flatten(-2) for pair in ((x, torch.ones_like(x)), (z, same)))
    delta = general.delta_z(pair_x, pair_z, m, v).reshape(1, K, P, 2)[..., 0]
    torch.testing.assert_close(delta, paper.delta_z(x, z, m, v), rtol=1e-2, atol=1e-3)
    torch.testing.assert_close(general.likelihood_ratio(pair_x, pair_z, v), paper.likelihood_ratio(x, z, v))
    more = general.cost(pair_x, pair_z, m, v) - math.log(2)
    torch.testing.assert_close(more, paper.cost(x, z, m, v), rtol=1e-6, atol=1e-6)


def test_two_states_are_bits() -> None:
    x, z, m, _ = estimates(BernoulliGroups)
    bits, p = x[..., :P], z[..., :P]
    hot_x, hot_z = (torch.stack([1 - one, one], -1).flatten(-2) for one in (bits, p))
    two, bit = CategoricalGroups(2, BETA), BernoulliGroups(BETA)
    torch.testing.assert_close(two.likelihood_ratio(hot_x, hot_z), bit.likelihood_ratio(bits, p))
    torch.testing.assert_close(two.cost(hot_x, hot_z, m), bit.cost(bits, p, m))
    # The gradient in q(x=1) is that in the second state's probability less that in the first's.
    by_state = two.delta_z(hot_x, hot_z, m).reshape(1, K, P, 2)
    torch.testing.assert_close(by_state[..., 1] - by_state[..., 0], bit.delta_z(bits, p, m))


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_extremes_are_finite_with_their_gradients(likelihood: Likelihood) -> None:
    m = torch.tensor([[1.0, 0.0, 1 / 3], [0.0, 1.0, 1 / 3], [0.0, 0.0, 1 / 3]]).reshape(1, 3, 3)
    for hot, far in itertools.product(range(C), (0.0, 1.0)):
        x = torch.eye(C)[hot].repeat(3).reshape(1, 1, -1)
        z = torch.full((1, 3, 3, C), 0.0)
        z[..., 0] = 1.0
        z[:, 0] = z[:, 0].flip(-1) if far else z[:, 0]
        leaves = [t.clone().requires_grad_() for t in (z.flatten(-2), m)]
        for value in (likelihood.delta_z(x, *leaves, torch.tensor(V)), likelihood.cost(x, *leaves, torch.tensor(V))):
            assert torch.isfinite(value).all()
            for gradient in torch.autograd.grad(value.square().sum(), leaves):
                assert torch.isfinite(gradient).all()


def test_categories_are_probabilities() -> None:
    z = CategoricalGroups(C).mean(torch.randn(2, K, P * C).half())
    torch.testing.assert_close(sum_channels(z, C), torch.ones(2, K, P))
    assert z.dtype == torch.float32


def test_category_flips_have_the_stated_rate_and_reach_every_other_state_alike() -> None:
    n = 20_000
    states = torch.arange(C).repeat(n // C + 1)[:n]
    x = torch.eye(C)[states].reshape(10, -1)
    shown = CategoryFlip(C, 0.3)(x, Key.of(0)).reshape(n, C)
    assert (shown.sum(-1) == 1).all()
    turned = (shown.argmax(-1) - states) % C
    rates = torch.bincount(turned, minlength=C) / n
    torch.testing.assert_close(rates, torch.tensor([0.7, 0.15, 0.15]), rtol=0, atol=0.015)


def test_category_noise_belongs_to_a_scene_rather_than_to_a_batch() -> None:
    x = torch.eye(C)[torch.randint(C, (6, P))].flatten(1)
    flip, key = CategoryFlip(C, 0.5), Key.of([1, 2])
    whole = flip.apply(x.expand(2, -1, -1), key)
    torch.testing.assert_close(flip.apply(x[4:].expand(2, -1, -1), key, first=4), whole[:, 4:])
    torch.testing.assert_close(flip.apply(x, Key.of(2)), whole[1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([0.0, 0.0, 0.0], r"one 1 and zeros in the 3 channels of every position, but x holds \(0, 0, 0\): encode"),
        ([1.0, 1.0, 0.0], r"holds \(1, 1, 0\): encode states as numpy.eye\(3\)\[states\], or choose another kind"),
        ([0.5, 0.5, 0.0], r"holds \(0.5, 0.5, 0\)"),
        ([1.0, 0.0], r"2 elements do not divide into positions of 3 channels: check the shape"),
        ([math.nan, 0.0, 1.0], r"1 NaN or infinite values"),
    ],
)
def test_what_is_not_one_hot_is_refused(given: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CategoryFlip(C)(torch.tensor([given]), Key.of(0))


@pytest.mark.parametrize(("channels", "beta"), [(1, 0.1), (3, 0.67), (2, -0.1)])
def test_a_corruption_that_hides_everything_is_refused(channels: int, beta: float) -> None:
    with pytest.raises(ValueError, match=r"at least 2 channels|choose 0 <= beta <"):
        CategoryFlip(channels, beta)


def test_features_are_two_per_element_and_two_per_position() -> None:
    state = start(2, K, torch.full((P * C,), 0.5), Key.of(0), channels=C)
    assert (state.z.shape, state.m.shape) == ((2, K, P * C), (2, K, P))
    rows = features(LIKELIHOODS[2], torch.rand(2, P * C), state, torch.tensor(V))
    assert rows.shape == (2, K, 2 * P * C + 2 * P)


def test_with_one_channel_the_start_is_that_of_the_masks_alone() -> None:
    """The random numbers belong to positions: a colour image and its grey copy start alike."""
    grey, colour = (start(2, K, torch.zeros(P * c), Key.of(3), first=5, channels=c) for c in (1, C))
    assert torch.equal(grey.m, colour.m)


@pytest.mark.parametrize("first", [False, True])
def test_what_has_channels_has_them_where_the_input_had_them(first: bool) -> None:
    torch.manual_seed(0)
    z, m = torch.rand(2, K, P * C), torch.softmax(torch.rand(2, K, P), 1)
    state = State(z, m, z, m)
    out = Grouping((state,), (2, 2), units=Units(1.0, 2.0), channels=C, channels_first=first)
    assert out.masks.shape == (2, K, 2, 2)
    assert out.labels.shape == (2, 2, 2)
    expected = (z.reshape(2, K, 2, 2, C) * 2 + 1).movedim(-1, 2) if first else z.reshape(2, K, 2, 2, C) * 2 + 1
    torch.testing.assert_close(out.reconstructions, expected)
    mixed = (to_channels(m, C) * z).sum(1).reshape(2, 2, 2, C) * 2 + 1
    torch.testing.assert_close(out.denoised, mixed.movedim(-1, 1) if first else mixed)
    assert f"denoised: tensors {(2, C, 2, 2) if first else (2, 2, 2, C)}" in repr(out)
