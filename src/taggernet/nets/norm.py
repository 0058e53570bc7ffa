"""The two normalisations: over the rows of a batch, or over the features of a row.

# S seeds (optional) · R rows = B x K · F features

Departures: BatchNorm has no running averages, as in the public code: it uses the statistics of the
batch at hand, in evaluation too, so results depend (slightly) on what shares a batch and evaluation
states its batch size. With a single row its output is zero and it carries nothing; LayerNorm has
neither property. Statistics can be frozen instead, for each iteration of the loop (nets/frozen.py).
Neither norm has a learned scale or bias; the layer that follows adds what it needs.

``rectified`` and ``scaled`` are the two things that follow a normalisation; on CUDA a fused kernel computes either in
one pass (``fast.norm_activate``) unless ``use_kernels`` has switched it off. Statistics are float32 or wider whatever
comes in. In a job of several processes BatchNorm's statistics are those of the global batch.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dist_fn
from jaxtyping import Float
from torch import Tensor, nn

from taggernet import fast
from taggernet.config.validate import check_choice
from taggernet.tag.likelihood import wide

NormKind = Literal["batch", "layer"]
Kernels = Literal["auto", "off"]
"""auto: fused kernels where they apply; off: the plain equations alone."""
Rows = Float[Tensor, "*S R F"]
Statistic = Float[Tensor, "*S 1 F"]
"""A mean or a variance per feature."""
Iteration = int | Tensor
"""Of the TAG loop, counted from 1; a tensor with one integer where a graph is exported."""


FARTHEST = 20.0
"""Standard deviations to which frozen norms are clipped. BatchNorm over R rows cannot exceed sqrt(R - 1), which is
this for 100 scenes with K = 4; a loop without such a bound can run away."""


class FrozenNorm(NamedTuple):
    """BatchNorm with the frozen statistics of one iteration: what becomes of a row depends on that row alone."""

    mean: Statistic
    variance: Statistic
    eps: float

    def __call__(self, x: Rows) -> Float[Tensor, "*S R F"]:
        normed = (wide(x) - self.mean) * torch.rsqrt(self.variance + self.eps)
        return normed.clamp(-FARTHEST, FARTHEST)


class BatchNorm(nn.Module):
    """Zero mean and unit variance of every feature over the rows of the (global) batch.

    To freeze statistics, each place that normalises needs a norm of its own, with its number of ``features``.
    """

    mean: Float[Tensor, "*S T 1 F"] | None
    """Frozen, one per iteration; None: those of the batch are used."""
    variance: Float[Tensor, "*S T 1 F"] | None

    def __init__(self, eps: float = 1e-10, features: int | None = None) -> None:
        super().__init__()
        self.eps, self.features = eps, features
        self.register_buffer("mean", None)
        self.register_buffer("variance", None)
        self.kernels: Kernels = "auto"
        self.fusable = type(self) is BatchNorm  # a subclass may compute something else
        self.shared_statistics = False

    def forward(self, x: Rows) -> Float[Tensor, "*S R F"]:
        centred, _, variance = self.centred(x)
        return centred * torch.rsqrt(variance + self.eps)

    def centred(self, x: Rows) -> tuple[Float[Tensor, "*S R F"], Statistic, Statistic]:
        """x without its mean, the mean, and the variance of the batch."""
        x = wide(x)
        mean = self._average(x.mean(-2, keepdim=True))
        centred = x - mean
        return centred, mean, self._average(centred.square().mean(-2, keepdim=True))

    def at(self, iteration: Iteration | None) -> BatchNorm | FrozenNorm:
        """This norm with the statistics frozen for an iteration (beyond the last: the last's); None: of the batch."""
        if iteration is None or self.mean is None or self.variance is None:
            return self
        return FrozenNorm(_of(self.mean, iteration), _of(self.variance, iteration), self.eps)

    def _average(self, statistic: Tensor) -> Tensor:
        """Over processes, each of which holds an equal share of the batch."""
        if not self.shared_statistics:
            return statistic
        total: Tensor = dist_fn.all_reduce(statistic)  # type: ignore[no-untyped-call]
        return total / dist.get_world_size()


def _of(statistic: Float[Tensor, "*S T 1 F"], iteration: Iteration) -> Statistic:
    last = statistic.shape[-3]
    if isinstance(iteration, int):
        return statistic.select(-3, min(iteration, last) - 1)
    return statistic.index_select(-3, iteration.clamp(1, last).reshape(1) - 1).squeeze(-3)


class LayerNorm(nn.Module):
    """Zero mean and unit variance of every row over its features."""

    def __init__(self, eps: float = 1e-10) -> None:
        super().__init__()
        self.eps = eps
        self.kernels: Kernels = "auto"
        self.fusable = type(self) is LayerNorm  # a subclass may compute something else

    def forward(self, x: Rows) -> Float[Tensor, "*S R F"]:
        return nn.functional.layer_norm(wide(x), x.shape[-1:], eps=self.eps)


Norm = BatchNorm | LayerNorm | FrozenNorm


def at_iteration(norm: nn.Module, iteration: Iteration | None) -> Norm:
    """The norm of an iteration of the loop: see ``BatchNorm.at``. LayerNorm is always the same."""
    assert isinstance(norm, BatchNorm | LayerNorm)
    return norm.at(iteration) if isinstance(norm, BatchNorm) else norm


def rectified(norm: Norm, x: Rows, bias: Tensor, lateral: bool = True) -> tuple[Rows, Rows]:
    """z = norm(x) and h = relu(z + bias); z is meaningless where no ``lateral`` connection reads it."""
    if may_fuse(norm, x):
        half = x.dtype == torch.bfloat16
        return fast.norm_activate(
            x, bias, batch=is_batch(norm), relu=True, eps=norm.eps, half=half, keep_normed=lateral
        )
    z = norm(x)
    return z, torch.relu(z + bias)


def scaled(norm: Norm, x: Rows, scale: Tensor, bias: Tensor, lateral: bool = True) -> tuple[Rows, Rows]:
    """z = norm(x) and scale z + bias, both float32 or wider; ``lateral`` as above."""
    if may_fuse(norm, x):
        return fast.norm_activate(
            x, bias, scale, batch=is_batch(norm), relu=False, eps=norm.eps, half=False, keep_normed=lateral
        )
    z = norm(x)
    return z, torch.addcmul(bias, z, scale)


def activated(norm: Norm, x: Rows, bias: Tensor, scale: Tensor | None, lateral: bool = True) -> tuple[Rows, Rows]:
    """z = norm(x) and relu(z + bias), or with a ``scale`` softmax(scale (z + bias)): a level of an encoder."""
    if scale is None:
        return rectified(norm, x, bias, lateral)
    z, pre = scaled(norm, x, scale, scale * bias, lateral)
    return z, torch.softmax(pre, dim=-1)


def is_batch(norm: Norm) -> bool:
    return isinstance(norm, BatchNorm)


def may_fuse(norm: Norm, x: Tensor) -> bool:
    """Whether a fused kernel may take the place of this norm.

    Not where kernels are switched off, not for a subclass, and not with statistics that are frozen or shared between
    processes.
    """
    if isinstance(norm, FrozenNorm) or norm.kernels == "off" or not norm.fusable:
        return False
    if isinstance(norm, BatchNorm) and norm.shared_statistics:
        return False
    return fast.applies(x, batch=is_batch(norm))


def use_kernels(model: nn.Module, kernels: Kernels) -> None:
    """Let all norms of a model use the fused kernels where they apply (auto), or never (off)."""
    check_choice("kernels", kernels, get_args(Kernels))
    for module in model.modules():
        if isinstance(module, BatchNorm | LayerNorm):
            module.kernels = kernels


def make_norm(kind: NormKind, eps: float = 1e-10, features: int | None = None) -> BatchNorm | LayerNorm:
    """``features`` is the width of what is normalised, as in ``BatchNorm``."""
    if kind == "batch":
        return BatchNorm(eps, features)
    if kind == "layer":
        return LayerNorm(eps)
    raise ValueError(f"norm {kind!r} is not known: choose 'batch' or 'layer'")
