"""What a group says about the input: q(x|g_k), its corrupted twin, the mixture, delta z and L(m).

# S seeds (optional) · B batch · K groups · N elements
# x, x~ (*S, B, 1, N) · z, m (*S, B, K, N) · v broadcasts to them

Departures from the paper's text, each an option or listed in docs/deviations.md:
- delta z for real inputs is Eq. 4 by default; ``algorithm`` and ``exact`` are the pseudocode's and autograd's.
- L(m) uses v + sigma^2 as the paper says; ``reference`` is the public code's sigma^2 + v^2.
- The cost's mixture is clipped as in the public code: 1e-4 on the Bernoulli mean, 1e-5 added to m.

All arithmetic here is float32 or wider, whatever the mapping computes in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

Elements = Float[Tensor, "*S B K N"]
Input = Float[Tensor, "*S B 1 N"]


@runtime_checkable
class Likelihood(Protocol):
    """What the loop needs to know about the groups' distribution."""

    @property
    def binary(self) -> bool: ...

    def mean(self, z_pre: Tensor) -> Tensor:
        """z, the expected value of the input, from the mapping's output."""
        ...

    def fed_back(self, z_pre: Tensor, z: Tensor) -> Tensor:
        """What the mapping sees of its own last z."""
        ...

    def delta_z(self, x_tilde: Tensor, z: Tensor, m: Tensor, v: Tensor) -> Tensor: ...

    def likelihood_ratio(self, x_tilde: Tensor, z: Tensor, v: Tensor) -> Tensor: ...

    def cost(self, x: Tensor, z: Tensor, m: Tensor, v: Tensor) -> Tensor: ...


def wide(tensor: Tensor) -> Tensor:
    """At least float32: half precision has neither the range nor the digits for a log-likelihood."""
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()


@dataclass(frozen=True)
class BernoulliGroups:
    """Binary inputs: q(x=1|g_k) = z_k; corruption flips a bit with probability beta."""

    beta: float | Tensor = 0.2
    """Bit-flip probability that delta z and L(m) assume; one, or one for each seed (S, 1, 1, 1)."""
    feedback: Literal["logits", "probabilities"] = "logits"
    """Which form of z the mapping sees after the first iteration."""
    clip: float = 1e-4
    """The mixture mean is squeezed into [clip, 1 - clip] before the logarithm."""

    @property
    def binary(self) -> bool:
        return True

    def mean(self, z_pre: Elements) -> Elements:
        return torch.sigmoid(wide(z_pre))

    def fed_back(self, z_pre: Elements, z: Elements) -> Elements:
        return z_pre if self.feedback == "logits" else z

    def corrupted_mean(self, z: Elements) -> Elements:
        """xi_k = q(x~=1|g_k) = (1 - 2 beta) z_k + beta."""
        return wide(z) * (1 - 2 * self.beta) + self.beta

    def corrupted_likelihood(self, x_tilde: Input, z: Elements) -> Elements:
        """z~_k = q(x~|g_k), kept off 0 and 1 by ``clip`` so that beta = 0 is safe."""
        xi = self.corrupted_mean(z) * (1 - 2 * self.clip) + self.clip
        return x_tilde * xi + (1 - x_tilde) * (1 - xi)

    def delta_z(self, x_tilde: Input, z: Elements, m: Elements, v: Tensor | None = None) -> Elements:
        """(1 - 2 beta) m_k / (sum_h xi_h m_h - 1 + x~): the gradient of log q(x~) in z_k."""
        xi = (self.corrupted_mean(z) * m).sum(-2, keepdim=True)
        denominator = xi - 1 + x_tilde
        # Its sign is x~'s; only beta = 0 together with a certain and wrong z brings it to 0.
        safe = torch.where(x_tilde > 0.5, denominator.clamp(min=self.clip), denominator.clamp(max=-self.clip))
        return (1 - 2 * self.beta) * m / safe

    def likelihood_ratio(self, x_tilde: Input, z: Elements, v: Tensor | None = None) -> Elements:
        """L(m_k) = z~_k / sum_h z~_h."""
        likelihood = self.corrupted_likelihood(x_tilde, z)
        return likelihood / likelihood.sum(-2, keepdim=True)

    def mixture_mean(self, z: Elements, m: Elements) -> Input:
        """q(x=1) = sum_k m_k z_k (Eq. 2)."""
        return (m * z).sum(-2, keepdim=True)

    def cost(self, x: Input, z: Elements, m: Elements, v: Tensor | None = None) -> Float[Tensor, "*S B N"]:
        """-log q(x) per element, in nats. A mixture of Bernoullis is the Bernoulli of the mixed mean."""
        p = self.mixture_mean(wide(z), wide(m)) * (1 - 2 * self.clip) + self.clip
        return -(x * torch.log(p) + (1 - x) * torch.log1p(-p)).squeeze(-2)


@dataclass(frozen=True)
class GaussianGroups:
    """Real inputs: q(x|g_k) = N(x; z_k, v) with one learned v; corruption adds N(0, sigma^2)."""

    sigma: float | Tensor = 0.2
    """Noise level that L(m) and delta z assume; one, or one for each seed (S, 1, 1, 1)."""
    delta: Literal["eq4", "algorithm", "exact"] = "eq4"
    """delta z: Eq. 4, the pseudocode's, or the exact gradient of log q(x~)."""
    ratio_variance: Literal["v+sigma2", "reference"] = "v+sigma2"
    """The variance inside L(m): the paper's v + sigma^2 or the public code's sigma^2 + v^2."""
    mask_floor: float = 1e-5
    """Added to m inside the cost's logarithm, so that a mask of 0 stays finite."""
    posterior_floor: float = 1e-20
    """The same for ``exact``: too small to change a posterior, and float32 holds its inverse with room to spare."""

    @property
    def binary(self) -> bool:
        return False

    def mean(self, z_pre: Elements) -> Elements:
        return wide(z_pre)

    def fed_back(self, z_pre: Elements, z: Elements) -> Elements:
        return z

    def corrupted_variance(self, v: Tensor) -> Tensor:
        return v + self.sigma**2

    def corrupted_log_likelihood(self, x_tilde: Input, z: Elements, variance: Tensor) -> Elements:
        """log z~_k = log N(x~; z_k, variance)."""
        return -0.5 * (torch.log(2 * math.pi * variance) + (x_tilde - wide(z)) ** 2 / variance)

    def delta_z(self, x_tilde: Input, z: Elements, m: Elements, v: Tensor) -> Elements:
        residual = x_tilde - wide(z)
        if self.delta == "eq4":
            return m * residual
        variance = self.corrupted_variance(v)
        log_likelihood = self.corrupted_log_likelihood(x_tilde, z, variance)
        if self.delta == "algorithm":
            return residual * m * torch.exp(log_likelihood)
        posterior = torch.softmax(torch.log(wide(m) + self.posterior_floor) + log_likelihood, dim=-2)
        return posterior * residual / variance

    def likelihood_ratio(self, x_tilde: Input, z: Elements, v: Tensor) -> Elements:
        """L(m_k) = z~_k / sum_h z~_h; the common factor of the densities cancels."""
        reference = self.ratio_variance == "reference"
        variance = self.sigma**2 + v**2 if reference else self.corrupted_variance(v)
        return torch.softmax(-0.5 * (x_tilde - wide(z)) ** 2 / variance, dim=-2)

    def cost(self, x: Input, z: Elements, m: Elements, v: Tensor) -> Float[Tensor, "*S B N"]:
        """-log sum_k m_k N(x; z_k, v) per element, in nats (Eq. 1 and 2)."""
        log_joint = torch.log(wide(m) + self.mask_floor) - 0.5 * (
            math.log(2 * math.pi) + torch.log(v) + (x - wide(z)) ** 2 / v
        )
        return -torch.logsumexp(log_joint, dim=-2)
