"""The tables of any number of objects and of attention say what their records hold."""

from __future__ import annotations

from pathlib import Path

from paper.any_number import OBJECTS, SEVERAL, SPARE, usual_groups
from paper.any_number_markdown import any_number_table, attention_table
from taggernet.fileio import write_json


def test_each_number_of_objects_has_a_row_with_its_limit(tmp_path: Path) -> None:
    cells = [
        {"objects": j, "groups": k, "cost": [[0.1] * 8, [0.3] * 8], "ami": [[0.5] * 4 + [j / 10] * 3 + [k / 10]] * 2}
        for j in OBJECTS
        for k in (usual_groups(j), SPARE)
    ]
    several = [
        {"objects": j, "groups": usual_groups(j), "iterations": t, "ami": [t / 10] * 2, "cost": [t / 100] * 2}
        for j in SEVERAL
        for t in (5, 8)
    ]
    kept = {"5": [0.1, 0.1], "8": [0.01, 0.03]}
    test = {"scenes": 2_000, "cells": cells, "objects_kept": kept, "several_starts": several}
    write_json(tmp_path / "any-number.json", {"seeds": [0, 1], "starts": 8, "test": test})
    limits = [{"objects": 1, "entropy": {"mean": 0.00091}}]
    write_json(tmp_path / "bayes-limit.json", {"limits": limits})
    lines = any_number_table(tmp_path, "..").splitlines()
    spread = "0.2000 ± 0.1414"
    assert lines[2] == (
        f"| 1, K = 4 | 0.0009 | {spread} | {spread} | 0.0500 ± 0.0000 | 0.100 ± 0.000 | 0.400 ± 0.000 | "
        "0.500 ± 0.000 | 0.800 ± 0.000 |"
    )
    assert lines[3].startswith(f"| 2, K = 4 |  | {spread} | {spread} |  | 0.200 ± 0.000 |")
    assert len(lines) == 2 + len(OBJECTS) + 2
    assert "over 2 seeds, 2,000 test scenes" in lines[-1]
    assert lines[-1].endswith("10.0 ± 0.0 % with T = 5, 2.0 ± 1.4 % with T = 8.")


def test_attention_stands_beside_none(tmp_path: Path) -> None:
    def run(cost: float) -> dict[str, object]:
        valid = {"cost": [[1.0, cost], [1.0, cost]], "ami": [[0.0, 0.9], [0.0, 0.7]]}
        return {"config": {"optimiser": {"updates": 20_000}}, "valid": valid}

    write_json(tmp_path / "toy.json", {"seeds": 2, "without": run(0.1), "with": run(0.2)})
    row = attention_table(tmp_path).splitlines()[-1]
    assert row.endswith("| 20,000 | 2 | 0.100 ± 0.000 | 0.200 ± 0.000 | 0.800 ± 0.141 | 0.800 ± 0.141 |")
    assert "results/group_attention/toy.json" in row
