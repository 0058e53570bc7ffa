"""The Ladder network of Rasmus et al. 2015 in full, as a semi-supervised classifier: the FC Ladder baseline.

# S seeds (optional) · L labelled and U unlabelled rows · N elements · D digits · level l = 0 (input) .. top

    clean path   z_l = norm(h_{l-1} W_l),            h_l = relu(z_l + b_l),  top: softmax(c (z + b))
    noisy path   z~_l = norm(h~_{l-1} W_l) + noise,  h~_l likewise,  z~_0 = h~_0 = x + noise
    decoder      u = norm(h~_top) at the top, norm(z^_{l+1} V_l) below,  z^_l = g(z~_l, u)
    cost         cross-entropy of the noisy path on labelled rows
                 + sum_l lambda_l mean |z_l - norm_clean(z^_l)|^2 on unlabelled rows, the mean over rows and features

norm_clean is the clean path's own normalisation of that level, mean and standard deviation, applied to the estimate
(level 0, which has none, is compared as it is). ``normalise_estimates=False`` leaves it out; the public code calls
the two "bugfix" and "no", and the first is its default and the paper's algorithm. Gradients reach the weights through
the clean path as well.

Labelled rows, unlabelled rows on the noisy path and unlabelled rows on the clean path are three parts with
statistics of their own; they share each level's product. Labelled rows have no denoising cost of their own: they are
among the unlabelled ones.

Departures from Rasmus et al.: predictions use the exact moments over all training scenes (classifiers.py), where
the public code averages those of labelled batches; two digits share the target.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from paper.baselines.classifiers import FullyConnected, class_cost
from taggernet.nets.ladder import Combinator
from taggernet.nets.linear import Linear
from taggernet.nets.norm import BatchNorm
from taggernet.rng import Key


def default_lambdas(levels: int) -> tuple[float, ...]:
    """The paper's for few labels: 1000 at the input, 10 at the first level, 0.1 above."""
    return (1000.0, 10.0, *[0.1] * (levels - 1))


class LadderClassifier(FullyConnected):
    """The widths are those of the input, the hidden levels and the classes; ``lambdas`` has one entry for each."""

    def __init__(
        self,
        widths: Sequence[int],
        input_noise: float = 0.3,
        layer_noise: float = 0.3,
        lambdas: Sequence[float] | None = None,
        normalise_estimates: bool = True,
    ) -> None:
        super().__init__(widths, input_noise, layer_noise)
        weights = tuple(default_lambdas(self.levels) if lambdas is None else lambdas)
        if len(weights) != len(widths) or min(weights) < 0:
            raise ValueError(
                f"lambdas={weights} was given for widths {tuple(widths)}: "
                f"give {len(widths)} weights, from the input up, none negative"
            )
        self.lambdas: tuple[float | Tensor, ...] = weights
        """Weights of the levels' costs from the input up; a tensor (S,) where seeds differ."""
        self.normalise_estimates = normalise_estimates
        self.norm = BatchNorm()
        self.decoder = nn.ModuleList(Linear(high, low) for low, high in itertools.pairwise(widths))
        self.combine = nn.ModuleList(Combinator(width, "plain") for width in widths)

    def costs(
        self,
        x: Float[Tensor, "*S L N"],
        classes: Int[Tensor, "*S L D"],
        unlabelled: Float[Tensor, "*S U N"],
        noise: Key,
    ) -> tuple[Float[Tensor, "*S"], Float[Tensor, "*S"]]:
        """The class cost of the noisy path and the denoising costs, weighted and summed over levels; per seed."""
        labelled, noisy, clean = self.encode([x, unlabelled, unlabelled], [noise.fold(0), noise.fold(1)])
        classification = class_cost(labelled.log_p, classes)
        denoising = torch.zeros_like(classification)
        for level, estimate in self.decode(noisy.z, noisy.log_p.exp()).items():
            if level and self.normalise_estimates:
                estimate = clean.moments[level - 1].normalise(estimate)
            apart = (clean.z[level] - estimate).square().mean((-2, -1))
            denoising = denoising + self.lambdas[level] * apart
        return classification, denoising

    def decode(self, z: Sequence[Tensor], top: Tensor) -> dict[int, Tensor]:
        """The estimates z^_l from noisy z~_l and h~_top, down to the lowest level whose cost counts."""
        counts = [isinstance(weight, Tensor) or weight > 0 for weight in self.lambdas]
        lowest = counts.index(True) if any(counts) else self.levels + 1
        estimates: dict[int, Tensor] = {}
        vertical = top
        for level in range(self.levels, lowest - 1, -1):
            combinator = self.combine[level]
            assert isinstance(combinator, Combinator)
            estimates[level] = combinator.denoise(self.norm, z[level], vertical, half=False)
            if level > lowest:
                vertical = self.decoder[level - 1](estimates[level])
        return estimates
