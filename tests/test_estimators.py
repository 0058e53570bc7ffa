"""scikit-learn's own checks, and what they do not check: labels, pipelines, searches, pickles."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from taggernet.data import Scenes
from taggernet.estimators import TaggerClassifier, TaggerGrouper
from taggernet.evaluation import stack_weights
from taggernet.grouping_report import grouping_report

pytestmark = pytest.mark.usefixtures("without_typecheck")


@parametrize_with_checks([TaggerGrouper(updates=20), TaggerClassifier(updates=20)])
@pytest.mark.filterwarnings("ignore")  # scikit-learn's checks warn of what they try
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def blobs(n: int = 200, seed: int = 0) -> tuple[Any, Any]:
    x, y = make_blobs(n, 6, centers=3, cluster_std=0.5, random_state=seed)
    return x, y


def test_masks_are_flat_shares_of_each_feature() -> None:
    x, _ = blobs()
    grouper = TaggerGrouper(3, updates=5).fit(x)
    masks = grouper.transform(x)
    assert masks.shape == (200, 18)
    np.testing.assert_allclose(masks.reshape(200, 3, 6).sum(1), 1, atol=1e-5)
    out = grouper.group(x)
    np.testing.assert_array_equal(out.masks.reshape(200, -1), masks)
    assert out.reconstructions.shape == (200, 3, 6)
    assert len(out.history) == grouper.test_iterations + 1
    assert len(grouper.get_feature_names_out()) == 18


def test_the_score_is_that_of_the_groups() -> None:
    """Not the likelihood: that of the least noise is always the highest."""
    x, _ = blobs(60)
    grouper = TaggerGrouper(2, updates=20).fit(x)
    model = grouper.model_
    report = grouping_report(
        model, stack_weights([model]), Scenes.of(x), groups=2, iterations=grouper.test_iterations
    )  # fmt: skip
    assert grouper.score(x) == pytest.approx(report.score[0])
    assert 0 <= grouper.score(x) <= 1


def test_few_labels_suffice() -> None:
    x, y = blobs()
    some = np.full_like(y, -1)
    some[:12] = y[:12]
    assert len(set(y[:12])) == 3
    model = TaggerClassifier(updates=80).fit(x, some)
    assert list(model.classes_) == [0, 1, 2]
    assert model.score(x, y) > 0.9
    unlabelled = np.where(np.arange(200) < 50, y, -1)
    assert model.score(x, unlabelled) == np.mean(model.predict(x[:50]) == y[:50])
    one = np.where(y == 1, y, -1)
    assert model.score(x, one) == np.mean(model.predict(x[y == 1]) == 1), "-1 is no class here, whatever else y holds"
    np.testing.assert_allclose(model.predict_proba(x).sum(1), 1)


@pytest.mark.parametrize("labelled", [10, 20, 30])
def test_labels_may_be_fewer_than_a_batch(labelled: int) -> None:
    x, y = blobs(40)
    model = TaggerClassifier(updates=3).fit(x, np.where(np.arange(40) < labelled, y, -1))
    assert set(model.predict(x)) <= {0, 1, 2}


def test_names_and_two_signs_are_classes() -> None:
    x, y = blobs(60)
    names = np.array(["ant", "bee", "cow"])[y]
    assert set(TaggerClassifier(updates=5).fit(x, names).predict(x)) <= set(names)
    signs = np.where(y == 0, -1, 1)
    assert list(TaggerClassifier(updates=5).fit(x, signs).classes_) == [-1, 1]


@pytest.mark.parametrize(
    ("y", "words"), [(np.full(60, -1), "holds no label"), (np.where(np.arange(60) < 9, 2, -1), "one class and -1")]
)
def test_labels_that_teach_nothing_are_refused(y: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TaggerClassifier(updates=5).fit(blobs(60)[0], y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"norm": "none"}, "norm='none'"),
        ({"kind": "odd"}, "kind='odd'"),
        ({"kind": "binary"}, "0 and 1"),
        ({"updates": 0}, "updates=0"),
        ({"n_groups": 0}, "groups=0"),
        ({"widths": (3,)}, "widths"),
        ({"widths": 64}, "widths=64 is not a list"),
        ({"class_cost": 0}, "class_cost=0 must be positive"),
        ({"class_cost": "1"}, "class_cost='1' is not a number"),
    ],
)
def test_bad_parameters_get_one_sentence(options: dict[str, Any], words: str) -> None:
    estimator = TaggerClassifier if "class_cost" in options else TaggerGrouper
    with pytest.raises((ValueError, TypeError), match=words):
        estimator(**options).fit(*blobs(60))


@pytest.mark.parametrize(
    ("scale", "offset", "words"),
    [(0, 3, "every value of x is 3"), (1, 1e9, "subtract the mean"), (1e32, 0, "too large"), (1e-60, 0, "too small")],
)
def test_values_that_cannot_be_told_apart_are_refused(scale: float, offset: float, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TaggerGrouper(updates=2).fit(scale * blobs(60)[0] + offset)


def test_uses_that_cannot_be_get_one_sentence() -> None:
    x, y = blobs(60)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        TaggerGrouper().group(x)
    model = TaggerClassifier(updates=2).fit(x, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(x, y[:5])
    with pytest.raises(ValueError, match="1d array"):
        model.score(x, np.stack([y, y], 1))
    assert model.score(x, y.tolist()) == model.score(x, y)


def test_in_a_pipeline_and_a_search() -> None:
    x, y = blobs(90)
    pipeline = make_pipeline(StandardScaler(), TaggerClassifier(updates=30))
    search = GridSearchCV(pipeline, {"taggerclassifier__n_groups": [1, 2]}, cv=2, error_score="raise").fit(x, y)
    assert search.best_score_ > 0.6
    grouping = GridSearchCV(TaggerGrouper(updates=5), {"noise": [0.2, 0.6]}, cv=2, error_score="raise").fit(x)
    assert grouping.best_params_["noise"] in (0.2, 0.6)
    assert 0 <= grouping.best_score_ <= 1, "a score that can be compared between noises"
    both = make_pipeline(TaggerGrouper(2, updates=5), StandardScaler()).fit_transform(x)
    assert both.shape == (90, 12)


def test_pickles_predict_alike() -> None:
    x, y = blobs(60)
    model = TaggerClassifier(updates=5).fit(x, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(x), model.predict_proba(x))


def test_a_seed_decides_everything() -> None:
    x, _ = blobs(60)
    a, b, c = (TaggerGrouper(2, updates=10, random_state=seed).fit(x).transform(x) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_with_batchnorm_a_sample_depends_on_no_other() -> None:
    """The statistics are frozen after training."""
    x, y = blobs()
    grouper = TaggerGrouper(3, norm="batch", updates=5, test_iterations=3).fit(x)
    assert grouper.model_.config.frozen_iterations == 3
    np.testing.assert_allclose(grouper.transform(x[:1]), grouper.transform(x)[:1], atol=1e-4)
    classifier = TaggerClassifier(norm="batch", updates=5).fit(x, y)
    np.testing.assert_allclose(classifier.predict_proba(x[:1]), classifier.predict_proba(x)[:1], atol=1e-4)


def test_samples_with_a_shape_are_told_to_become_rows() -> None:
    x = np.random.default_rng(0).integers(0, 2, (30, 4, 5)).astype(float)
    sentence = r"X has shape \(30, 4, 5\), but scikit-learn's estimators take rows .*: give X\.reshape\(len\(X\), -1\)"
    with pytest.raises(ValueError, match=sentence):
        TaggerGrouper().fit(x)
    with pytest.raises(ValueError, match=sentence):
        TaggerClassifier().fit(x, np.arange(30) % 2)
    fitted = TaggerGrouper(updates=1).fit(x.reshape(len(x), -1))
    with pytest.raises(ValueError, match=sentence):
        fitted.transform(x)
