"""Freezing BatchNorm: statistics of a set of scenes, for every place that normalises and for every iteration.

# S seeds (optional) · T iterations · F features

The scenes go through the loop in batches as large as those of training, with the statistics of the batch, and every
norm keeps the mean of the means and of the variances that it used. Statistics of all scenes as one batch would be
self-consistent, but a model trained with batches of 100 is worse with them, frozen or not (docs/LOG.md): features that
few scenes have vary less within most batches than over all scenes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import Tensor, nn

from taggernet.nets.norm import BatchNorm, Iteration
from taggernet.tag.mapping import Mapped, Mapping


def batch_norms(model: nn.Module) -> list[BatchNorm]:
    return [module for module in model.modules() if isinstance(module, BatchNorm)]


def freezable(mapping: object) -> nn.Module:
    """The mapping, or an error: it must hand ``iteration`` to its norms, each of which serves one place."""
    if not isinstance(mapping, nn.Module) or "iteration" not in inspect.signature(mapping.forward).parameters:
        raise ValueError(
            f"{type(mapping).__name__} takes no argument 'iteration', so nothing can be frozen for each iteration: "
            "write its forward like that of taggernet.nets.MLPMapping"
        )
    norms = batch_norms(mapping)
    if not norms:
        raise ValueError(
            "this model has no BatchNorm: its results depend on no other scene, so nothing is to be frozen"
        )
    if any(norm.features is None for norm in norms):
        raise ValueError(
            f"{type(mapping).__name__} has a BatchNorm without its number of features: give features=... to each"
        )
    return mapping


def in_iteration(mapping: Callable[..., Mapped], iteration: Iteration) -> Mapping:
    """The mapping with the statistics that are frozen for an iteration."""
    return partial(mapping, iteration=iteration)


def reserve(mapping: nn.Module, iterations: int) -> None:
    """Make room for frozen statistics, to be loaded."""
    for norm in batch_norms(mapping):
        assert norm.features is not None
        norm.mean = torch.zeros(iterations, 1, norm.features)
        norm.variance = torch.ones(iterations, 1, norm.features)


def freeze(mapping: nn.Module, loops: Iterable[Iterable[object]], iterations: int) -> None:
    """Freeze every norm with the mean statistics of what it is given in loops over equally large batches."""
    norms = batch_norms(mapping)
    found: dict[nn.Module, list[tuple[Tensor, Tensor]]] = {norm: [] for norm in norms}
    before = [norm.kernels for norm in norms]
    count = 0

    def keep(norm: nn.Module, given: tuple[Tensor]) -> None:
        assert isinstance(norm, BatchNorm)
        found[norm].append(norm.centred(given[0])[1:])

    hooks = [norm.register_forward_pre_hook(keep) for norm in norms]
    try:
        for norm in norms:
            norm.kernels = "off"  # a fused kernel would pass the norm by
        for loop in loops:
            count += 1
            for _ in loop:
                pass
    finally:
        for norm, hook, kernels in zip(norms, hooks, before, strict=True):
            hook.remove()
            norm.kernels = kernels
    if any(len(calls) != count * iterations for calls in found.values()):
        raise ValueError(
            f"{type(mapping).__name__} does not use each BatchNorm once per iteration: give every place that "
            "normalises a norm of its own"
        )
    for norm in norms:
        norm.mean, norm.variance = (
            torch.stack(parts).reshape(count, iterations, 1, -1).mean(0) for parts in zip(*found[norm], strict=True)
        )
