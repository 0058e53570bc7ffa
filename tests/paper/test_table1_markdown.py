"""Table 1 as markdown, from records made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paper.table1_markdown import table1


def record(ami: list[list[float]], cost: list[list[float]]) -> dict[str, Any]:
    more = {"ami_arithmetic": ami, "ari": ami}
    return {"seeds": list(range(len(ami))), "coincident_share": 0.0081, "test": {"ami": ami, "cost": cost, **more}}


THREE = {
    "objects": 3,
    "scenes": 640,
    "entropy": {"mean": 0.0133, "standard_error": 0.0007},
    "ami": {"mean": 0.9985, "standard_error": 0.001},
}


def test_medians_stand_beside_the_papers(tmp_path: Path) -> None:
    ami = [[0.5, 0.7, 0.7, 0.7, last] for last in (0.70, 0.75, 0.90)]
    (tmp_path / "shapes.json").write_text(json.dumps(record(ami, [[0.1] * 5] * 3)))
    (tmp_path / "shapes-best.json").write_text(json.dumps(record([[0.9] * 5] * 2, [[0.05] * 5] * 2)))
    seeds = [{"test": {"ami": a, "ami_arithmetic": a, "ari": a}} for a in (0.6, 0.7)]
    (tmp_path / "rc.json").write_text(json.dumps({"modes": {"single_shapes": {"seeds": seeds}}}))
    text = table1(tmp_path)
    assert "| Tagger (BatchNorm) | AMI, ours (n=3) | 0.500 | 0.700 | 0.700 | 0.700 | 0.750 |" in text
    assert "|  | AMI, paper (n=20) | 0.58 | 0.73 | 0.77 | 0.79 | 0.79 |" in text
    assert (
        "|  | difference | −0.080 ± 0.000 | −0.030 ± 0.000 | −0.070 ± 0.000 | −0.090 ± 0.000 | −0.040 ± 0.075 |" in text
    )
    assert "| Tagger (BatchNorm) | 0.79 ± 0.034 | 0.750 | −0.040 ± 0.076 | 3 | 0.783 ± 0.104 |" in text
    assert "| Tagger, our best recipe (half the width) | - | 0.900 | - | 2 | 0.900 ± 0.000 |" in text
    assert "| RC, trained on single shapes | 0.61 ± 0.005 | 0.650 | +0.040 ± 0.063 | 2 | 0.650 ± 0.071 |" in text
    assert "0.81 % of the test scenes have two shapes exactly on top of each other." in text
    assert "](" not in text
    linked = table1(tmp_path, "..")
    assert "([recipe](../src/taggernet/recipes/shapes.py), [record](../results/table1/shapes.json))" in linked
    assert "([recipe](../paper/rc/run.py), [record](../results/table1/rc.json))" in linked


def test_the_limit_has_a_column_and_a_row(tmp_path: Path) -> None:
    (tmp_path / "shapes.json").write_text(json.dumps(record([[0.5] * 5], [[0.1] * 5])))
    (tmp_path / "bayes-limit.json").write_text(json.dumps({"limits": [{"objects": 1}, THREE]}))
    text = table1(tmp_path)
    assert "| iter 5 | limit |" in text
    assert "| denoising cost, ours (n=1) | 0.100 | 0.100 | 0.100 | 0.100 | 0.100 | 0.013 |" in text
    assert "| AMI, ours (n=1) | 0.500 | 0.500 | 0.500 | 0.500 | 0.500 | 0.999 |" in text
    assert "| Bayes limit | - | 0.9985 ± 0.0010 | - | - | - | - | - | 0.0133 ± 0.0007 |" in text
    assert "over 640 test scenes" in text
    assert "([recipe](../benchmarks/bayes_limit.py), [record](../results/table1/bayes-limit.json))" in table1(
        tmp_path, ".."
    )
    controlled = THREE | {"entropy_with_control": {"mean": 0.02, "standard_error": 0.001}}
    (tmp_path / "bayes-limit.json").write_text(json.dumps({"limits": [controlled]}))
    assert "| 0.0200 ± 0.0010 |" in table1(tmp_path)


def test_a_folder_without_records_has_no_table(tmp_path: Path) -> None:
    assert table1(tmp_path).strip() == ""
