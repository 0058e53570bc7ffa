"""Tables of counts against scikit-learn, labels of any size, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from labellings import ONE, SCORES, noisy_labels
from scipy.stats import entropy as scipy_entropy
from sklearn.metrics.cluster import contingency_matrix

from taggernet.metrics import contingency
from taggernet.metrics.contingency import Contingency, contingencies, entropy


@pytest.mark.parametrize("score", SCORES)
def test_labels_far_apart_and_negative_count_like_small_ones(score: Callable[..., Any]) -> None:
    true, pred = noisy_labels(10, 80, 3, 4, seed=2)
    far = np.array([0, -(2**63), 2**63 - 1, 12345])
    np.testing.assert_allclose(score(far[true], far[pred]), score(true, pred), rtol=0, atol=1e-12)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(
    ("true", "pred", "error", "message"),
    [
        (
            ONE,
            ONE[:, :2],
            ValueError,
            r"shape \(2, 3\) and pred \(2, 2\).*one predicted label per true label",
        ),
        (ONE[0], ONE[0], ValueError, r"shape \(3,\).*true\[None\]"),
        (ONE, ONE.astype(float), TypeError, "pred has dtype torch.float64.*argmax"),
        (ONE.astype(np.float32), ONE, TypeError, "true has dtype torch.float32.*integers"),
        (ONE.astype(str), ONE, TypeError, "true has dtype <U21.*numbers"),
        (ONE, torch.tensor(ONE), TypeError, "true is a numpy array and pred is a tensor on cpu.*convert"),
    ],
)
def test_wrong_labels_are_named_in_one_sentence(
    score: Callable[..., Any], true: object, pred: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        score(true, pred)


def nonzero_rows_and_columns(table: Any) -> Any:
    return table[table.any(1)][:, table.any(0)]


@pytest.mark.parametrize("labels", [4, 60])
@pytest.mark.parametrize("unscored", [None, 0])
def test_tables_are_scikit_learns(labels: int, unscored: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """More labels than 32 are numbered per scene; blocks of a few scenes are one table each."""
    monkeypatch.setattr(contingency, "block_size", lambda device: 3 * labels * 7)
    true, pred = noisy_labels(10, 50, labels, 6, seed=labels)
    blocks = list(contingencies(torch.from_numpy(true), torch.from_numpy(pred), unscored))
    assert len(blocks) > 1
    tables = [table for block in blocks for table in block.table.numpy()]
    for row, groups, table in zip(true, pred, tables, strict=True):
        kept = np.full(row.shape, True) if unscored is None else row != unscored
        expected = contingency_matrix(row[kept], groups[kept])
        np.testing.assert_array_equal(nonzero_rows_and_columns(table), expected)


def test_sizes_and_entropies_of_a_table() -> None:
    counts = Contingency(torch.tensor([[[3, 0], [1, 2]], [[4, 0], [0, 2]], [[0, 0], [0, 0]]]))
    assert counts.true_sizes.tolist() == [[3, 3], [4, 2], [0, 0]]
    assert counts.pred_sizes.tolist() == [[4, 2], [4, 2], [0, 0]]
    assert counts.elements.tolist() == [6, 6, 0]
    assert counts.identical.tolist() == [False, True, True]
    found = entropy(counts.pred_sizes, counts.elements)
    np.testing.assert_allclose(found, [scipy_entropy([4, 2]), scipy_entropy([4, 2]), 0.0], atol=1e-12)


def test_values_in_place_of_labels_are_refused() -> None:
    values = torch.arange(5000)[None]
    with pytest.raises(ValueError, match=r"up to 5,000 true and 5,000 predicted labels.*are these labels, or values"):
        list(contingencies(values, values, None))
