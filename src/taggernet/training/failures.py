"""What a run says when the machine fails it: what happened, what to do, what is kept."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator

import torch

from taggernet.config.run import Config

_CURES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EFBIG: "allow larger files",
    errno.EROFS: "make the folder writable",
    errno.EACCES: "make the folder writable",
    errno.EPERM: "make the folder writable",
}
_NO_MEMORY = re.compile(r"out of memory|can't allocate memory|ALLOC_FAILED", re.IGNORECASE)


class OutOfMemory(MemoryError):
    """The run does not fit the memory of its device."""


def is_out_of_memory(problem: BaseException) -> bool:
    """Whether this, or what led to it, is a lack of memory: a compiler wraps the errors it meets."""
    return any(
        isinstance(cause, torch.OutOfMemoryError | MemoryError)
        or (isinstance(cause, RuntimeError) and _NO_MEMORY.search(str(cause)) is not None)
        for cause in _causes(problem)
    )


def is_lost_peer(problem: BaseException) -> bool:
    """Whether another process of the run went away."""
    return (
        isinstance(problem, RuntimeError) and re.search(r"Connection (closed|reset) by peer", str(problem)) is not None
    )


def _causes(problem: BaseException | None) -> Iterator[BaseException]:
    while problem is not None:
        yield problem
        problem = problem.__cause__ or problem.__context__


def in_short(problem: BaseException) -> str:
    """The kind of an error and the first line that says something."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return f"{type(problem).__name__}: {lines[0]}" if lines else type(problem).__name__


def what_to_lower(config: Config) -> str:
    widths = " ".join(str(width) for width in config.model.widths)
    return (
        f"lower --batch (now {config.optimiser.batch}), --seeds (now {config.seeds}) or --widths (now {widths}) "
        "and name another --out"
    )


def not_written(what: str, where: object, problem: OSError) -> str:
    """Why something is not on the disk, and what would help."""
    code = problem.errno
    reason = os.strerror(code) if code else str(problem)
    cure = f": {_CURES[code]} and run the same command again" if code in _CURES else ""
    return f"{what} could not be written to {where} ({reason}){cure}"
