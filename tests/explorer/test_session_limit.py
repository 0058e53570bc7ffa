"""The server remembers the last visitors alone. tests/trust/test_load.py asks it until its memory would show more."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from taggernet.explorer.session_limit import SESSIONS, Recent, forget_old_visitors


def test_visitors_are_forgotten_the_longest_silent_first() -> None:
    kept = Recent()
    for number in range(SESSIONS):
        kept[number] = set()
    kept[0].add("asked again")
    kept["new"] = set()
    assert len(kept) == SESSIONS
    assert 0 in kept
    assert 1 not in kept
    assert list(kept)[-2:] == [0, "new"]
    assert kept.get("nobody") is None
    with pytest.raises(KeyError):
        kept[1]


def test_what_the_queue_keeps_of_visitors_is_bounded() -> None:
    queue = SimpleNamespace(pending_messages_per_session={"a": 1}, pending_event_ids_session={}, ANALYTICS_MAX_EVENTS=1)
    forget_old_visitors(SimpleNamespace(_queue=queue))
    assert isinstance(queue.pending_messages_per_session, Recent)
    assert isinstance(queue.pending_event_ids_session, Recent)
    assert queue.pending_messages_per_session["a"] == 1
    assert queue.ANALYTICS_MAX_EVENTS == SESSIONS
    forget_old_visitors(SimpleNamespace(_queue=SimpleNamespace()))  # a queue that keeps nothing is left alone
