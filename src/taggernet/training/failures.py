"""Errors of a run that the machine causes: what happened, what to do, what is kept."""

from __future__ import annotations

import errno
import os
import re

from taggernet.config.run import Config
from taggernet.errors import first_line

_CURES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EFBIG: "allow larger files",
    errno.EROFS: "make the folder writable",
    errno.EACCES: "make the folder writable",
    errno.EPERM: "make the folder writable",
}


def is_lost_peer(problem: BaseException) -> bool:
    """Whether another process of the run went away."""
    return (
        isinstance(problem, RuntimeError) and re.search(r"Connection (closed|reset) by peer", str(problem)) is not None
    )


def in_short(problem: BaseException) -> str:
    """The class of an error and the first line of its message; of an error that torch.compile wraps, those of the inner
    one."""
    problem = getattr(problem, "inner_exception", None) or problem
    line = first_line(problem)
    return f"{type(problem).__name__}: {line}" if line else type(problem).__name__


def what_to_lower(config: Config) -> str:
    """Advice for a run that does not fit the memory."""
    widths = " ".join(str(width) for width in config.model.widths)
    return (
        f"lower --batch (now {config.optimiser.batch}), --seeds (now {config.seeds}) or --widths (now {widths}) "
        "and choose another --out"
    )


def not_written(what: str, where: object, problem: OSError) -> str:
    """Why a file of the run could not be written, and what would help."""
    code = problem.errno
    reason = os.strerror(code) if code else str(problem)
    cure = f": {_CURES[code]} and run the same command again" if code in _CURES else ""
    return f"{what} could not be written to {where} ({reason}){cure}"
