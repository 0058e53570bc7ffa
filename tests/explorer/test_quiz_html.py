"""The board of the human test."""

from __future__ import annotations

from taggernet import Tagger, TaggerConfig
from taggernet.explorer.quiz import BEST_HUMAN, Contest, Round
from taggernet.explorer.quiz_html import board


def test_the_board_keeps_the_truth_until_it_is_answered(contest: Contest) -> None:
    asked = Round(seed=2)
    assert "Truth" not in board(contest, asked)
    answered = board(contest, contest.answered(asked, [1, 2]))
    assert "Truth" in answered
    assert "Network" in answered
    assert f"{100 * BEST_HUMAN:.1f} %" in answered


def test_a_network_without_classes_only_watches(contest: Contest) -> None:
    silent = Contest(contest.scenes, Tagger(TaggerConfig(shape=(28, 28), kind="real", widths=(8, 4))))
    state = silent.answered(Round(seed=2), [1, 2])
    assert state.tally.network_error is None
    assert "Network" not in board(silent, state)
