"""Compile an update and, on one GPU, record it as a CUDA graph. Where compiling fails, training continues without.

Recording takes a second, compiling up to a minute: a short run is recorded as it is.

Everything an update needs beyond the weights is a function of the step counter, so a recorded one can be replayed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from taggernet.errors import is_out_of_memory
from taggernet.fast.fx_passes import compiler_options
from taggernet.training.failures import in_short
from taggernet.training.precision import keep_compiled_code


@runtime_checkable
class Capturable(Protocol):
    """An update as it is seen from here."""

    def once(self) -> None:
        """Make one update, by in-place changes of ``tensors`` alone."""

    def tensors(self) -> list[Tensor]: ...

    def compile(self, options: dict[str, Any] | None, *, cost_alone: bool = False) -> None:
        """Let ``once`` use torch.compile, with these options for the cost."""

    def use_eager(self) -> None:
        """Let ``once`` run uncompiled."""


def rehearse(
    update: Capturable, device: torch.device, *, compiled: bool = True, distributed: bool = False
) -> Callable[[], None]:
    """Compile an update by making some that are then undone. Returns what makes one: on one GPU, a graph's replay."""
    keep_compiled_code()
    one_gpu = device.type == "cuda" and not distributed
    before = [(tensor, tensor.detach().clone()) for tensor in update.tensors()]
    try:
        if compiled:  # on a CPU batch and Adam would gain nothing, and take up to 18 s
            torch.compiler.reset()  # it refuses a ninth version of a function, and every run's is another
            update.compile(compiler_options() if device.type == "cuda" else None, cost_alone=device.type == "cpu")
        _warm_up(update.once, one_gpu)
    except Exception as problem:
        if is_out_of_memory(problem) or not compiled:
            raise
        failure = f"the update could not be compiled ({in_short(problem)})"
        if distributed:  # some processes may be past the point where this one failed
            raise ValueError(f"{failure}: give --compile no") from problem
        warnings.warn(f"{failure}: going on uncompiled, with the same result but slower", stacklevel=3)
        update.use_eager()
        _warm_up(update.once, one_gpu)
    once = _capture(update.once) if one_gpu else update.once
    with torch.no_grad():
        for tensor, value in before:
            tensor.copy_(value)
    return once


def _warm_up(once: Callable[[], None], one_gpu: bool) -> None:
    """Compile, and let CUDA allocate what a capture must not."""
    if not one_gpu:
        once()
        return
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(stream):
            for _ in range(3):
                once()
    finally:
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()


def _capture(once: Callable[[], None]) -> Callable[[], None]:
    """The replay of one update as a CUDA graph. A capture that fails leaves the stream in no state to continue from."""
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            once()
    except Exception as problem:
        if is_out_of_memory(problem):
            raise
        failure = f"the update could not be captured as a CUDA graph ({in_short(problem)})"
        raise ValueError(f"{failure}: give --compile no") from problem
    return graph.replay
