"""What the server keeps of its visitors, bounded: gradio keeps a little of everyone who ever asked."""

from __future__ import annotations

from typing import Any

SESSIONS = 320
"""Visitors that are remembered. More than may wait in the queue, so that nobody who waits is forgotten."""


class Recent(dict[Any, Any]):
    """A dictionary of the last keys that were set or asked for."""

    def __setitem__(self, key: Any, value: Any) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)
        while len(self) > SESSIONS:
            del self[next(iter(self))]

    def __getitem__(self, key: Any) -> Any:
        value = super().__getitem__(key)
        del self[key]
        super().__setitem__(key, value)
        return value


def forget_old_visitors(blocks: Any) -> None:
    """For a page that is about to be served; what gradio calls these is checked, as it may change."""
    queue = blocks._queue
    for name in ("pending_messages_per_session", "pending_event_ids_session"):
        if isinstance(getattr(queue, name, None), dict):
            setattr(queue, name, Recent(getattr(queue, name)))
    if hasattr(queue, "ANALYTICS_MAX_EVENTS"):
        queue.ANALYTICS_MAX_EVENTS = SESSIONS
