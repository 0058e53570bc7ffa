"""The record of a small model: sizes, agreement with the evaluation."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from paper.failure_analysis import KINDS, overlap
from paper.generalisation import OVERLAP_BINS, draw_shapes, generalisation
from taggernet.config.run import DataConfig
from taggernet.data import coincident
from taggernet.evaluation import evaluate_weights, stack_weights
from taggernet.tagger import Tagger, TaggerConfig

DATA = DataConfig(objects=2, size=10, style="small")


def model(seed: int = 0, norm: str = "layer") -> Tagger:
    torch.manual_seed(seed)
    return Tagger(TaggerConfig(shape=(10, 10), widths=(16, 8), norm=norm, mean=0.28))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def record() -> dict[str, object]:
    models = [model(0), model(1)]
    return generalisation(
        models[0], stack_weights(models), scenes=30, groups=(2, 3), objects=(1, 2), iterations=3, batch=20, data=DATA,
        standard=(3, 2, 2),
    )  # fmt: skip


def test_the_record_is_json_and_complete(record: dict) -> None:  # type: ignore[type-arg]
    assert json.loads(json.dumps(record)) == record
    assert [(c["objects"], c["groups"]) for c in record["sweep"]] == [(1, 2), (1, 3), (2, 2), (2, 3)]
    for cell in record["sweep"]:
        for name in ("ami", "ami_arithmetic", "cost", "empty"):
            assert np.array(cell[name]).shape == (2, 3)
        assert 0 <= np.min(cell["empty"]) <= np.max(cell["empty"]) <= cell["groups"] - 1


def test_a_cell_is_what_the_evaluation_finds(record: dict) -> None:  # type: ignore[type-arg]
    models = [model(0), model(1)]
    found = evaluate_weights(
        models[0], stack_weights(models), draw_shapes(DATA, 30, 0, 2), groups=3, iterations=3, batch=20
    )
    metrics = found.metrics()
    cell = record["sweep"][3]
    for name in ("ami", "ami_arithmetic", "cost"):
        np.testing.assert_allclose(cell[name], metrics[name], atol=1e-5)
    assert found.ami is not None
    np.testing.assert_allclose(record["standard"]["ami"], found.ami[:, 1].mean(-1), atol=1e-5)


def test_shares_and_subsets_add_up(record: dict) -> None:  # type: ignore[type-arg]
    standard = record["standard"]
    np.testing.assert_allclose(np.sum([standard["failures"][kind] for kind in KINDS], axis=0), 1, atol=1e-4)
    np.testing.assert_allclose(np.sum(standard["empty_shares"], axis=1), 1, atol=1e-4)
    assert len(standard["overlap"]) == len(OVERLAP_BINS)
    assert sum(one["scenes"] for one in standard["overlap"]) == 30
    whole = np.sum([np.array(b["ami"]) * b["scenes"] for b in standard["overlap"] if b["scenes"]], axis=0) / 30
    np.testing.assert_allclose(whole, standard["ami"], atol=1e-4)
    scenes = draw_shapes(DATA, 30, 0, 2)
    clear = ~coincident(scenes)
    assert sum(one["scenes"] for one in standard["alike"]) == clear.sum() == standard["coincident"]["no"]["scenes"]
    same = scenes.details["kinds"][:, 0] == scenes.details["kinds"][:, 1]
    assert standard["alike"][1]["scenes"] == (same & clear).sum()
    assert standard["overlap"][0]["scenes"] == (overlap(scenes) == 0).sum()
    assert all(one["ami"] is None for one in standard["overlap"] if not one["scenes"])


def test_worst_scenes_are_the_worst_of_their_kind(record: dict) -> None:  # type: ignore[type-arg]
    ami = evaluate_weights(
        model(0),
        stack_weights([model(0), model(1)]),
        draw_shapes(DATA, 30, 0, 2),
        groups=3,
        iterations=2,
        batch=20,
    ).ami
    assert ami is not None
    for seed, kinds in enumerate(record["standard"]["worst"]):
        assert set(kinds) == set(KINDS) - {"perfect"}
        for found in kinds.values():
            scores = [one["ami"] for one in found]
            assert scores == sorted(scores)
            np.testing.assert_allclose(scores, [ami[seed, 1, one["scene"]] for one in found], atol=1e-5)
