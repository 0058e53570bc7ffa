"""The field's own benchmarks at toy size, and the scores against scikit-learn."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from paper import objects, table1
from paper.objects import (
    IMAGES,
    ROWS,
    foreground_ari,
    kmeans_of_values,
    reproduce_objects,
    seconds_per_seed,
    seed_scores,
    slot_attention_for,
    untrained,
)
from paper.quick import quick_config
from taggernet import data
from taggernet.fileio import read_json
from taggernet.recipes import recipe

RESULTS = Path(__file__).parents[2] / "results" / "objects"


def test_every_method_leaves_a_record_and_none_is_made_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("slot_attention", reason="needs the extra 'slots'")
    options = {"rows": ("tetrominoes",), "seeds": 2, "slot_seeds": 1, "quick": True, "device": "cpu"}
    reproduce_objects(tmp_path, None, **options)  # type: ignore[arg-type]
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(made) == {"tetrominoes.json", "tetrominoes.png", "untrained-tetrominoes.json", "slots-tetrominoes.json"}
    tagger, slots = (read_json(tmp_path / f"{name}.json") for name in ("tetrominoes", "slots-tetrominoes"))
    assert (len(seed_scores(tagger)), len(seed_scores(slots))) == (2, 1)
    assert tagger["training_seconds"] == pytest.approx(2 * seconds_per_seed(tagger))
    assert slots["config"]["data"]["size"] == tagger["config"]["data"]["size"]
    for module, name in ((table1, "train_to_end"), (objects, "run_slot_attention"), (objects, "untrained")):
        monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("its record is there"))
    reproduce_objects(tmp_path, None, **options)  # type: ignore[arg-type]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == made


@pytest.mark.parametrize("name", ROWS)
def test_what_needs_no_training(name: str) -> None:
    """Clean sprites have one colour each, which k-means finds."""
    found = untrained(quick_config(recipe(name)))["test"]
    assert set(found) == {"values", "start"}
    if name in ("sprites", "sprites-ladder", "sprites-ladder-permuted"):
        assert found["values"]["mean"] > 0.95
    assert all(0 <= one["standard_error"] < 0.1 for one in found.values())


def test_the_score_is_that_of_scikit_learn_without_the_background() -> None:
    scenes = data.sprites(5, seed=0, size=16, split="valid")
    labels = np.random.default_rng(0).integers(0, 3, (5, 256))
    assert scenes.groups is not None
    for true, found, score in zip(scenes.groups.reshape(5, -1), labels, foreground_ari(scenes, labels), strict=True):
        assert score == pytest.approx(adjusted_rand_score(true[true > 0], found[true > 0]))


def test_fewer_values_than_groups_are_no_problem() -> None:
    scenes = data.sprites(4, seed=0, size=16, variant="one-colour", split="valid")
    assert set(np.unique(kmeans_of_values(scenes, 6))) == {0, 1}


def test_slot_attention_sees_the_data_of_the_recipe() -> None:
    config = recipe("sprites-texture")
    run = slot_attention_for("sprites-texture", config.data, 3, "cpu")
    assert (run.data, run.groups, run.seeds) == (config.data, config.test_groups, 3)
    assert slot_attention_for("tetrominoes", config.data, 1, "cpu").optimiser.updates == 60_000


@pytest.mark.parametrize("name", IMAGES)
def test_the_records_of_slot_attention_are_those_that_the_command_makes(name: str) -> None:
    """Updates, rate and warm-up; the rates that were not taken are kept, and lower on validation."""
    recorded = read_json(RESULTS / f"slots-{name}.json")
    made = asdict(slot_attention_for(name, recipe(name).data, 1, "cpu").optimiser)
    assert {field: made[field] for field in recorded["config"]["optimiser"]} == recorded["config"]["optimiser"]
    rates = [read_json(path) for path in sorted((RESULTS / "slot-rates").glob(f"{name}-[0-9]*.json"))]
    best = {
        record["config"]["optimiser"]["lr"]: record["summary"]["valid"]["ari_foreground"]["mean"] for record in rates
    }
    assert not best or max(best, key=best.__getitem__) == made["lr"]
