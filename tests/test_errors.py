"""What the command line prints of an error, and what counts as a lack of memory."""

from __future__ import annotations

import errno
import warnings
from pathlib import Path

import pytest
import torch

from taggernet.errors import (
    OutOfMemory,
    cannot_write,
    describe_error,
    exit_on_user_error,
    is_out_of_memory,
    one_line_warnings,
)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("a\n\nb\nc"), "a\nb"),
        (ValueError(), "ValueError without a message: --debug shows where"),
        (OSError(), "OSError without a message: --debug shows where"),
        (OutOfMemory("lower --batch"), "lower --batch"),
        (MemoryError(), "there is not enough memory (): lower the batch size or the number of seeds"),
    ],
)
def test_an_error_is_at_most_two_lines(error: Exception, text: str) -> None:
    assert describe_error(error) == text


def test_an_error_among_its_own_causes_is_looked_at_once() -> None:
    """As one that a thread keeps and several places raise again."""
    first, second = OSError("first"), OSError("second")
    first.__cause__, second.__cause__ = second, first
    assert not is_out_of_memory(first)
    second.__cause__ = MemoryError()
    assert is_out_of_memory(first)


def test_a_message_is_never_endless() -> None:
    assert len(describe_error(ValueError("x" * 10**6))) <= 2000


def test_an_unexpected_error_says_how_to_report_it() -> None:
    text = describe_error(KeyError("x"))
    assert text.splitlines() == [
        "unexpected error (KeyError: 'x')",
        "Run the same command with --debug for the traceback, and please report it.",
    ]


def caused_by(cause: BaseException) -> RuntimeError:
    error = RuntimeError("compilation failed")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "lacks"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 9 bytes"), True),
        (RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling"), True),
        (caused_by(torch.OutOfMemoryError("CUDA out of memory.")), True),
        (caused_by(ValueError("out of memory")), False),
        (RuntimeError("shapes differ"), False),
    ],
)
def test_lack_of_memory_is_recognised(error: Exception, lacks: bool) -> None:
    assert is_out_of_memory(error) == lacks


def test_what_cannot_be_written_keeps_the_systems_class_and_number() -> None:
    error = cannot_write(Path("run"), PermissionError(errno.EACCES, "denied"), "choose another --out")
    assert type(error) is PermissionError
    assert error.errno == errno.EACCES
    assert str(error) == "run cannot be written (Permission denied): choose another --out"


def test_a_user_error_ends_a_command_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end, exit_on_user_error():
        raise ValueError("give more")
    assert end.value.code == 2
    assert capsys.readouterr().err == "give more\n"
    with pytest.raises(KeyError), exit_on_user_error():
        raise KeyError("a bug")


def test_only_our_warnings_are_one_line() -> None:
    with one_line_warnings():
        assert warnings.formatwarning("careful", UserWarning, "file.py", 3) == "taggernet: careful\n"
        assert "file.py:3" in warnings.formatwarning("old", DeprecationWarning, "file.py", 3)
    assert "file.py:3" in warnings.formatwarning("careful", UserWarning, "file.py", 3)
