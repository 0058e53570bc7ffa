"""One test per equation of the paper, named after it, against numpy loops or autograd.

The second half is a naive transcription of the paper's two algorithms, example by example and group by group,
in numpy and double precision, Ladder included. It shares no code with the package.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from taggernet.nets.ladder import LadderMapping
from taggernet.rng import Key
from taggernet.tag import BernoulliGroups, BitFlip, GaussianGroups, GaussianNoise, State, run, start, step
from taggernet.tag.grouping import features
from taggernet.tagger import Tagger, TaggerConfig

B, K, N = 3, 4, 5
BETA, SIGMA = 0.2, 0.3
V = torch.tensor(0.4, dtype=torch.float64)
Vector = NDArray[np.float64]


def random_state(binary: bool, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """x~ (B, 1, N), z and m (B, K, N) in double precision."""
    random = torch.Generator().manual_seed(seed)
    z = torch.randn(B, K, N, generator=random, dtype=torch.float64)
    m = torch.softmax(torch.randn(B, K, N, generator=random, dtype=torch.float64), dim=1)
    x = torch.randn(B, 1, N, generator=random, dtype=torch.float64)
    return ((x > 0).double(), torch.sigmoid(z), m) if binary else (x, z, m)


def normal_density(x: float, mean: float, variance: float) -> float:
    return math.exp(-((x - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def elementwise(function: Callable[[int, int], float]) -> Tensor:
    """function(b, j) for every example and element."""
    return torch.tensor([[function(b, j) for j in range(N)] for b in range(B)], dtype=torch.float64)


def groupwise(function: Callable[[int, int, int], float]) -> Tensor:
    """function(b, k, j) for every example, group and element."""
    values = [[[function(b, k, j) for j in range(N)] for k in range(K)] for b in range(B)]
    return torch.tensor(values, dtype=torch.float64)


# --- the main text ---------------------------------------------------------------------------------------


def test_eq1_cost_is_the_negative_log_likelihood_of_every_iteration() -> None:
    """C(x) = -sum_i log q_i(x); ours is the mean over iterations and elements, which orders models alike."""
    config = TaggerConfig(shape=(N,), kind="real", widths=(6, 4), noise=SIGMA, v_start=float(V), norm="layer")
    torch.manual_seed(0)
    model = Tagger(config)
    x = torch.randn(B, N)
    states = list(model.iterate(x, model.start(B, K, Key.of(0)), 3))
    assert len({tuple(s.z.flatten().tolist()) for s in states}) == 3
    for state in states:
        z, m = state.z.detach().double(), state.m.detach().double()
        expected = elementwise(
            lambda b, j, z=z, m=m: (
                -math.log(  # type: ignore[misc]
                    sum(
                        float(m[b, k, j]) * normal_density(float(x[b, j]), float(z[b, k, j]), float(V))
                        for k in range(K)
                    )
                )
            )
        )
        # The floor of 1e-5 under every mask moves the cost by no more than about K times that, relative to q.
        torch.testing.assert_close(model.cost(x, state).double(), expected, rtol=1e-3, atol=1e-3)


def test_eq2_mixture_of_gaussians() -> None:
    x, z, m = random_state(binary=False)
    expected = elementwise(
        lambda b, j: sum(
            float(m[b, k, j]) * normal_density(float(x[b, 0, j]), float(z[b, k, j]), float(V)) for k in range(K)
        )
    )
    groups = GaussianGroups(SIGMA, mask_floor=0.0)
    torch.testing.assert_close(torch.exp(-groups.cost(x, z, m, V)), expected, rtol=1e-12, atol=0)
    # The default floor under the masks is worth at most floor * sum_k q(x|g_k).
    ceiling = 1e-5 * K / math.sqrt(2 * math.pi * float(V))
    floored = torch.exp(-GaussianGroups(SIGMA).cost(x, z, m, V))
    assert ((floored - expected > 0) & (floored - expected <= ceiling)).all()


def test_eq2_mixture_of_bernoullis() -> None:
    x, z, m = random_state(binary=True)
    expected = elementwise(
        lambda b, j: sum(float(m[b, k, j]) * float(z[b, k, j] if x[b, 0, j] == 1 else 1 - z[b, k, j]) for k in range(K))
    )
    groups = BernoulliGroups(BETA, clip=0.0)
    torch.testing.assert_close(torch.exp(-groups.cost(x, z, m)), expected, rtol=1e-12, atol=0)
    clipped = torch.exp(-BernoulliGroups(BETA).cost(x, z, m))
    torch.testing.assert_close(clipped, expected * (1 - 2e-4) + 1e-4, rtol=1e-12, atol=0)


@pytest.mark.parametrize("kind", ["binary", "real"])
def test_eq3_masks_are_non_negative_and_sum_to_one(kind: Literal["binary", "real"]) -> None:
    mapping, _ = random_ladder(N, (6, 5, 4), "batch", "plain")
    with torch.no_grad():
        mapping.m_scale.fill_(30.0)
    model = Tagger(TaggerConfig(shape=(N,), kind=kind), mapping)
    state = model.start(B, K, Key.of(1))
    x = (torch.rand(B, N) > 0.5).float()
    for current in (state, *model.iterate(x, state, 4)):
        assert (current.m >= 0).all()
        torch.testing.assert_close(current.m.sum(-2), torch.ones(B, N), rtol=0, atol=1e-6)


def test_eq4_delta_z() -> None:
    x, z, m = random_state(binary=False)
    expected = groupwise(lambda b, k, j: float(m[b, k, j]) * float(x[b, 0, j] - z[b, k, j]))
    torch.testing.assert_close(GaussianGroups(SIGMA).delta_z(x, z, m, V), expected, rtol=1e-12, atol=1e-14)


def test_eq4_is_proportional_to_the_gradient_when_groups_agree() -> None:
    """Where all groups predict the same, Eq. 4 is the exact gradient times the variance."""
    x, z, m = random_state(binary=False)
    z = z[:, :1].expand(-1, K, -1)
    exact = GaussianGroups(SIGMA, "exact").delta_z(x, z, m, V)
    torch.testing.assert_close(GaussianGroups(SIGMA).delta_z(x, z, m, V), exact * (V + SIGMA**2))


@pytest.mark.parametrize("binary", [True, False])
def test_likelihood_ratio(binary: bool) -> None:
    """L(m_k) = q(x~|g_k) / sum_h q(x~|g_h): sums to one over the groups and does not depend on m."""
    x, z, _ = random_state(binary)

    def likelihood(b: int, k: int, j: int) -> float:
        if not binary:
            return normal_density(float(x[b, 0, j]), float(z[b, k, j]), float(V) + SIGMA**2)
        xi = BETA * (1 - float(z[b, k, j])) + (1 - BETA) * float(z[b, k, j])
        return xi if x[b, 0, j] == 1 else 1 - xi

    groups = BernoulliGroups(BETA, clip=0.0) if binary else GaussianGroups(SIGMA)
    ratio = groups.likelihood_ratio(x, z, V)
    expected = groupwise(lambda b, k, j: likelihood(b, k, j) / sum(likelihood(b, h, j) for h in range(K)))
    torch.testing.assert_close(ratio, expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(ratio.sum(1), torch.ones(B, N, dtype=torch.float64))


# --- appendix: input, group assignments, predicted inputs --------------------------------------------------


def test_bit_flip_noise() -> None:
    x = (Key.of(0).uniform(200, 500) > 0.7).float()
    x_tilde = BitFlip(BETA)(x, Key.of(1))
    flipped = x_tilde != x
    assert set(x_tilde.unique().tolist()) == {0.0, 1.0}
    # 100,000 draws: four standard errors are 0.005; the same for zeros as for ones.
    assert flipped.float().mean().item() == pytest.approx(BETA, abs=0.005)
    assert flipped[x == 1].float().mean().item() == pytest.approx(BETA, abs=0.01)
    assert torch.equal(BitFlip(0.0)(x, Key.of(1)), x)


def test_gaussian_noise() -> None:
    x = Key.of(0).uniform(100, 500)
    noise = (GaussianNoise(SIGMA)(x, Key.of(1)) - x).double().flatten().numpy()
    assert stats.kstest(noise / SIGMA, "norm").pvalue > 0.01
    assert abs(np.corrcoef(noise, x.flatten().numpy())[0, 1]) < 0.02


def test_mask_initialisation() -> None:
    """m' is standard normal, m its softmax over the groups; differences of log m show m'."""
    state = start(100, K, torch.full((200,), 0.26), Key.of(3))
    expected = torch.exp(state.m_pre) / torch.exp(state.m_pre).sum(1, keepdim=True)
    torch.testing.assert_close(state.m, expected)
    assert stats.kstest(state.m_pre.flatten().double().numpy(), "norm").pvalue > 0.01
    difference = (torch.log(state.m[:, 0]) - torch.log(state.m[:, 1])).double() / math.sqrt(2)
    assert stats.kstest(difference.flatten().numpy(), "norm").pvalue > 0.01


def test_z_initialisation() -> None:
    """Every group starts at the expectation of the data, here one per element."""
    mean = torch.linspace(0, 1, N)
    state = start(B, K, mean, Key.of(3))
    assert torch.equal(state.z, mean.expand(B, K, N))
    assert torch.equal(state.fed, state.z)


def test_z_tilde_binary() -> None:
    """q(x~|g_k), by the sum over the two clean values that can lie behind x~."""
    x, z, _ = random_state(binary=True)

    def summed(b: int, k: int, j: int) -> float:
        total = 0.0
        for clean in (0.0, 1.0):
            prior = float(z[b, k, j]) if clean == 1 else 1 - float(z[b, k, j])
            total += prior * (1 - BETA if clean == x[b, 0, j] else BETA)
        return total

    groups = BernoulliGroups(BETA, clip=0.0)
    torch.testing.assert_close(groups.corrupted_likelihood(x, z), groupwise(summed), rtol=1e-12, atol=0)
    ones = torch.ones_like(x)
    torch.testing.assert_close(groups.corrupted_mean(z), groups.corrupted_likelihood(ones, z))


def test_z_tilde_continuous() -> None:
    """q(x~|g_k) = N(x~; z_k, v + sigma^2), by integrating the clean value out."""
    x, z, _ = random_state(binary=False)
    groups = GaussianGroups(SIGMA)
    grid = np.linspace(-12, 12, 4001)
    density = torch.exp(groups.corrupted_log_likelihood(x, z, groups.corrupted_variance(V)))

    def integral(b: int, k: int, j: int) -> float:
        clean = stats.norm.pdf(grid, float(z[b, k, j]), math.sqrt(float(V)))
        noise = stats.norm.pdf(float(x[b, 0, j]), grid, SIGMA)
        return float(np.trapezoid(clean * noise, grid))

    torch.testing.assert_close(density, groupwise(integral), rtol=1e-8, atol=1e-12)


# --- appendix: modelling error ---------------------------------------------------------------------------


def gradient_of_log_mixture(x: Tensor, z: Tensor, m: Tensor, binary: bool) -> Tensor:
    """d log(sum_h m_h q(x~|g_h)) / dz by autograd, the densities written out here."""
    z = z.clone().requires_grad_()
    if binary:
        one = z * (1 - BETA) + (1 - z) * BETA
        density = torch.where(x == 1, one, 1 - one)
    else:
        density = torch.exp(torch.distributions.Normal(z, torch.sqrt(V + SIGMA**2)).log_prob(x))
    torch.log((m * density).sum(1)).sum().backward()
    assert z.grad is not None
    return z.grad


@pytest.mark.parametrize("seed", range(3))
def test_delta_z_exact_is_the_gradient(seed: int) -> None:
    x, z, m = random_state(False, seed)
    expected = gradient_of_log_mixture(x, z, m, binary=False)
    torch.testing.assert_close(GaussianGroups(SIGMA, "exact").delta_z(x, z, m, V), expected, rtol=1e-10, atol=1e-14)


def test_delta_z_algorithm() -> None:
    """The pseudocode's (x~ - z) m z~: the exact gradient without its normaliser and constant."""
    x, z, m = random_state(binary=False)
    variance = float(V) + SIGMA**2
    expected = groupwise(
        lambda b, k, j: (
            float(x[b, 0, j] - z[b, k, j])
            * float(m[b, k, j])
            * normal_density(float(x[b, 0, j]), float(z[b, k, j]), variance)
        )
    )
    algorithm = GaussianGroups(SIGMA, "algorithm").delta_z(x, z, m, V)
    torch.testing.assert_close(algorithm, expected, rtol=1e-12, atol=0)
    exact = GaussianGroups(SIGMA, "exact").delta_z(x, z, m, V)
    ratio = algorithm / exact
    torch.testing.assert_close(ratio, ratio[:, :1].expand_as(ratio))


@pytest.mark.parametrize("seed", range(3))
def test_delta_z_binary_is_the_gradient(seed: int) -> None:
    x, z, m = random_state(True, seed)
    delta = BernoulliGroups(BETA).delta_z(x, z, m)
    torch.testing.assert_close(delta, gradient_of_log_mixture(x, z, m, binary=True), rtol=1e-10, atol=1e-14)
    # The paper's closing formula is the same up to its dropped factor.
    xi = BETA + (1 - 2 * BETA) * z
    torch.testing.assert_close(delta, (1 - 2 * BETA) * m / ((xi * m).sum(1, keepdim=True) - 1 + x))


def test_likelihood_ratio_of_the_public_code() -> None:
    x, z, _ = random_state(binary=False)
    variance = SIGMA**2 + float(V) ** 2
    densities = groupwise(lambda b, k, j: normal_density(float(x[b, 0, j]), float(z[b, k, j]), variance))
    ratio = GaussianGroups(SIGMA, ratio_variance="reference").likelihood_ratio(x, z, V)
    torch.testing.assert_close(ratio, densities / densities.sum(1, keepdim=True))


# --- the two algorithms, naively -------------------------------------------------------------------------

Rows = list[Vector]
Weights = dict[str, Vector]


def sigmoid(a: Vector) -> Vector:
    return 1 / (1 + np.exp(-a))


def normalised(rows: Rows, norm: str) -> Rows:
    """Each feature over all rows of the batch, or each row over its features."""
    if norm == "layer":
        return [(row - row.mean()) / math.sqrt(row.var() + 1e-10) for row in rows]
    out = [row.copy() for row in rows]
    for feature in range(len(rows[0])):
        column = np.array([row[feature] for row in rows])
        for row, value in zip(out, column, strict=True):
            row[feature] = (value - column.mean()) / math.sqrt(column.var() + 1e-10)
    return out


def denoise(z: Vector, u: Vector, a: Vector, stable: bool) -> Vector:
    """Rasmus et al. 2015, Eq. 2, feature by feature."""
    out = np.empty_like(z)
    for i in range(len(z)):
        c = a[:, 0, i]
        mu = c[0] / (1 + math.exp(-(c[1] * u[i] + c[2]))) + c[3] * u[i] + c[4]
        v = c[5] / (1 + math.exp(-(c[6] * u[i] + c[7]))) + c[8] * u[i] + c[9]
        if stable:
            v = 1 / (1 + math.exp(-v))
        out[i] = v * z[i] + (1 - v) * mu
    return out


def ladder(rows: Rows, w: Weights, levels: int, norm: str, stable: bool) -> Rows:
    h, lateral = rows, [rows]
    for level in range(levels):
        z = normalised([row @ w[f"ladder.encoder.{level}.weight"] for row in h], norm)
        lateral.append(z)
        bias = w[f"ladder.bias.{level}"][0]
        if level < levels - 1:
            h = [np.maximum(row + bias, 0) for row in z]
        else:
            scaled = [np.exp(w["ladder.top_scale"][0] * (row + bias)) for row in z]
            h = [row / row.sum() for row in scaled]
    u = normalised(h, norm)
    for level in range(levels, -1, -1):
        a = w[f"ladder.combine.{level}.a"]
        estimate = [denoise(z, row, a, stable) for z, row in zip(lateral[level], u, strict=True)]
        if level:
            u = normalised([row @ w[f"ladder.decoder.{level - 1}.weight"] for row in estimate], norm)
    return estimate


def mapping(inputs: Rows, w: Weights, elements: int, levels: int, norm: str, stable: bool) -> tuple[Rows, Rows]:
    """[z, m] <- W_u Ladder(f(W_h [z, m, delta z, L(m)])), normalisations included."""
    h = [np.maximum(row + w["bias_h"][0], 0) for row in normalised([row @ w["W_h.weight"] for row in inputs], norm)]
    u = [row @ w["W_u.weight"] for row in ladder(h, w, levels, norm, stable)]
    z = normalised([row[:elements] for row in u], norm)
    m = normalised([row[elements:] for row in u], norm)
    return [row * w["z_scale"][0] + w["z_bias"][0] for row in z], [row * w["m_scale"][0, 0] for row in m]


def softmax_over_groups(rows: Rows) -> Rows:
    return [np.exp(row) / sum(np.exp(other) for other in rows) for row in rows]


def algorithm(
    x: Vector,
    x_tilde: Vector,
    m_start: Vector,
    mean: float,
    w: Weights,
    iterations: int,
    options: dict[str, Any],
) -> tuple[Vector, Vector, list[float]]:
    """Both pseudocodes: z, m after the last iteration and the cost of each iteration, in nats per element.

    Examples run side by side only because BatchNorm looks at all of them.
    """
    batch, groups, elements = m_start.shape
    binary, beta, sigma, v = options["binary"], options["beta"], options["sigma"], options["v"]
    m = [[m_start[b, k] for k in range(groups)] for b in range(batch)]
    z = [[np.full(elements, mean) for _ in range(groups)] for _ in range(batch)]
    fed = z
    costs = []
    for _ in range(iterations):
        inputs: Rows = []
        for b in range(batch):
            if binary:
                xi = [z_k * (1 - 2 * beta) + beta for z_k in z[b]]
                z_tilde = [x_tilde[b] * xi_k + (1 - x_tilde[b]) * (1 - xi_k) for xi_k in xi]
                mixed = sum(xi_k * m_k for xi_k, m_k in zip(xi, m[b], strict=True))
                delta = [(1 - 2 * beta) * m_k / (mixed - 1 + x_tilde[b]) for m_k in m[b]]
            else:
                z_tilde = [stats.norm.pdf(x_tilde[b], z_k, math.sqrt(v + sigma**2)) for z_k in z[b]]
                delta = [(x_tilde[b] - z_k) * m_k for z_k, m_k in zip(z[b], m[b], strict=True)]
                if options["delta"] == "algorithm":
                    delta = [d * likelihood for d, likelihood in zip(delta, z_tilde, strict=True)]
            for k in range(groups):
                inputs.append(np.concatenate([fed[b][k], m[b][k], delta[k], z_tilde[k] / sum(z_tilde)]))
        z_pre, m_pre = mapping(inputs, w, elements, options["levels"], options["norm"], not binary)
        m = [softmax_over_groups(m_pre[b * groups : (b + 1) * groups]) for b in range(batch)]
        fed = [z_pre[b * groups : (b + 1) * groups] for b in range(batch)]
        z = [[sigmoid(row) for row in rows] if binary else rows for rows in fed]
        if options.get("feedback") == "probabilities":
            fed = z
        total = 0.0
        for b in range(batch):
            for j in range(elements):
                q = 0.0
                for k in range(groups):
                    z_kj = float(z[b][k][j])
                    if binary:
                        q += float(m[b][k][j]) * (z_kj if x[b, j] == 1 else 1 - z_kj)
                    else:
                        q += float(m[b][k][j]) * normal_density(float(x[b, j]), z_kj, v)
                total -= math.log(q)
        costs.append(total / (batch * elements))
    return np.array(z), np.array(m), costs


def random_ladder(elements: int, widths: tuple[int, ...], norm: Any, gate: Any) -> tuple[LadderMapping, Weights]:
    """Every parameter random, so that none can be left out unnoticed."""
    torch.manual_seed(7)
    module = LadderMapping(elements, widths, norm, gate)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if not name.endswith("weight"):
                parameter.add_(0.3 * torch.randn_like(parameter))
    return module, {name: value.double().numpy() for name, value in module.state_dict().items()}


@pytest.mark.parametrize("norm", ["batch", "layer"])
@pytest.mark.parametrize("feedback", ["logits", "probabilities"])
def test_algorithm_binary(norm: str, feedback: Any) -> None:
    elements, widths = 7, (9, 8, 6)
    module, w = random_ladder(elements, widths, norm, "plain")
    random = np.random.default_rng(0)
    x = random.integers(0, 2, (6, elements)).astype(np.float64)
    x_tilde = np.where(random.random(x.shape) < BETA, 1 - x, x)
    state = start(6, 3, torch.full((elements,), 0.26), Key.of(0))
    options = {
        "binary": True, "beta": BETA, "sigma": None, "v": None,
        "levels": 2, "norm": norm, "feedback": feedback,
    }  # fmt: skip
    z, m, costs = algorithm(x, x_tilde, state.m.double().numpy(), 0.26, w, 3, options)
    likelihood = BernoulliGroups(BETA, feedback, clip=0.0)
    ours = list(run(module, likelihood, torch.tensor(x_tilde).float(), state, torch.ones(1), 3))
    compare(ours, likelihood, torch.tensor(x).float(), torch.ones(1), z, m, costs)


@pytest.mark.parametrize("norm", ["batch", "layer"])
@pytest.mark.parametrize("delta", ["eq4", "algorithm"])
def test_algorithm_continuous(norm: str, delta: Any) -> None:
    elements, widths = 7, (9, 8, 6)
    module, w = random_ladder(elements, widths, norm, "stable")
    random = np.random.default_rng(0)
    x = random.standard_normal((6, elements))
    x_tilde = x + SIGMA * random.standard_normal(x.shape)
    state = start(6, 3, torch.full((elements,), 0.5), Key.of(0))
    options = {
        "binary": False, "beta": None, "sigma": SIGMA, "v": 0.4, "levels": 2, "norm": norm, "delta": delta,
    }  # fmt: skip
    z, m, costs = algorithm(x, x_tilde, state.m.double().numpy(), 0.5, w, 3, options)
    likelihood = GaussianGroups(SIGMA, delta, mask_floor=0.0)
    v = torch.full((1, 1, 1), 0.4)
    ours = list(run(module, likelihood, torch.tensor(x_tilde).float(), state, v, 3))
    compare(ours, likelihood, torch.tensor(x).float(), v, z, m, costs)


def compare(ours: list[State], likelihood: Any, x: Tensor, v: Tensor, z: Vector, m: Vector, costs: list[float]) -> None:
    """Three iterations of float32 against double precision."""
    np.testing.assert_allclose(ours[-1].z.detach().numpy(), z, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(ours[-1].m.detach().numpy(), m, rtol=1e-3, atol=1e-3)
    our_costs = [likelihood.cost(x.unsqueeze(-2), s.z, s.m, v).mean().item() for s in ours]
    np.testing.assert_allclose(our_costs, costs, rtol=1e-3)
    assert np.ptp(z, axis=1).max() > 0.1  # the groups differ, so that the comparison says something


# --- section 2.1, in words -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["binary", "real"])
def test_clean_input_never_reaches_the_network(kind: Literal["binary", "real"]) -> None:
    """With x~ held fixed, another x changes the cost and nothing else: not one input, z or m."""
    mapping, _ = random_ladder(N, (6, 5, 4), "batch", "plain")
    model = Tagger(TaggerConfig(shape=(N,), kind=kind), mapping)
    seen: list[Tensor] = []
    mapping.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach().clone()))
    x_tilde = (Key.of(5).uniform(B, N) > 0.5).float()
    outcomes = []
    for x in (x_tilde, 1 - x_tilde):
        x = x.clone().requires_grad_()
        states = list(model.iterate(x_tilde, model.start(B, K, Key.of(1)), 3))
        cost = torch.stack([model.cost(x, state) for state in states])
        outcomes.append((states, cost))
        for state in states:
            assert (
                torch.autograd.grad(state.z.sum() + state.m.sum(), x, allow_unused=True, retain_graph=True)[0] is None
            )
        assert torch.autograd.grad(cost.sum(), x)[0].abs().sum() > 0
    (states_1, cost_1), (states_2, cost_2) = outcomes
    assert len(seen) == 6
    assert all(torch.equal(a, b) for a, b in zip(seen[:3], seen[3:], strict=True))
    for one, other in zip(states_1, states_2, strict=True):
        assert torch.equal(one.z, other.z)
        assert torch.equal(one.m, other.m)
    assert not torch.allclose(cost_1, cost_2)


def test_corrupted_input_reaches_the_network() -> None:
    """The other side of the last test: every element of x~ moves the features."""
    model = Tagger(TaggerConfig(shape=(N,), kind="real", widths=(6, 4)))
    state = model.start(B, K, Key.of(0))
    x_tilde = torch.zeros(B, N, requires_grad=True)
    seen = features(model.likelihood, x_tilde, state, model.v)
    (gradient,) = torch.autograd.grad(seen.square().sum(), x_tilde)
    assert gradient.abs().min() > 0


def test_groups_are_symmetric() -> None:
    """Groups share one mapping: starting them in another order gives the same groups in that order."""
    order = torch.tensor([2, 0, 3, 1])
    for norm in ("batch", "layer"):
        module, _ = random_ladder(N, (6, 5, 4), norm, "stable")
        state = start(B, K, torch.full((N,), 0.5), Key.of(0))
        shuffled = State(*(None if part is None else part[:, order] for part in state))
        x, v = torch.randn(B, N), torch.ones(1, 1, 1)
        for likelihood in (GaussianGroups(SIGMA, "exact"), BernoulliGroups(BETA)):
            x_tilde = (x > 0).float() if isinstance(likelihood, BernoulliGroups) else x
            one = list(run(module, likelihood, x_tilde, state, v, 3))[-1]
            other = list(run(module, likelihood, x_tilde, shuffled, v, 3))[-1]
            for a, b in zip(one, other, strict=True):
                torch.testing.assert_close(a[:, order], b, rtol=1e-3, atol=1e-4)
            assert not torch.allclose(one.m, other.m, atol=1e-2)


@pytest.mark.parametrize("kind", ["binary", "real"])
@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_elements_have_no_order(kind: Literal["binary", "real"], norm: str) -> None:
    """Permuting the input's elements and the weights that touch them permutes the output alone."""
    order = torch.tensor([3, 1, 4, 0, 2])
    module, _ = random_ladder(N, (6, 5, 4), norm, "stable")
    permuted, _ = random_ladder(N, (6, 5, 4), norm, "stable")
    with torch.no_grad():
        rows = torch.cat([order + N * block for block in range(4)])
        permuted.W_h.weight.copy_(module.W_h.weight[rows])
        permuted.W_u.weight.copy_(module.W_u.weight[:, rows[: 2 * N]])
        permuted.z_scale.copy_(module.z_scale[:, order])
        permuted.z_bias.copy_(module.z_bias[:, order])
    likelihood = BernoulliGroups(BETA) if kind == "binary" else GaussianGroups(SIGMA)
    x, v = torch.randn(B, N), torch.ones(1, 1, 1)
    x = (x > 0).float() if kind == "binary" else x
    state = start(B, K, torch.full((N,), 0.5), Key.of(0))
    shuffled = State(*(None if part is None else part[..., order] for part in state))
    for _ in range(3):
        state = step(module, likelihood, x, state, v)
        shuffled = step(permuted, likelihood, x[:, order], shuffled, v)
    torch.testing.assert_close(state.z[..., order], shuffled.z, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(state.m[..., order], shuffled.m, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(state.top, shuffled.top, rtol=1e-3, atol=1e-4)


def test_number_of_weights_of_the_shapes_model() -> None:
    """2000-1000-500 on 20 x 20: 9.84 million, counted here by hand."""
    with torch.device("meta"):
        model = Tagger(TaggerConfig(shape=(20, 20), widths=(2000, 1000, 500)))
    products = 1600 * 2000 + 2 * (2000 * 1000 + 1000 * 500) + 2000 * 800
    vectors = 2000 + 1000 + 500 + 500 + 10 * 3500 + 400 + 400 + 1 + 1
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == products + vectors
    assert round(count / 1e6, 2) == 9.84
