"""What a group says about the input: q(x|g_k), its corrupted twin, the mixture, delta z and L(m).

# S seeds (optional) · B batch · K groups · P positions · C channels · N = P C elements
# x, x~ (*S, B, 1, N) · z (*S, B, K, N) · m (*S, B, K, P) · v broadcasts to them

The channels of a position share its mask: they belong to one group together, and given the group they are independent.
Elements are ordered position by position, the channels of a position side by side. With C = 1, the paper's case, an
element is a position.

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
Positions = Float[Tensor, "*S B K P"]
Input = Float[Tensor, "*S B 1 N"]


@runtime_checkable
class Likelihood(Protocol):
    """What the loop needs to know about the groups' distribution."""

    def mean(self, z_pre: Tensor) -> Tensor:
        """z, the expected value of the input, from the mapping's output."""
        ...

    def fed_back(self, z_pre: Tensor, z: Tensor) -> Tensor:
        """What the mapping sees of its own last z."""
        ...

    def delta_z(self, x_tilde: Tensor, z: Tensor, m: Tensor, v: Tensor) -> Tensor: ...

    def likelihood_ratio(self, x_tilde: Tensor, z: Tensor, v: Tensor) -> Tensor: ...

    def log_evidence(self, x_tilde: Tensor, z: Tensor, v: Tensor) -> Tensor:
        """log q(x~|g_k) of every position."""
        ...

    def cost(self, x: Tensor, z: Tensor, m: Tensor, v: Tensor) -> Tensor: ...


def sum_channels(elements: Float[Tensor, "*D N"], channels: int) -> Float[Tensor, "*D P"]:
    """What belongs to a position: the sum over its channels."""
    return elements if channels == 1 else torch.unflatten(elements, -1, (-1, channels)).sum(-1)


def to_channels(positions: Float[Tensor, "*D P"], channels: int) -> Float[Tensor, "*D N"]:
    """A position's number for each of its channels."""
    if channels == 1:
        return positions
    return positions.unsqueeze(-1).expand(*positions.shape, channels).flatten(-2)


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
    channels: int = 1
    """C, the numbers of a position that share its mask."""
    mask_floor: float = 1e-20
    """C > 1: added to m inside a logarithm, so that a mask of 0 stays finite."""

    def mean(self, z_pre: Elements) -> Elements:
        return torch.sigmoid(wide(z_pre))

    def fed_back(self, z_pre: Elements, z: Elements) -> Elements:
        return z_pre if self.feedback == "logits" else z

    def corrupted_mean(self, z: Elements) -> Elements:
        """xi_k = q(x~=1|g_k) = (1 - 2 beta) z_k + beta."""
        return wide(z) * (1 - 2 * self.beta) + self.beta

    def corrupted_likelihood(self, x_tilde: Input, z: Elements) -> Elements:
        """z~_k = q(x~|g_k) = x~ xi_k + (1 - x~)(1 - xi_k), kept off 0 and 1 by ``clip`` so that beta = 0 is safe.

        It is a line in z_k, so the groups need one operation and the rest is done for x~ alone.
        """
        sign, inside = 2 * x_tilde - 1, 1 - 2 * self.clip
        lowest = self.beta * inside + self.clip  # xi of z = 0
        return torch.addcmul(1 - x_tilde + sign * lowest, wide(z), sign * (inside * (1 - 2 * self.beta)))

    def delta_z(self, x_tilde: Input, z: Elements, m: Positions, v: Tensor | None = None) -> Elements:
        """(1 - 2 beta) m_k / (sum_h xi_h m_h - 1 + x~): the gradient of log q(x~) in z_k."""
        if self.channels > 1:
            return self._delta_z_of_channels(x_tilde, z, m)
        # The denominator has the sign of 2x~ - 1, and its size is q(x~), as masks sum to one. Only beta = 0 together
        # with a certain and wrong z brings it to 0.
        slope = (2 * x_tilde - 1) * (1 - 2 * self.beta)
        surprise = x_tilde * (2 * self.beta - 1) + (1 - self.beta)  # q(x~) where z = 0
        evidence = torch.addcmul(surprise, self.mixture_mean(wide(z), m), slope)
        return m * (slope / evidence.clamp(min=self.clip))

    def _delta_z_of_channels(self, x_tilde: Input, z: Elements, m: Positions) -> Elements:
        """The same for C > 1: the posterior of group k, times the gradient of log z~_k in a channel of z_k."""
        likelihood = self.corrupted_likelihood(x_tilde, z)
        log_joint = torch.log(wide(m) + self.mask_floor) + sum_channels(torch.log(likelihood), self.channels)
        posterior = to_channels(torch.softmax(log_joint, dim=-2), self.channels)
        return (1 - 2 * self.beta) * posterior * (2 * x_tilde - 1) / likelihood

    def likelihood_ratio(self, x_tilde: Input, z: Elements, v: Tensor | None = None) -> Positions:
        """L(m_k) = z~_k / sum_h z~_h, where z~_k of a position is the product over its channels."""
        likelihood = self.corrupted_likelihood(x_tilde, z)
        if self.channels > 1:
            return torch.softmax(sum_channels(torch.log(likelihood), self.channels), dim=-2)
        return likelihood / likelihood.sum(-2, keepdim=True)

    def log_evidence(self, x_tilde: Input, z: Elements, v: Tensor | None = None) -> Positions:
        return sum_channels(torch.log(self.corrupted_likelihood(x_tilde, z)), self.channels)

    def mixture_mean(self, z: Elements, m: Elements) -> Input:
        """q(x=1) = sum_k m_k z_k (Eq. 2)."""
        return (m * z).sum(-2, keepdim=True)

    def cost(self, x: Input, z: Elements, m: Positions, v: Tensor | None = None) -> Float[Tensor, "*S B P"]:
        """-log q(x) per position, in nats. With one channel a mixture of Bernoullis is the Bernoulli of the mixed mean.

        With more it is not: the channels of a position depend on each other through the group they share.
        """
        if self.channels > 1:
            p = wide(z) * (1 - 2 * self.clip) + self.clip
            log_likelihood = sum_channels(x * torch.log(p) + (1 - x) * torch.log1p(-p), self.channels)
            return -torch.logsumexp(torch.log(wide(m) + self.mask_floor) + log_likelihood, dim=-2)
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
    channels: int = 1
    """C, the numbers of a position that share its mask."""

    def mean(self, z_pre: Elements) -> Elements:
        return wide(z_pre)

    def fed_back(self, z_pre: Elements, z: Elements) -> Elements:
        return z

    def corrupted_variance(self, v: Tensor) -> Tensor:
        return v + self.sigma**2

    def corrupted_log_likelihood(self, x_tilde: Input, z: Elements, variance: Tensor) -> Positions:
        """log z~_k = log N(x~; z_k, variance), summed over the channels of a position."""
        of_elements = -0.5 * (torch.log(2 * math.pi * variance) + (x_tilde - wide(z)) ** 2 / variance)
        return sum_channels(of_elements, self.channels)

    def delta_z(self, x_tilde: Input, z: Elements, m: Positions, v: Tensor) -> Elements:
        residual = x_tilde - wide(z)
        if self.delta == "eq4":
            return to_channels(m, self.channels) * residual
        variance = self.corrupted_variance(v)
        log_likelihood = self.corrupted_log_likelihood(x_tilde, z, variance)
        if self.delta == "algorithm":
            if self.channels == 1:
                return residual * m * torch.exp(log_likelihood)
            return residual * to_channels(m * torch.exp(log_likelihood), self.channels)
        posterior = torch.softmax(torch.log(wide(m) + self.posterior_floor) + log_likelihood, dim=-2)
        return to_channels(posterior, self.channels) * residual / variance

    def likelihood_ratio(self, x_tilde: Input, z: Elements, v: Tensor) -> Positions:
        """L(m_k) = z~_k / sum_h z~_h; the common factor of the densities cancels."""
        reference = self.ratio_variance == "reference"
        variance = self.sigma**2 + v**2 if reference else self.corrupted_variance(v)
        return torch.softmax(sum_channels(-0.5 * (x_tilde - wide(z)) ** 2 / variance, self.channels), dim=-2)

    def log_evidence(self, x_tilde: Input, z: Elements, v: Tensor) -> Positions:
        return self.corrupted_log_likelihood(x_tilde, z, self.corrupted_variance(v))

    def cost(self, x: Input, z: Elements, m: Positions, v: Tensor) -> Float[Tensor, "*S B P"]:
        """-log sum_k m_k N(x; z_k, v) per position, in nats (Eq. 1 and 2)."""
        of_elements = 0.5 * (math.log(2 * math.pi) + torch.log(v) + (x - wide(z)) ** 2 / v)
        log_joint = torch.log(wide(m) + self.mask_floor) - sum_channels(of_elements, self.channels)
        return -torch.logsumexp(log_joint, dim=-2)


@dataclass(frozen=True)
class CategoricalGroups:
    """One-hot channels: q(x=c|g_k) = z_kc; corruption turns a state into each other one with probability beta/(C-1).

    With two states this is ``BernoulliGroups``, whose x is the second channel.
    """

    channels: int
    """C, the number of states."""
    beta: float = 0.2
    """Probability of another state that delta z and L(m) assume."""
    feedback: Literal["logits", "probabilities"] = "logits"
    """Which form of z the mapping sees after the first iteration."""
    clip: float = 1e-4
    """The mixture is squeezed into [clip, 1 - (C - 1) clip] before the logarithm."""

    def mean(self, z_pre: Elements) -> Elements:
        return torch.softmax(torch.unflatten(wide(z_pre), -1, (-1, self.channels)), dim=-1).flatten(-2)

    def fed_back(self, z_pre: Elements, z: Elements) -> Elements:
        return z_pre if self.feedback == "logits" else z

    @property
    def _kept(self) -> float:
        """d xi_kc / d z_kc."""
        return 1 - self.beta * self.channels / (self.channels - 1)

    def corrupted_mean(self, z: Elements) -> Elements:
        """xi_kc = q(x~=c|g_k) = (1 - beta) z_kc + beta (1 - z_kc) / (C - 1)."""
        return wide(z) * self._kept + self.beta / (self.channels - 1)

    def corrupted_likelihood(self, x_tilde: Input, z: Elements) -> Positions:
        """z~_k = q(x~|g_k) = sum_c x~_c xi_kc, kept off 0 by ``clip`` so that beta = 0 is safe."""
        xi = self.corrupted_mean(z) * (1 - self.channels * self.clip) + self.clip
        return sum_channels(x_tilde * xi, self.channels)

    def delta_z(self, x_tilde: Input, z: Elements, m: Positions, v: Tensor | None = None) -> Elements:
        """d xi/dz x~_c m_k / sum_h m_h z~_h: the gradient of log q(x~) in z_kc."""
        evidence = (sum_channels(x_tilde * self.corrupted_mean(z), self.channels) * m).sum(-2, keepdim=True)
        posterior = self._kept * m / evidence.clamp(min=self.clip)
        return x_tilde * to_channels(posterior, self.channels)

    def likelihood_ratio(self, x_tilde: Input, z: Elements, v: Tensor | None = None) -> Positions:
        """L(m_k) = z~_k / sum_h z~_h."""
        likelihood = self.corrupted_likelihood(x_tilde, z)
        return likelihood / likelihood.sum(-2, keepdim=True)

    def log_evidence(self, x_tilde: Input, z: Elements, v: Tensor | None = None) -> Positions:
        return torch.log(self.corrupted_likelihood(x_tilde, z))

    def cost(self, x: Input, z: Elements, m: Positions, v: Tensor | None = None) -> Float[Tensor, "*S B P"]:
        """-log q(x) per position, in nats. A mixture of categoricals is the categorical of the mixed probabilities."""
        shown = (sum_channels(x * wide(z), self.channels) * wide(m)).sum(-2)
        return -torch.log(shown * (1 - self.channels * self.clip) + self.clip)
