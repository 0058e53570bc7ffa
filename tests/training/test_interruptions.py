"""Ctrl-C and SIGTERM become an event; the handlers that were there come back."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from taggernet.training.interruptions import interruptions

NUMBERS = (signal.SIGINT, signal.SIGTERM)


def handlers() -> list[object]:
    return [signal.getsignal(number) for number in NUMBERS]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_sets_the_event_and_a_second_ends_at_once(number: int) -> None:
    before = handlers()
    with interruptions() as stopped:
        assert handlers() != before
        assert not stopped.is_set()
        os.kill(os.getpid(), number)
        assert stopped.wait(10)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert handlers() == before


def test_the_handlers_come_back_after_an_error() -> None:
    before = handlers()
    with pytest.raises(RuntimeError, match="diverged"), interruptions():
        raise RuntimeError("diverged")
    assert handlers() == before


def test_a_handler_that_is_not_pythons_gives_way_to_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a program that Python is embedded in: ``signal.signal`` returns None for it, and takes no None."""
    before, install = handlers(), signal.signal
    monkeypatch.setattr(signal, "signal", lambda number, handler: install(number, handler) and None)
    try:
        with interruptions():
            pass
        assert handlers() == [signal.SIG_DFL, signal.SIG_DFL]
    finally:
        for number, handler in zip(NUMBERS, before, strict=True):
            install(number, handler)


def test_outside_the_main_thread_signals_are_left_alone() -> None:
    found: list[object] = []

    def act() -> None:
        with interruptions() as stopped:
            found.extend([handlers(), stopped.is_set()])

    thread = threading.Thread(target=act)
    thread.start()
    thread.join()
    assert found == [handlers(), False]
