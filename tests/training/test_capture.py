"""Rehearsing an update: compiled, undone, captured on a GPU, and without a compiler where that fails."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from taggernet.training.capture import _capture, rehearse

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


class Counter:
    """An update that counts, in a tensor as it should and in a list that no rehearsal can undo."""

    def __init__(self, device: torch.device = CPU, fails: bool = False) -> None:
        self.count, self.calls, self.fails = torch.zeros(1, device=device), [], fails
        self.mode = "eager"

    def once(self) -> None:
        self.calls.append(self.mode)
        self.count += 1
        if self.mode == "compiled" and self.fails:
            raise RuntimeError("no compiler")

    def tensors(self) -> list[Tensor]:
        return [self.count]

    def compile(self, options: dict[str, Any] | None, *, cost_alone: bool = False) -> None:
        assert (options is None) == cost_alone == (self.count.device == CPU), "the passes are for CUDA"
        self.mode = "compiled"

    def use_eager(self) -> None:
        self.mode = "eager"


def test_a_rehearsal_compiles_and_is_undone() -> None:
    update = Counter()
    assert rehearse(update, CPU, distributed=False) == update.once, "there is no graph without a GPU"
    assert update.calls == ["compiled"]
    assert update.mode == "compiled"
    assert update.count.item() == 0


def test_without_a_compiler_the_run_continues_and_says_so() -> None:
    update = Counter(fails=True)
    with pytest.warns(UserWarning, match=r"could not be compiled \(RuntimeError: no compiler\): going on uncompiled"):
        assert rehearse(update, CPU, distributed=False) == update.once
    assert update.mode == "eager"
    assert update.count.item() == 0


def test_any_number_of_updates_can_be_compiled_one_after_another() -> None:
    """torch.compile alone refuses a ninth version of one function."""

    class Compiled(Counter):
        def compile(self, options: dict[str, Any] | None, *, cost_alone: bool = False) -> None:
            self.once = torch.compile(self.once_more, fullgraph=True, dynamic=False, backend="eager")

        def once_more(self) -> None:
            self.count.add_(len(self.count))

    for length in range(1, 12):
        update = Compiled()
        update.count = torch.zeros(length)
        rehearse(update, CPU)()
        assert update.count.tolist() == [length] * length


def test_a_failure_without_a_compiler_is_the_updates_own() -> None:
    update = Counter(fails=True)
    update.mode = "compiled"
    with pytest.raises(RuntimeError, match="no compiler"):
        rehearse(update, CPU, compiled=False)


def test_of_several_processes_none_continues_alone() -> None:
    with pytest.raises(ValueError, match=r"could not be compiled \(RuntimeError: no compiler\): give --compile no"):
        rehearse(Counter(fails=True), CPU, distributed=True)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a capture would succeed")
def test_a_capture_without_a_gpu_says_what_to_do() -> None:
    """torch's own refusal, passed on."""
    update = Counter()
    with pytest.raises(ValueError, match=r"could not be captured as a CUDA graph \(\w+: .+\): give --compile no"):
        _capture(update.once)
    assert update.calls == []


@pytest.mark.cuda
def test_a_captured_update_is_replayed_from_the_state_before_the_rehearsal() -> None:
    update = Counter(CUDA)
    replay = rehearse(update, CUDA, distributed=False)
    assert update.count.item() == 0
    assert len(update.calls) == 4, "three to warm up, and the one that is recorded"
    for _ in range(5):
        replay()
    assert update.count.item() == 5
    assert len(update.calls) == 4, "a replay runs no Python"


@pytest.mark.cuda
def test_a_short_run_is_captured_as_it_is() -> None:
    update = Counter(CUDA)
    replay = rehearse(update, CUDA, compiled=False)
    assert update.calls == ["eager"] * 4
    replay()
    assert update.count.item() == 1


class Uncapturable(Counter):
    """An update that works until it is captured."""

    def __init__(self, problem: Exception) -> None:
        super().__init__(CUDA)
        self.problem = problem

    def once(self) -> None:
        super().once()
        if torch.cuda.is_current_stream_capturing():
            raise self.problem


@pytest.mark.cuda
def test_a_capture_that_fails_stops_the_run() -> None:
    """The GPU's stream is in no state to go on from."""
    update = Uncapturable(RuntimeError("it waits for the GPU"))
    with pytest.raises(
        ValueError, match=r"captured as a CUDA graph \(RuntimeError: it waits for the GPU\): give --compile no"
    ):
        rehearse(update, CUDA, distributed=False)
    assert len(update.calls) == 4, "it was the capture that failed"


@pytest.mark.cuda
def test_a_lack_of_memory_while_capturing_is_told_as_such() -> None:
    with pytest.raises(torch.OutOfMemoryError):
        rehearse(Uncapturable(torch.OutOfMemoryError("CUDA out of memory")), CUDA, distributed=False)


@pytest.mark.cuda
def test_of_several_gpus_none_captures() -> None:
    """Their sums of gradients stay outside a graph."""
    update = Counter(CUDA)
    assert rehearse(update, CUDA, distributed=True) == update.once
    assert update.calls == ["compiled"]
