"""The human test: one rule for people and network, and a running error."""

from __future__ import annotations

import numpy as np
import pytest

from taggernet import data, metrics
from taggernet.explorer.quiz import Contest, Round, error_of


@pytest.mark.parametrize(
    ("answer", "truth", "error"),
    [
        ([3, 7], (3, 7), 0.0),
        ([7, 3], (3, 7), 0.0),
        ([3, 1], (3, 7), 0.5),
        ([3], (3, 7), 0.5),
        ([1, 2], (3, 7), 1.0),
        ([0], (3, 0), 0.5),
        ([1], (0, 3), 1.0),
        ([4], (4, 4), 0.0),
        ([4, 1], (4, 4), 0.0),  # the first one named counts
        ([1, 4], (4, 4), 1.0),
    ],
)
def test_an_answer_is_scored_like_the_network(answer: list[int], truth: tuple[int, int], error: float) -> None:
    assert error_of(answer, truth) == error


@pytest.mark.parametrize("answer", [[], [1, 2, 3], [10], [-1, 2]])
def test_an_answer_that_is_none_is_refused(answer: list[int]) -> None:
    with pytest.raises(ValueError, match=r"name one or two|give an integer from 0 to 9"):
        error_of(answer, (1, 2))


def test_the_running_errors_are_means_over_the_scenes_answered(contest: Contest) -> None:
    state, yours, networks = Round(seed=3), [], []
    for wrong in (False, True, False):
        index, truth = contest.index(state), contest.truth(state)
        answer = [digit for digit in range(10) if digit not in truth][:2] if wrong else sorted(set(truth))
        state = contest.answered(state, answer)
        yours.append(1.0 if wrong else 0.0)
        part = contest.scenes.x[index // 100 * 100 : (index // 100 + 1) * 100]
        probabilities = contest.model.predict(part, 4, 5)[index % 100].astype(np.float64)
        networks.append(float(metrics.top2_error(probabilities[None], np.array([truth]))[0]))
        state = contest.following(state)
    assert state.tally.scenes == 3
    assert state.tally.your_error == pytest.approx(np.mean(yours))
    assert state.tally.network_error == pytest.approx(np.mean(networks))


def test_a_scene_is_answered_once_and_can_be_passed_over(contest: Contest) -> None:
    first = contest.answered(Round(seed=1), [1, 2])
    assert contest.answered(first, [3, 4]) is first
    passed = contest.following(contest.following(first))
    assert (passed.position, passed.tally, passed.answer) == (2, first.tally, ())


def test_every_scene_comes_before_one_comes_again(contest: Contest) -> None:
    seen = {contest.index(Round(seed=5, position=position)) for position in range(len(contest.scenes))}
    assert len(seen) == len(contest.scenes)


def test_scenes_of_one_digit_make_no_test(contest: Contest) -> None:
    images, labels = data.fixture_digits("test")
    with pytest.raises(ValueError, match="two classes each"):
        Contest(data.texture_mnist(1, "test", 0, images=images, labels=labels, n=3), contest.model)
