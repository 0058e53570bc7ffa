"""Freezing BatchNorm: statistics of a set of scenes, for every place that normalises and for every iteration.

# S seeds (optional) · T iterations · F features

All scenes go through the loop as one batch, and every norm keeps the mean and variance that it used. The statistics
are therefore self-consistent: on these scenes the frozen model computes what BatchNorm computes on all of them at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from taggernet.nets.norm import BatchNorm


def batch_norms(model: nn.Module) -> list[BatchNorm]:
    return [module for module in model.modules() if isinstance(module, BatchNorm)]


def check_freezable(mapping: object) -> None:
    """A mapping whose statistics can be frozen says ``iteration`` to its norms, each of which serves one place."""
    if not isinstance(mapping, nn.Module) or "iteration" not in inspect.signature(mapping.forward).parameters:
        raise ValueError(
            f"{type(mapping).__name__} takes no argument 'iteration', so nothing can be frozen for each iteration: "
            "write its forward like that of taggernet.nets.MLPMapping"
        )
    norms = batch_norms(mapping)
    if not norms:
        raise ValueError("this model has no BatchNorm: its results depend on no other scene, so nothing is to be frozen")
    if any(norm.features is None for norm in norms):
        raise ValueError(
            f"{type(mapping).__name__} has a BatchNorm without its number of features: give features=... to each"
        )


def reserve(mapping: nn.Module, iterations: int) -> None:
    """Make room for frozen statistics, to be loaded."""
    check_freezable(mapping)
    for norm in batch_norms(mapping):
        assert norm.features is not None
        norm.mean = torch.zeros(iterations, 1, norm.features)
        norm.variance = torch.ones(iterations, 1, norm.features)


def freeze(mapping: nn.Module, loop: Iterable[object]) -> None:
    """Freeze every norm with the statistics of what it is given in each step of a loop over all scenes."""
    norms = batch_norms(mapping)
    found: dict[nn.Module, list[tuple[Tensor, Tensor]]] = {norm: [] for norm in norms}
    before = [norm.kernels for norm in norms]

    def keep(norm: nn.Module, given: tuple[Tensor]) -> None:
        assert isinstance(norm, BatchNorm)
        found[norm].append(norm.centred(given[0])[1:])

    hooks = [norm.register_forward_pre_hook(keep) for norm in norms]
    try:
        for norm in norms:
            norm.kernels = "off"  # a fused kernel would pass the norm by
        for _ in loop:
            pass
    finally:
        for norm, hook, kernels in zip(norms, hooks, before, strict=True):
            hook.remove()
            norm.kernels = kernels
    for norm in norms:
        norm.mean, norm.variance = (torch.stack(parts) for parts in zip(*found[norm], strict=True))
