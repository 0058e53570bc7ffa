"""Rehearsing an update: compiled, undone, and without a compiler where that fails."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from taggernet.training.capture import rehearse

CPU = torch.device("cpu")


class Counter:
    """An update that counts, in a tensor as it should and in a list that no rehearsal can undo."""

    def __init__(self, fails: bool = False) -> None:
        self.count, self.calls, self.fails = torch.zeros(1), [], fails
        self.mode = "eager"

    def once(self) -> None:
        self.calls.append(self.mode)
        self.count += 1
        if self.mode == "compiled" and self.fails:
            raise RuntimeError("no compiler")

    def tensors(self) -> list[Tensor]:
        return [self.count]

    def compile(self, options: dict[str, Any] | None) -> None:
        assert options is None, "the passes are for CUDA"
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


def test_of_several_processes_none_continues_alone() -> None:
    with pytest.raises(ValueError, match=r"could not be compiled \(RuntimeError: no compiler\): give --compile no"):
        rehearse(Counter(fails=True), CPU, distributed=True)
