"""What the server answers to each thing a visitor does. The page's layout is in ``page``.

A question carries the whole state of the visitor's page (which scene, how it is looked at, what is taken away), so
an answer depends on nothing else. Numbers come from outside: ``Explorer.look`` and ``stage`` check them.
"""

from __future__ import annotations

import functools
import logging
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ParamSpec, TypeVar

import gradio as gr

from taggernet.explorer.quiz import Contest, Round
from taggernet.explorer.quiz_html import board
from taggernet.explorer.scenes import as_cells
from taggernet.explorer.session import SEEDS, Choice, Explorer, Settings, toggled
from taggernet.explorer.stage_html import stage

FRAME_SECONDS = 0.45
P = ParamSpec("P")
R = TypeVar("R")
Fresh = tuple[Choice, list[int], Any, str]
"""A new look: its scene, nothing taken away, the slider at the last iteration, the stage."""


def guarded(answer: Callable[P, R]) -> Callable[P, R]:
    """Say what a visitor can mend in one sentence; everything else goes to the server's log alone."""

    @functools.wraps(answer)
    def safe(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return answer(*args, **kwargs)
        except gr.Error:
            raise
        except (ValueError, TypeError) as error:
            raise gr.Error(str(error), print_exception=False) from None
        except Exception:
            logging.getLogger(__name__).exception("the page could not answer")
            raise gr.Error("Something went wrong; the server's log says what.", print_exception=False) from None

    return safe


class Answers:
    """To questions about scenes and groups."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer

    @guarded
    def look_at(self, choice: Choice, noise: float, groups: int, iterations: int, seed: int) -> Fresh:
        look = self.explorer.look(choice, Settings(noise, groups, iterations, seed))
        slider = gr.update(maximum=iterations, value=iterations)
        return choice, [], slider, stage(self.explorer, look, iterations, ())

    @guarded
    def show(
        self,
        choice: Choice,
        noise: float,
        groups: int,
        iterations: int,
        seed: int,
        shown: int,
        removed: Sequence[int],
    ) -> str:
        """The stage at an iteration, with groups taken away."""
        look = self.explorer.look(choice, Settings(noise, groups, iterations, seed))
        return stage(self.explorer, look, shown, removed)

    @guarded
    def press(
        self,
        choice: Choice,
        noise: float,
        groups: int,
        iterations: int,
        seed: int,
        shown: int,
        removed: Sequence[int],
        event: gr.EventData,
    ) -> tuple[list[int], str]:
        """A group was pressed: take it away or bring it back."""
        now = toggled(removed, _number(event), groups)
        if now == list(removed):
            gr.Info("One group has to stay: bring another one back first.")
        return now, self.show(choice, noise, groups, iterations, seed, shown, now)

    @guarded
    def frame(
        self,
        choice: Choice,
        noise: float,
        groups: int,
        iterations: int,
        seed: int,
        removed: Sequence[int],
        event: gr.EventData,
    ) -> tuple[int, str]:
        """An iteration of the film was pressed."""
        number = _number(event)
        return number, self.show(choice, noise, groups, iterations, seed, number, removed)

    def play(
        self, choice: Choice, noise: float, groups: int, iterations: int, seed: int, removed: Sequence[int]
    ) -> Iterator[tuple[int, str]]:
        """The iterations one after the other, from the random start."""
        for number in range(iterations + 1):
            yield number, self.show(choice, noise, groups, iterations, seed, number, removed)
            time.sleep(FRAME_SECONDS)

    @guarded
    def again(self, choice: Choice, noise: float, groups: int, iterations: int) -> tuple[int, Choice, Any, Any, str]:
        """The same scene with other noise and another start."""
        seed = secrets.randbelow(SEEDS)
        return seed, *self.look_at(choice, noise, groups, iterations, seed)

    @guarded
    def pick(self, number: int, noise: float, groups: int, iterations: int, seed: int) -> Fresh:
        return self.look_at(Choice("test", number), noise, groups, iterations, seed)

    @guarded
    def turn(
        self, by: int, number: int, noise: float, groups: int, iterations: int, seed: int
    ) -> tuple[int, Choice, Any, Any, str]:
        """The scene before or after; the ends meet."""
        test = self.explorer.source.test
        there = (int(number) + by) % (len(test) if test is not None else 1)
        return there, *self.pick(there, noise, groups, iterations, seed)

    @guarded
    def make(self, objects: int, before: Choice, noise: float, groups: int, iterations: int, seed: int) -> Fresh:
        """A scene that nobody has seen."""
        return self.look_at(self.explorer.another(objects, before), noise, groups, iterations, seed)

    @guarded
    def draw(self, noise: float, groups: int, iterations: int, seed: int, event: gr.EventData) -> Fresh:
        """The canvas changed."""
        cells = event._data.get("cells") if isinstance(event._data, dict) else None
        if not isinstance(cells, str):
            raise TypeError("the drawing did not arrive: draw it again")
        return self.look_at(Choice("drawn", cells=cells), noise, groups, iterations, seed)

    @guarded
    def copy(self, choice: Choice) -> str:
        """The scene shown, for the canvas."""
        return as_cells(self.explorer.scene(choice).x)


class ContestAnswers:
    """To the human test."""

    def __init__(self, contest: Contest) -> None:
        self.contest = contest

    @guarded
    def begin(self) -> tuple[Round, str]:
        """Everyone starts somewhere else, so that a second visit is a new test."""
        state = Round(secrets.randbelow(SEEDS))
        return state, board(self.contest, state)

    @guarded
    def answer(self, state: Round, named: Sequence[str]) -> tuple[Round, str]:
        state = self.contest.answered(state, [int(digit) for digit in named])
        return state, board(self.contest, state)

    @guarded
    def following(self, state: Round) -> tuple[Round, list[str], str]:
        state = self.contest.following(state)
        return state, [], board(self.contest, state)


def _number(event: gr.EventData) -> Any:
    """The number that a button of the stage sent; whoever uses it checks it."""
    return event._data.get("number") if isinstance(event._data, dict) else None
