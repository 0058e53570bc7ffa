"""Too little memory, or a compiler that fails: the run falls back or says what to lower, and its checkpoint stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from faulty import CONFIG, OPTIONS, SOAK, assert_goes_on, assert_kept, command
from toys import records

from taggernet.cli import main
from taggernet.errors import is_out_of_memory
from taggernet.training import OutOfMemory, train
from taggernet.training.sources import FixedSource
from taggernet.training.step import Update

# --- memory -------------------------------------------------------------------------------------------------------


def cuda() -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has 1.00 GiB free.\nSee ...")


def cublas() -> None:
    raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")


def host() -> None:
    """More than any address space has."""
    torch.empty(2**60, dtype=torch.uint8)


def array() -> None:
    raise MemoryError("Unable to allocate 3 TiB for an array")


def wrapped() -> None:
    try:
        cuda()
    except RuntimeError as problem:
        raise RuntimeError("backend='inductor' raised:") from problem


@pytest.mark.parametrize("fault", [cuda, cublas, host, array, wrapped])
def test_out_of_memory_says_what_to_lower_and_keeps_the_checkpoint(
    fault: Callable[[], None], whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = FixedSource.batch

    def at_update_8(self: FixedSource, step: torch.Tensor) -> Any:
        if int(step) == 8:
            fault()
        return draw(self, step)

    with monkeypatch.context() as patch:
        patch.setattr(FixedSource, "batch", at_update_8)
        with pytest.raises(OutOfMemory, match="small does not fit the memory of cpu") as caught:
            train(CONFIG, tmp_path)
    said = str(caught.value)
    assert "lower --batch (now 10), --seeds (now 1) or --widths (now 24 16 8) and choose another --out" in said
    assert f"the last good checkpoint, after update 5, is kept in {tmp_path}" in said
    assert caught.value.__context__ is None, "an error that is kept must not keep what filled the memory"
    assert_kept(tmp_path, 5)
    assert_goes_on(tmp_path, whole)


@pytest.mark.usefixtures("without_typecheck")
def test_the_command_says_so_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Update, "advance", lambda self, count: cuda())
    assert main(["train", "small", "--out", str(tmp_path), *OPTIONS]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("taggernet: small does not fit the memory of cpu")
    assert "lower --batch (now 4), --seeds (now 1) or --widths (now 12 8)" in line
    assert line.endswith(f"there is no checkpoint in {tmp_path} yet")


def test_other_errors_are_not_taken_for_a_lack_of_memory() -> None:
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not is_out_of_memory(ValueError("the letters say out of memory"))


# --- the compiler -------------------------------------------------------------------------------------------------

COMPILED = replace(CONFIG, runtime=replace(CONFIG.runtime, compile="yes"))


def failing_compiler(*, calls: int, fault: Callable[[], Any]) -> Callable[..., Any]:
    """torch.compile whose functions work so many times and then fail, before they have done anything."""
    left = [calls]

    def compile_(function: Callable[..., Any], **_: Any) -> Callable[..., Any]:
        def compiled(*args: Any) -> Any:
            if not left[0]:
                fault()
            left[0] -= 1
            return function(*args)

        return compiled

    return compile_


def inductor() -> None:
    from torch._inductor.exc import InductorError

    raise InductorError(RuntimeError("g++ was not found\nat line 3"), None)


@pytest.mark.parametrize("calls", [0, 1, 2], ids=["the batch", "the cost", "Adam"])
def test_a_failing_compile_falls_back_to_the_same_result(
    calls: int, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_parts = Update.compile  # as on a GPU
    monkeypatch.setattr(Update, "compile", lambda update, options, cost_alone: all_parts(update, options))
    monkeypatch.setattr(torch, "compile", failing_compiler(calls=calls, fault=inductor))
    with pytest.warns(UserWarning, match=r"compiled \(RuntimeError: g\+\+ was not found\): going on") as caught:
        train(COMPILED, tmp_path)
    (said,) = caught
    assert "\n" not in str(said.message)
    assert_goes_on(tmp_path, whole)


def test_a_compile_that_is_refused_falls_back_too(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("torch.compile is not supported on this Python")

    monkeypatch.setattr(torch, "compile", refuse)
    with pytest.warns(UserWarning, match=r"could not be compiled \(RuntimeError: torch\.compile is not supported on"):
        train(COMPILED, tmp_path)
    assert_goes_on(tmp_path, whole)


def test_the_rehearsal_of_a_compiled_update_leaves_no_trace(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    train(COMPILED, tmp_path)
    assert_goes_on(tmp_path, whole)


def test_a_lack_of_memory_while_compiling_is_no_failed_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uncompiled it would need no less."""
    monkeypatch.setattr(torch, "compile", failing_compiler(calls=0, fault=wrapped))
    with pytest.raises(OutOfMemory, match="lower --batch"):
        train(COMPILED, tmp_path)


def test_of_several_processes_none_goes_on_alone_uncompiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch, "compile", failing_compiler(calls=0, fault=inductor))
    begin = Update.__init__

    def one_of_two(self: Update, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        self.distributed = True

    monkeypatch.setattr(Update, "__init__", one_of_two)
    with pytest.raises(ValueError, match=r"could not be compiled .*: give --compile no"):
        train(COMPILED, tmp_path)


@pytest.mark.skipif(not SOAK, reason="tracing takes its time: make soak does it; the tests above play it")
@pytest.mark.usefixtures("without_typecheck")
def test_a_machine_without_a_compiler(tmp_path: Path) -> None:
    """torch's own compiler, and no C++ compiler behind it."""
    run = ["train", "small", "--compile", "yes", *OPTIONS]
    done = command(
        *run,
        "--out",
        str(tmp_path / "run"),
        CXX=str(tmp_path / "none"),
        TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "cache"),
    )
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("taggernet: the update could not be compiled (")
    assert main(["train", "small", *OPTIONS, "--out", str(tmp_path / "plain")]) == 0
    assert records(tmp_path / "run") == records(tmp_path / "plain")
