"""Errors a user can act on: what counts as one, and the one or two lines that the command line prints."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LONGEST = 2000
_NO_MEMORY = re.compile(r"out of memory|can't allocate memory|ALLOC_FAILED", re.IGNORECASE)


class OutOfMemory(MemoryError):
    """The run does not fit the memory of its device."""


USER_ERRORS = (ValueError, TypeError, OSError, ArithmeticError, OutOfMemory)
"""Raised where a user's input enters, with a message that says what to do."""


def describe_error(error: Exception) -> str:
    """At most two lines for any exception; an unexpected one says how to report it."""
    if isinstance(error, USER_ERRORS):
        lines = [line for line in str(error).splitlines() if line.strip()]
        return "\n".join(lines[:2])[:_LONGEST] or f"{type(error).__name__} without a message: --debug shows where"
    if is_out_of_memory(error):
        return f"there is not enough memory ({first_line(error)}): lower the batch size or the number of seeds"
    return (
        f"unexpected error ({type(error).__name__}: {first_line(error)})\n"
        "Run the same command with --debug for the traceback, and please report it."
    )


def first_line(error: BaseException) -> str:
    """The first line of an error's message that is not empty."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")[:300]


def is_out_of_memory(error: BaseException) -> bool:
    """Whether this error, or one that caused it, is a lack of memory on the host or on a GPU.

    An error that several threads raise again, as TensorBoard's writer does, can be among its own causes.
    """
    cause: BaseException | None = error
    seen = set[int]()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        # torch.OutOfMemoryError is a RuntimeError; by its text, so that this module need not import torch.
        if isinstance(cause, MemoryError) or (isinstance(cause, RuntimeError) and _NO_MEMORY.search(str(cause))):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


CHOOSE = "choose another path, or free some space"


def cannot_write(path: Path, problem: Exception, advice: str = CHOOSE) -> OSError:
    """The error for a file that cannot be written, of the same class and number as the system's own."""
    number = problem.errno if isinstance(problem, OSError) else None
    reason = os.strerror(number) if number is not None else str(problem)
    kind = type(problem) if isinstance(problem, OSError) else OSError
    error = kind(f"{path} cannot be written ({reason}): {advice}")
    error.errno = number
    return error


@contextmanager
def exit_on_user_error() -> Iterator[None]:
    """Print an error that the user can act on in one or two lines, and exit with status 2."""
    try:
        yield
    except USER_ERRORS as error:
        print(describe_error(error), file=sys.stderr)
        sys.exit(2)


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print our warnings as one line each, without the source line that raised them."""
    usual = warnings.formatwarning

    def one_line(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
    ) -> str:
        if category is UserWarning:
            return f"taggernet: {message}\n"
        return usual(message, category, filename, lineno, line)

    warnings.formatwarning = one_line
    try:
        yield
    finally:
        warnings.formatwarning = usual
