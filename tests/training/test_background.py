"""Work beside training: one piece at a time, waited for, and its errors are never lost."""

from __future__ import annotations

import threading

import pytest

from taggernet.training.background import Background


def fails() -> None:
    raise OSError("the disk is full")


def test_it_runs_beside_the_caller() -> None:
    go_on, done = threading.Event(), threading.Event()
    with Background() as background:
        background.start(lambda: (go_on.wait(10), done.set())[0])
        assert not done.is_set(), "start did not wait for the work"
        go_on.set()
    assert done.is_set(), "the end did"


def test_one_piece_at_a_time_in_order() -> None:
    seen: list[int] = []
    with Background() as background:
        for number in range(5):
            background.start(lambda number=number: seen.append(number))
    assert seen == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("call", ["check", "wait", "start", "exit"])
def test_an_error_is_raised_by_the_next_call_once(call: str) -> None:
    background = Background()
    background.start(fails)
    background.settle()
    with pytest.raises(OSError, match="the disk is full"):
        {
            "check": background.check,
            "wait": background.wait,
            "start": lambda: background.start(lambda: None),
            "exit": lambda: background.__exit__(None, None, None),
        }[call]()
    background.wait()


def test_an_error_that_comes_while_one_is_looked_for_is_kept() -> None:
    class Unlucky(Background):
        """Its work fails as soon as somebody has seen that it did not."""

        _failed: BaseException | None = None

        @property
        def _problem(self) -> BaseException | None:  # type: ignore[override]
            seen, self._failed = self._failed, self._failed or OSError("the disk is full")
            return seen

        @_problem.setter
        def _problem(self, problem: BaseException | None) -> None:
            self._failed = problem

    background = Unlucky()
    background.check()
    with pytest.raises(OSError, match="the disk is full"):
        background.check()


def test_an_error_does_not_hide_another_one_but_is_told() -> None:
    def both() -> None:
        with Background() as background:
            background.start(fails)
            raise ValueError("the first")

    with pytest.warns(UserWarning, match="the disk is full"), pytest.raises(ValueError, match="the first"):
        both()


def test_the_work_itself_may_settle() -> None:
    """A failed checkpoint asks what is kept, which waits for checkpoints."""
    background = Background()
    background.start(background.settle)
    background.wait()


def test_no_thread_is_left() -> None:
    before = threading.active_count()
    with Background() as background:
        background.start(lambda: None)
    assert threading.active_count() == before
