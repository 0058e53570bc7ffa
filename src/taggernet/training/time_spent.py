"""Where the time of a run went: seconds for each kind of work, of which none is counted twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

PARTS = ("start-up", "data", "compiling", "updates", "evaluation", "checkpoints")
TRAINING = PARTS[2:]
"""Those of the loop over updates."""


class TimeSpent:
    """Seconds by kind of work; ``since`` (of time.monotonic) is when the command began, before this call."""

    def __init__(self, since: float | None = None) -> None:
        now = time.monotonic()
        self.begin = now if since is None else since
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self.seconds["start-up"] = now - self.begin

    @contextmanager
    def on(self, part: str) -> Iterator[None]:
        """Count the time inside as this part's, but for what is counted as another's meanwhile."""
        begin, others = time.monotonic(), sum(self.seconds.values())
        try:
            yield
        finally:
            meanwhile = sum(self.seconds.values()) - others
            self.seconds[part] += time.monotonic() - begin - meanwhile

    def record(self) -> dict[str, float]:
        """Seconds of each part, of everything else, and of all, until now."""
        total = time.monotonic() - self.begin
        return {**self.seconds, "other": total - sum(self.seconds.values()), "total": total}


def in_words(record: dict[str, float]) -> str:
    """The record in one line, without what took no time."""
    parts = [f"{name} {seconds:.1f}" for name, seconds in record.items() if name != "total" and seconds >= 0.05]
    return f"{record['total']:.1f} s in all: {', '.join(parts) or 'nothing that takes time'}"
