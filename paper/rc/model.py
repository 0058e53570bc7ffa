"""Reconstruction Clustering (RC; Greff, Srivastava, Schmidhuber 2015): what Table 1b compares Tagger with.

# B batch · K groups · N elements · T iterations · n scenes

One denoising autoencoder is shared by K groups, as in EM: feed gamma_k * x to copy k (the M-step), then make
gamma_k proportional to the probability of x under what copy k reconstructs (the E-step). Nothing decides how
many groups a scene has, so RC has to be told K.

Departures from the RC paper and its public code:
- Adam for a fixed number of epochs, chosen on validation AMI; they use gradient descent, stopped on the
  validation loss.
- The network trained on scenes has the same 500 tanh units and 0.4 noise as the one trained on single shapes;
  their random search took 100 sigmoid units and 0.9 noise there. Ours is stopped early instead, as
  AMI falls with further training.
- The output's bias starts at ``output_bias`` instead of 0.
- 20 iterations; their code runs 10. The metrics after each iteration are in the record.
- The E-step is a softmax of log-likelihoods over log-odds: the same quantity, without clipping.
- Groups are equally probable beforehand; their code can also re-estimate the groups' shares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from paper.rc.autoencoder import DenoisingAutoencoder, SaltAndPepper
from taggernet.config.validate import (
    LARGEST,
    MAX_GROUPS,
    MAX_ITERATIONS,
    Range,
    check_choice,
    check_count,
    check_number,
)
from taggernet.data import Scenes
from taggernet.rng import Key
from taggernet.tag.grouping import Grouping, State, batches, join_histories

EStep = Literal["soft", "hard"]


@dataclass(frozen=True)
class RCConfig:
    """The autoencoder, its training, and the kind of E-step."""

    hidden: int = 500
    """Hidden tanh units."""
    noise: float = 0.4
    """Share of elements that salt-and-pepper noise replaces."""
    output_bias: float = -2.0
    """Log-odds at which every output starts: below the data's, as a copy is shown but a part of the scene."""
    lr: float = 1e-3
    """Adam's learning rate."""
    batch: int = 100
    """Inputs per update."""
    epochs: int = 10
    """Passes over the training set."""
    e_step: EStep = "soft"
    """soft: gamma is the posterior; hard: the most probable group takes the element."""

    def __post_init__(self) -> None:
        for name in ("hidden", "batch", "epochs"):
            check_count(name, getattr(self, name), low=1)
        check_number("lr", self.lr, Range(0, above=True))
        check_number("output_bias", self.output_bias, Range(-LARGEST, LARGEST))
        check_choice("e_step", self.e_step, get_args(EStep))
        SaltAndPepper(self.noise)


def start_gamma(batch: int, groups: int, elements: int, key: Key, first: int = 0) -> Float[Tensor, "B K N"]:
    """Absolute values of standard normals, divided by their sum over the groups."""
    drawn = key.normal(batch, groups, elements, start=first * groups * elements).abs()
    return drawn / drawn.sum(-2, keepdim=True)


def log_likelihood(x: Float[Tensor, "B N"], logits: Float[Tensor, "B K N"]) -> Float[Tensor, "B K N"]:
    """log p(x | copy k) of each element: a Bernoulli given by its log-odds."""
    return F.logsigmoid(torch.where(x.unsqueeze(-2) > 0.5, logits, -logits))


def expectation(log_p: Float[Tensor, "B K N"], kind: EStep = "soft") -> Float[Tensor, "B K N"]:
    """The E-step: each element's share in every group; sums to one over K."""
    if kind == "hard":
        return F.one_hot(log_p.argmax(-2), log_p.shape[-2]).movedim(-1, -2).to(log_p.dtype)
    return torch.softmax(log_p, dim=-2)


class ReconstructionClustering:
    """``fit`` on binary inputs, then ``group`` others of the same size.

    Whether the inputs to ``fit`` show one object each or whole scenes is all that tells the paper's two modes
    apart.
    """

    def __init__(self, config: RCConfig | None = None, device: torch.device | str = "cpu") -> None:
        self.config = config or RCConfig()
        self.device = torch.device(device)
        self.network: DenoisingAutoencoder | None = None

    def fit(
        self, x: Any, seed: int = 0, report: Callable[[int, float], None] | None = None
    ) -> ReconstructionClustering:
        """Train the autoencoder on x: Scenes, or (n, ...) of 0 and 1. Labels are not looked at.

        ``report`` is called every 50 updates with the number done and their mean loss in nats per element.
        """
        config, rows = self.config, self.flatten(x)[0].to(torch.uint8)
        if len(rows) < config.batch:
            raise ValueError(f"x has {len(rows)} inputs, fewer than a batch of {config.batch}: lower batch")
        key = Key.of(seed, self.device).fold("reconstruction clustering")
        network = DenoisingAutoencoder(rows.shape[1], config.hidden).to(self.device)
        network.start(key.fold("weights"), config.output_bias)
        optimiser = torch.optim.Adam(network.parameters(), config.lr, fused=True)
        noise, per_epoch = SaltAndPepper(config.noise), len(rows) // config.batch
        losses: list[Tensor] = []
        for step in range(config.epochs * per_epoch):
            epoch, position = divmod(step, per_epoch)
            if position == 0:
                order = key.fold("order", epoch).permutation(len(rows))
            clean = rows[order[position * config.batch : (position + 1) * config.batch]].float()
            loss = F.binary_cross_entropy_with_logits(network(noise.apply(clean, key.fold("noise", step))), clean)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            losses.append(loss.detach())
            if len(losses) == 50 or step + 1 == config.epochs * per_epoch:
                mean = torch.stack(losses).mean().item()
                losses.clear()
                if not math.isfinite(mean):
                    raise ValueError(f"the loss became {mean} by update {step + 1}: lower lr={config.lr}")
                if report is not None:
                    report(step + 1, mean)
        self.network = network.requires_grad_(False)
        return self

    @torch.no_grad()
    def group(self, x: Any, groups: int = 3, iterations: int = 20, *, seed: int = 0, batch_size: int = 500) -> Grouping:
        """Split each input into groups; ``masks`` are gamma, ``reconstructions`` the copies' outputs.

        x: (B, ...) of 0 and 1, numpy or torch; what comes out is of the same kind, on the same device.
        """
        check_count("groups", groups, low=1, high=MAX_GROUPS)
        check_count("iterations", iterations, low=1, high=MAX_ITERATIONS)
        check_count("batch_size", batch_size, low=1)
        rows, shape = self.flatten(x)
        origin = x.device if isinstance(x, Tensor) else torch.device("cpu")
        histories = [
            [state.to(origin) for state in self.iterate(part, groups, iterations, seed, first)]
            for first, part in batches(rows, batch_size)
        ]
        return Grouping(join_histories(histories), shape, as_numpy=not isinstance(x, Tensor))

    def iterate(
        self, x: Float[Tensor, "B N"], groups: int, iterations: int, seed: int = 0, first: int = 0
    ) -> Iterator[State]:
        """The random start, then the state after each M- and E-step; ``first`` is x's place in the stream."""
        network = self._trained()
        key = Key.of(seed, self.device).fold("gamma")
        gamma = start_gamma(len(x), groups, x.shape[1], key, first)
        nothing = torch.zeros_like(gamma)
        yield State(z=torch.sigmoid(nothing), m=gamma, fed=nothing, m_pre=gamma.clamp(min=1e-30).log())
        for _ in range(iterations):
            logits = network((gamma * x.unsqueeze(-2)).flatten(0, 1)).unflatten(0, (len(x), groups))
            log_p = log_likelihood(x, logits)
            gamma = expectation(log_p, self.config.e_step)
            yield State(z=torch.sigmoid(logits), m=gamma, fed=logits, m_pre=log_p)

    def _trained(self) -> DenoisingAutoencoder:
        if self.network is None:
            raise RuntimeError("this ReconstructionClustering has no network yet: call fit first")
        return self.network

    def flatten(self, x: Any) -> tuple[Float[Tensor, "B N"], tuple[int, ...]]:
        """x as checked rows on our device, and the shape of one input."""
        scenes = Scenes.of(x.x if isinstance(x, Scenes) else x, kind="binary")
        rows = torch.from_numpy(scenes.x.reshape(len(scenes), -1)).to(self.device, torch.float32)
        if self.network is not None and rows.shape[1] != self.network.encode.inputs:
            raise ValueError(
                f"x has {rows.shape[1]} elements per input, but the network was fitted to "
                f"{self.network.encode.inputs}: give inputs of that size, or fit a new one"
            )
        return rows, scenes.shape
