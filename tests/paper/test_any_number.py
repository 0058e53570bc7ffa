"""One model for any number of objects: its cells are those of plain evaluation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paper.any_number import OBJECTS, SPARE, any_number, cell_of, summary_lines, usual_groups
from paper.generalisation import draw_shapes
from paper.quick import sized_config
from paper.removal import removal
from taggernet.evaluation import evaluate_weights, stack_weights
from taggernet.recipes import recipe
from taggernet.training.loop import train_to_end


def test_its_cells_are_those_of_each_model_alone() -> None:
    config = sized_config(recipe("shapes-any"), 2, "cpu", quick=True)
    config = replace(config, optimiser=replace(config.optimiser, updates=2))
    record = any_number(config, scenes=6)
    assert record["valid"] != record["test"]
    run = train_to_end(config, None)
    for split, objects, groups in (("valid", 1, 4), ("test", 5, SPARE)):
        scenes = draw_shapes(config.data, 6, 0, objects, split)
        cell = cell_of(record, split, objects, groups)
        for seed in range(2):
            model = run.model(seed)
            weights = stack_weights([model])
            alone = evaluate_weights(model, weights, scenes, groups=groups, iterations=config.test_iterations).metrics()
            assert cell["cost"][seed] == pytest.approx(alone["cost"][0][-1], rel=1e-5)
            assert cell["ami"][seed] == pytest.approx(alone["ami"][0][-1], abs=1e-6)
    three = draw_shapes(config.data, 6, 0, 3, "valid")
    assert record["valid"]["objects_kept"][1] == removal(run.model(1), three, 4, config.test_iterations)["objects_kept"]


def test_the_summary_has_a_line_for_each_number_of_objects() -> None:
    cells = [
        {"objects": j, "groups": k, "ami": [0.5 + j / 100, 0.5 + j / 100], "cost": [0.1, 0.3]}
        for j in OBJECTS
        for k in (usual_groups(j), SPARE)
    ]
    record = {"seeds": [0, 1], "iterations": 5, "valid": {"cells": cells, "objects_kept": [0.02, 0.04]}}
    lines = summary_lines(record)
    assert lines[0].startswith("valid, n = 2, T = 5")
    assert lines[3] == "3 objects  K = 4: 0.5300 ± 0.0000 (0.2000 ± 0.1414)  K = 8: 0.5300 ± 0.0000 (0.2000 ± 0.1414)"
    assert lines[-1].endswith("3.0 ± 1.4 %")
