"""One piece of work beside training: checkpoints are written by a thread while the next updates are made."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable


class Background:
    """At most one piece of work at a time. What goes wrong in it is raised by the next call, or at the end."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._problem: BaseException | None = None

    def start(self, work: Callable[[], None]) -> None:
        """Begin, once what was begun before is done."""
        self.wait()

        def guarded() -> None:
            try:
                work()
            except BaseException as problem:
                self._problem = problem

        # No daemon: Python waits for it at exit, even after a second Ctrl-C.
        self._thread = threading.Thread(target=guarded, name="taggernet checkpoint")
        self._thread.start()

    def settle(self) -> None:
        """Wait for the work; what went wrong is left for the next call."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            self._thread = None

    def check(self) -> None:
        """Raise what went wrong so far, without waiting."""
        problem = self._problem
        if problem is not None:
            self._problem = None  # only now: the work may fail at any moment
            self.settle()
            raise problem

    def wait(self) -> None:
        """Wait for the work and raise what went wrong in it."""
        self.settle()
        self.check()

    def __enter__(self) -> Background:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.settle()
        if kind is None:
            self.check()
        elif self._problem is not None:  # another error is on its way: this one must not hide it, nor be lost
            warnings.warn(str(self._problem), stacklevel=2)
