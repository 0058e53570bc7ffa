"""Scores per scene against scikit-learn, the expectation against every deal there is, and properties."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from labellings import ONE, SCORES, noisy_labels
from numpy.typing import NDArray
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score, mutual_info_score

from taggernet.metrics import (
    adjusted_mutual_information,
    adjusted_rand_index,
    ami,
    contingency,
    foreground_adjusted_rand_index,
)

Labels = NDArray[np.int64]
AVERAGES = get_args(ami.Average)


def sklearn_ami(true: Labels, pred: Labels, unscored: int | None, average: str) -> NDArray[np.float64]:
    scores = []
    for labels, groups in zip(true.reshape(len(true), -1), pred.reshape(len(pred), -1), strict=True):
        scored = np.full(labels.shape, True) if unscored is None else labels != unscored
        scores.append(adjusted_mutual_info_score(labels[scored], groups[scored], average_method=average))
    return np.array(scores)


def sklearn_ari(true: Labels, pred: Labels, unscored: int | None) -> NDArray[np.float64]:
    keep = [np.full(row.shape, True) if unscored is None else row != unscored for row in true]
    rows = zip(true, pred, keep, strict=True)
    return np.array([adjusted_rand_score(row[k], groups[k]) for row, groups, k in rows])


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize(
    ("elements", "labels", "groups"),
    [(40, 1, 3), (40, 3, 1), (400, 3, 4), (400, 3, 12), (784, 2, 8), (784, 50, 40), (60, 40, 5)],
)
def test_ami_equals_scikit_learn(average: ami.Average, elements: int, labels: int, groups: int) -> None:
    true, pred = noisy_labels(30, elements, labels, groups, seed=elements + groups)
    for unscored in (0, None):
        found = adjusted_mutual_information(true, pred, unscored, average)
        np.testing.assert_allclose(found, sklearn_ami(true, pred, unscored, average), rtol=0, atol=1e-9)


@pytest.mark.parametrize(("elements", "labels", "groups"), [(5, 2, 3), (400, 3, 4), (784, 50, 40), (60, 40, 5)])
def test_ari_equals_scikit_learn(elements: int, labels: int, groups: int) -> None:
    true, pred = noisy_labels(30, elements, labels, groups, seed=elements)
    for unscored in (0, None):
        found = adjusted_rand_index(true, pred, unscored)
        np.testing.assert_allclose(found, sklearn_ari(true, pred, unscored), rtol=0, atol=1e-9)


@pytest.mark.parametrize("background", [0, 1, 300])
def test_foreground_ari_equals_scikit_learn_without_background_and_unscored(background: int) -> None:
    true, pred = noisy_labels(30, 400, 5, 4, seed=background)
    objects = [(row != 0) & (row != background) for row in true]
    expected = [adjusted_rand_score(t[k], p[k]) for t, p, k in zip(true, pred, objects, strict=True)]
    for kind in (np.int64, np.uint8):
        found = foreground_adjusted_rand_index(true.astype(kind), pred, background)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_foreground_ari_does_not_see_where_the_background_goes() -> None:
    true = np.array([[1, 1, 1, 1, 2, 2, 3, 3]])
    for pred in ([0, 0, 0, 0, 1, 1, 2, 2], [1, 1, 2, 2, 1, 1, 2, 2], [3, 4, 5, 6, 1, 1, 2, 2]):
        assert foreground_adjusted_rand_index(true, np.array([pred]), background=1) == 1
    assert foreground_adjusted_rand_index(true, np.array([[0, 0, 0, 0, 1, 1, 1, 1]]), background=1) == 0


EDGES: dict[str, tuple[list[int], list[int], float]] = {
    "one label, one group": ([1, 1, 1, 0], [2, 2, 2, 5], 1.0),
    "one label, several groups": ([1, 1, 1, 0], [2, 3, 2, 5], 0.0),
    "several labels, one group": ([1, 2, 1, 0], [4, 4, 4, 4], 0.0),
    "all unscored": ([0, 0, 0, 0], [1, 2, 3, 4], 1.0),
    "one element scored": ([0, 0, 3, 0], [1, 2, 3, 4], 1.0),
    "a label per element in both": ([1, 2, 3, 4], [9, 7, 5, 3], 1.0),
    "a group per element": ([1, 1, 2, 2], [1, 2, 3, 4], 0.0),
    "the same parts, other names": ([1, 1, 2, 3], [8, 8, -1, 0], 1.0),
}


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("edge", EDGES)
def test_edges_are_exact_and_scikit_learns(edge: str, average: ami.Average) -> None:
    true, pred = (np.array([labels]) for labels in EDGES[edge][:2])
    rounding = edge == "a group per element" and average == "min"
    expected = 1.0 if rounding else EDGES[edge][2]
    assert adjusted_mutual_information(true, pred, 0, average).tolist() == [expected]
    if not rounding:  # scikit-learn divides one rounding error by another there: 1 only where both vanish
        np.testing.assert_allclose(sklearn_ami(true, pred, 0, average), [expected], rtol=0, atol=1e-9)


@pytest.mark.parametrize("edge", EDGES)
def test_rand_edges_are_scikit_learns(edge: str) -> None:
    true, pred = (np.array([labels]) for labels in EDGES[edge][:2])
    np.testing.assert_array_equal(adjusted_rand_index(true, pred), sklearn_ari(true, pred, 0))


@pytest.mark.parametrize("score", SCORES)
def test_empty_scenes_score_one_and_no_scenes_give_no_scores(score: Callable[..., Any]) -> None:
    empty = np.zeros((3, 0), dtype=np.int64)
    assert score(empty, empty).tolist() == [1.0, 1.0, 1.0]
    assert score(np.zeros((0, 4, 4), dtype=np.int64), np.zeros((0, 4, 4), dtype=np.int64)).shape == (0,)


def test_expected_mutual_information_is_the_mean_over_all_deals() -> None:
    true, pred = [0, 0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 1, 1, 2]
    deals = [mutual_info_score(true, deal) for deal in set(permutations(pred))]
    found = ami.expected_mutual_information(torch.tensor([[3, 2, 2]]), torch.tensor([[2, 4, 1, 0]]), torch.tensor([7]))
    np.testing.assert_allclose(found.item(), np.mean(deals), rtol=0, atol=1e-12)


def test_scenes_too_large_for_a_shared_key_are_summed_alike() -> None:
    elements = 2**21
    true = np.zeros((1, elements), dtype=np.uint8)
    true[0, :60] = 1
    assert adjusted_mutual_information(true, np.roll(true, 30), None)[0] == pytest.approx(
        adjusted_mutual_info_score(true[0], np.roll(true, 30)[0], average_method="max"), abs=1e-9
    )


def test_blocks_of_scenes_do_not_change_the_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    true, pred = noisy_labels(23, 50, 5, 6, seed=1)
    whole = adjusted_mutual_information(true, pred), adjusted_rand_index(true, pred)
    for module in (ami, contingency):
        monkeypatch.setattr(module, "block_size", lambda device: 120)
    parts = adjusted_mutual_information(true, pred), adjusted_rand_index(true, pred)
    np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-14)


labels = hnp.arrays(np.int64, st.tuples(st.just(1), st.integers(1, 30)), elements=st.integers(-2, 4))


@st.composite
def labellings(draw: st.DrawFn) -> tuple[Labels, Labels]:
    true = draw(labels)
    return true, draw(hnp.arrays(np.int64, true.shape, elements=st.integers(-2, 4)))


@given(labellings(), st.sampled_from(AVERAGES))
def test_scores_are_symmetric_and_at_most_one(pair: tuple[Labels, Labels], average: ami.Average) -> None:
    true, pred = pair
    found = adjusted_mutual_information(true, pred, None, average)
    np.testing.assert_allclose(adjusted_mutual_information(pred, true, None, average), found, rtol=0, atol=1e-12)
    assert -1 <= found[0] <= 1 + 1e-9
    rand = adjusted_rand_index(true, pred, None)
    np.testing.assert_allclose(adjusted_rand_index(pred, true, None), rand, rtol=0, atol=1e-12)
    assert -0.5 <= rand[0] <= 1


@given(labellings(), st.permutations(range(-2, 5)), st.sampled_from(SCORES))
def test_the_names_of_groups_do_not_matter(
    pair: tuple[Labels, Labels], names: list[int], score: Callable[..., Any]
) -> None:
    true, pred = pair
    renamed = np.array(names)[pred + 2]
    np.testing.assert_allclose(score(true, renamed), score(true, pred), rtol=0, atol=1e-12)


@given(labellings(), st.data(), st.sampled_from(SCORES))
def test_the_order_of_elements_and_what_is_unscored_do_not_matter(
    pair: tuple[Labels, Labels], data: st.DataObject, score: Callable[..., Any]
) -> None:
    true, pred = pair
    order = data.draw(st.permutations(range(true.shape[1])))
    shuffled = np.where(true == 0, 99, pred)[:, order]
    np.testing.assert_allclose(score(true[:, order], shuffled), score(true, pred), rtol=0, atol=1e-12)


@given(labels, st.sampled_from(SCORES))
def test_a_perfect_prediction_scores_exactly_one(true: Labels, score: Callable[..., Any]) -> None:
    assert score(true, true * 3 + 1).tolist() == [1.0]


@pytest.mark.usefixtures("without_typecheck")
def test_wrong_options_are_named_in_one_sentence() -> None:
    with pytest.raises(ValueError, match=r"average is 'mean'.*max, arithmetic, min, geometric"):
        adjusted_mutual_information(ONE, ONE, average="mean")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"unscored is 0\.5.*None to score every element"):
        adjusted_rand_index(ONE, ONE, unscored=0.5)  # type: ignore[arg-type]


def test_all_agreements_at_once_are_those_of_each_function() -> None:
    torch.manual_seed(0)
    true, pred = torch.randint(0, 4, (200, 30)), torch.randint(0, 5, (200, 30))
    pred[:50] = true[:50]  # the same groups
    pred[50:60] = 1  # one label
    found = ami.agreements(true, pred)
    assert torch.equal(found["ami"], adjusted_mutual_information(true, pred))
    assert torch.equal(found["ami_arithmetic"], adjusted_mutual_information(true, pred, average="arithmetic"))
    assert torch.equal(found["ari"], adjusted_rand_index(true, pred))
    assert torch.equal(ami.agreements(true, pred, None)["ami"], adjusted_mutual_information(true, pred, None))
