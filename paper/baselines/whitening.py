"""Whitening of the input (ZCA), for classifiers: elements lose what any other element says of them on average.

# B rows · N elements

    x -> (x - mean) V diag(1 / sqrt(w + r)) V^T / s,   cov(x) = V diag(w) V^T,   r = ridge * mean(w)

s makes the variance one on average. It is learned from the scenes alone, without labels, and knows nothing of images:
elements in another order come out in that order. Rasmus et al. use it for CIFAR-10.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Whitening(nn.Module):
    """A fixed affine map; its tensors are buffers, the same for all seeds unless they are stacked."""

    mean: Tensor
    matrix: Tensor

    def __init__(self, mean: Float[Tensor, "... N"], matrix: Float[Tensor, "... N N"]) -> None:
        super().__init__()
        self.register_buffer("mean", mean, persistent=False)
        self.register_buffer("matrix", matrix, persistent=False)

    @classmethod
    def of(cls, x: Float[Tensor, "B N"], ridge: float) -> Whitening:
        """The whitening of these rows. Directions with a variance far below ``ridge`` of the mean stay small."""
        if not ridge > 0:
            raise ValueError(f"ridge={ridge} would divide by variances of zero: choose a share of the mean, e.g. 0.1")
        if len(x) < 2:
            raise ValueError(f"{len(x)} row has no covariance: give at least 2")
        rows = x.detach().cpu().double()
        variances, directions = torch.linalg.eigh(torch.cov(rows.T))
        variances = variances.clamp(min=0)
        raised = variances + ridge * variances.mean()
        matrix = directions * raised.rsqrt() @ directions.T
        scale = (variances / raised).mean().sqrt()
        return cls(rows.mean(0).to(x), (matrix / scale).to(x))

    @classmethod
    def stacked(cls, x: Float[Tensor, "B N"], ridges: Sequence[float]) -> Whitening:
        """A whitening of these rows per seed; a ridge of 0 stands for none."""
        elements = x.shape[1]
        alone = {r: cls.of(x, r) if r else cls(torch.zeros(elements).to(x), torch.eye(elements).to(x)) for r in ridges}
        means, matrices = zip(*((alone[ridge].mean, alone[ridge].matrix) for ridge in ridges), strict=True)
        return cls(torch.stack(means).unsqueeze(1), torch.stack(matrices))

    def forward(self, x: Float[Tensor, "*S B N"]) -> Float[Tensor, "*S B N"]:
        return (x.float() - self.mean) @ self.matrix
