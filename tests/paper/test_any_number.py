"""One model for any number of objects: its cells are those of plain evaluation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from paper.any_number import AFTER, OBJECTS, SEVERAL, SPARE, any_number, cell_of, several_starts, summary_lines
from paper.any_number import usual_groups as usual
from paper.generalisation import draw_shapes
from paper.quick import sized_config
from paper.records import same_config
from paper.removal import removal
from taggernet.config.run import Config
from taggernet.evaluation import evaluate_weights, stack_weights
from taggernet.fileio import read_json
from taggernet.metrics import adjusted_mutual_information
from taggernet.recipes import recipe
from taggernet.rng import Key
from taggernet.tagger import Tagger
from taggernet.training.loop import train_to_end


def toy(name: str) -> Config:
    config = sized_config(recipe(name), 2, "cpu", quick=True)
    return replace(config, optimiser=replace(config.optimiser, updates=2))


def test_its_cells_are_those_of_each_model_alone(tmp_path: Path) -> None:
    first, then = toy("shapes-any"), toy("shapes-any-refined")
    record = any_number(first, then, scenes=10, out=tmp_path / "run")
    assert record["valid"] != record["test"]
    run = train_to_end(then, start=train_to_end(first).weights)
    for split, objects, groups, scenes in (("valid", 1, 4, 2), ("test", 5, SPARE, 10)):
        drawn = draw_shapes(then.data, scenes, 0, objects, split)
        cell = cell_of(record, split, objects, groups)
        for seed in range(2):
            model = run.model(seed)
            alone = evaluate_weights(model, stack_weights([model]), drawn, groups=groups, iterations=8).metrics()
            np.testing.assert_allclose(cell["cost"][seed], alone["cost"][0], rtol=1e-5)
            np.testing.assert_allclose(cell["ami"][seed], alone["ami"][0], atol=1e-6)
    three = draw_shapes(then.data, 10, 0, 3, "test")
    assert record["test"]["objects_kept"]["8"][1] == removal(run.model(1), three, 4, 8)["objects_kept"]
    saved = Tagger.from_pretrained(tmp_path / "run" / "seed-1")
    torch.testing.assert_close(saved.mapping.W_h.weight, run.model(1).mapping.W_h.weight)


def test_several_starts_are_compared_scene_by_scene() -> None:
    """Against each start by itself: the best by its cost on clean input, and the mean of q(x) on corrupted input."""
    model = Tagger.from_pretrained("shapes")
    scenes = draw_shapes(recipe("shapes-any").data, 6, 0, 3, "valid")
    x, key = torch.from_numpy(scenes.x).reshape(6, -1), Key.of(0).fold("evaluation")
    labels, costs, q = [], [], []
    with torch.no_grad():
        for start in range(3):
            masks = key.fold("masks").fold(start) if start else key.fold("masks")
            *_, clean = model.states(x, 4, 3, masks)
            labels.append(clean.m.argmax(1).numpy())
            costs.append(model.cost(x, clean).mean(-1).numpy())
            *_, noisy = model.states(x, 4, 3, key.fold("masks").fold(start), noise=key.fold("noise"))
            q.append((noisy.m * noisy.z).sum(1).double().numpy())
    found = several_starts(model, scenes, 4, 3, batch=4, starts=3)
    best = np.stack(labels)[np.argmin(costs, 0), np.arange(6)]
    assert found["ami"] == pytest.approx(
        adjusted_mutual_information(scenes.groups.reshape(6, -1), best).mean(), abs=1e-6
    )
    seen = np.where(scenes.x.reshape(6, -1) > 0, np.mean(q, 0), 1 - np.mean(q, 0))
    assert found["cost"] == pytest.approx(-np.log(seen * (1 - 2e-4) + 1e-4).mean(), rel=1e-4)


def test_the_summary_has_a_line_for_each_number_of_objects() -> None:
    def curve(value: float) -> list[list[float]]:
        return [[value] * max(AFTER)] * 2

    cells = [
        {"objects": j, "groups": k, "ami": curve(0.5 + j / 100), "cost": curve(0.2)}
        for j in OBJECTS
        for k in (usual(j), SPARE)
    ]
    several = [
        {"objects": j, "groups": usual(j), "iterations": 5, "ami": [0.9, 0.9], "cost": [0.1, 0.3]} for j in SEVERAL
    ]
    found = {"cells": cells, "objects_kept": {str(t): [0.02, 0.04] for t in AFTER}, "several_starts": several}
    lines = summary_lines({"seeds": [0, 1], "starts": 8, "valid": found})
    assert lines[0].startswith("valid, n = 2, T = 5")
    assert lines[3] == "3 objects  K = 4: 0.5300 ± 0.0000 (0.2000 ± 0.0000)  K = 8: 0.5300 ± 0.0000 (0.2000 ± 0.0000)"
    assert lines[6].endswith("3.0 ± 1.4 %")
    assert lines[-1] == "5 objects, K = 6, T = 5, 8 starts: 0.9000 ± 0.0000 (0.2000 ± 0.1414)"


def test_the_record_is_of_its_recipes() -> None:
    path = Path(__file__).parents[2] / "results" / "table1" / "any-number.json"
    record = read_json(path)
    for name, content in (("shapes-any", record["first_phase"]["config"]), ("shapes-any-refined", record["config"])):
        assert same_config(replace(recipe(name), seeds=len(record["seeds"])), content, path)
