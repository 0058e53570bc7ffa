"""Sentences for what goes wrong outside this package, and the one or two lines the command line makes of anything."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

MENDED_BY_THE_USER = (ValueError, TypeError, OSError, ArithmeticError)
"""Raised at the package's border, with a sentence that says what to do."""
_FRAME = "│|╭╰╮╯+ \t"
_LONGEST = 2000


def sentence(error: Exception) -> str:
    """At most two lines for any exception; those nobody foresaw say how to report them."""
    from taggernet.training.failures import OutOfMemory, is_out_of_memory

    if isinstance(error, (*MENDED_BY_THE_USER, OutOfMemory)):
        lines = [line for line in str(error).splitlines() if line.strip()]
        return "\n".join(lines[:2])[:_LONGEST] or f"{type(error).__name__} without a message: --debug shows where"
    if is_out_of_memory(error):
        return f"there is not enough memory ({_first_line(error)}): ask for less, e.g. a smaller batch or fewer seeds"
    return (
        f"this should not have happened ({type(error).__name__}: {_first_line(error)})\n"
        "The same command with --debug shows where; please report it."
    )


def unwritable(path: Path, problem: Exception) -> OSError:
    """The sentence for a file that cannot be written, of the same class and number as the system's own."""
    number = problem.errno if isinstance(problem, OSError) else None
    reason = os.strerror(number) if number is not None else str(problem)
    kind = type(problem) if isinstance(problem, OSError) else OSError
    told = kind(f"{path} cannot be written ({reason}): choose another place, or make room and try again")
    told.errno = number
    return told


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0][:300]


def folded(shown: str, prog: str) -> str:
    """tyro's framed complaint as one line, and where to find every option as the second."""
    lines = [line.strip(_FRAME) for line in shown.splitlines()[1:]]  # the first is the frame's title
    parts = [
        " ".join(" ".join(part).split())
        for is_rule, part in groupby(lines, key=lambda line: bool(line) and not line.strip("─-"))
        if not is_rule
    ]
    complaint = _plainer(parts[0] if parts else shown.strip())
    meant = next((re.search(r"--[\w-]+", part) for part in parts if part.startswith("Perhaps you meant")), None)
    hint = f": did you mean {meant[0]}?" if meant else ""
    return f"{complaint}{hint}\nEvery option: {prog} --help"


def _plainer(complaint: str) -> str:
    """Without the inside of the parser: which alternatives it tried, and where the option is kept."""
    option = re.match(r"Error parsing (\S+): no type matching .*<class '\w+'>: ", complaint)
    if option:
        return f"{option[1]}: {complaint[option.end() :]}"
    return re.sub(r"^Error parsing (config[\w.]*: )?", "", complaint).replace(" .", ".")


@contextmanager
def told_in_a_sentence() -> Iterator[None]:
    """For the commands beside ``taggernet``: what the user can mend ends them with a sentence and status 2."""
    try:
        yield
    except MENDED_BY_THE_USER as problem:
        print(sentence(problem), file=sys.stderr)
        sys.exit(2)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """A warning of ours as one line, without the place in the source that raised it."""
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
