"""The committed records: each is of the recipe that bears its name, so a table is what its command would make."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from paper.baselines import BASELINES
from paper.baselines.run import same_config as same_baseline_config
from paper.records import same_config
from paper.table2_cells import ROWS, chosen_families
from taggernet.fileio import read_json
from taggernet.recipes import RECIPES

RESULTS = Path(__file__).parents[2] / "results"
RECORDS = sorted(path for table in ("table1", "table2", "objects") for path in (RESULTS / table).glob("*.json"))
CONFIGS = {name: make() for name, make in RECIPES.items()}
CONFIGS |= {config.recipe: config for first, seconds in chosen_families(ROWS) for config in (first, *seconds)}
TAGGERS = [path for path in RECORDS if path.stem in CONFIGS]
OTHERS = [path for path in RECORDS if path.stem in BASELINES]


def test_there_are_records() -> None:
    assert len(TAGGERS) > 15
    assert len(OTHERS) > 10


@pytest.mark.parametrize("path", TAGGERS, ids=lambda path: path.stem)
def test_the_record_of_a_tagger_is_of_its_recipe(path: Path) -> None:
    record = read_json(path)
    count = len(record["seeds"])
    assert same_config(replace(CONFIGS[path.stem], seeds=count), record["config"], path)
    if "first_phase" in record:
        first = record["first_phase"]
        assert same_config(replace(CONFIGS[first["recipe"]], seeds=count), first, path)
    errors = record["test"].get("error", record["test"]["ami"])
    assert [len(row) for row in errors] == [len(errors[0])] * count


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.stem)
def test_the_record_of_a_baseline_is_of_its_recipe(path: Path) -> None:
    record = read_json(path)
    count = len(record["seeds"])
    assert same_baseline_config(replace(BASELINES[path.stem], seeds=count), record["config"])
    assert len(record["test"]["error"]) == len(record["chosen_update"]) == count
