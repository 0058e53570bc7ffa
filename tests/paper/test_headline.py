"""The README's table, from records made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paper.headline import headline_table


def write(folder: Path, name: str, depth: str = "up-left", **test: Any) -> None:
    folder.mkdir(exist_ok=True)
    content = {"config": {"data": {"name": name[:15], "depth": depth}}, "test": test}
    (folder / f"{name}.json").write_text(json.dumps(content))


def test_figures_of_the_last_iteration_stand_beside_the_papers(tmp_path: Path) -> None:
    one, two = tmp_path / "table1", tmp_path / "table2"
    write(one, "shapes", ami=[[0.1, 0.7], [0.1, 0.75], [0.1, 0.9]])
    write(one, "shapes-layernorm", ami=[[0.1, 0.98]], cost=[[0.1, 0.05]])
    write(one, "shapes-best", ami=[[0.1, 0.99]], cost=[[0.1, 0.04]])
    write(two, "texture-mnist-2-labels-50k", error=[[0.5, 0.1], [0.5, 0.12]])
    write(two, "texture-mnist-2-best-labels-50k", error=[[0.5, 0.03]])
    write(two, "texture-mnist-1-reader-labels-1k", error=[[0.5, 0.03]])  # not the paper's method
    write(two, "texture-mnist-2-labels-1k", "random", error=[[0.5, 0.03]])  # not the paper's data
    assert headline_table(tmp_path).splitlines()[2:] == [
        "| Shapes, BatchNorm | AMI | 0.79 ± 0.034 | 0.750 | −0.040 ± 0.076 | 3 | - |",
        "| Shapes, LayerNorm | AMI | 0.97 ± 0.009 | 0.980 | +0.010 ± 0.003 | 1 | 0.990 |",
        "| Shapes, LayerNorm | denoising cost | 0.054 | 0.050 | −0.0040 ± 0.0000 | 1 | 0.040 |",
        "| TextureMNIST1, 50,000 labels | error (%) | 4.0 ± 0.3 | - | - | - | - |",
        "| TextureMNIST1, 1,000 labels | error (%) | 10.5 ± 0.9 | - | - | - | - |",
        "| TextureMNIST2, 50,000 labels | error (%) | 7.9 ± 0.3 | 11.00 ± 1.41 | +3.10 ± 1.01 | 2 | 3.00 ± 0.00 |",
        "| TextureMNIST2, 1,000 labels | error (%) | 24.9 ± 1.8 | - | - | - | - |",
    ]
