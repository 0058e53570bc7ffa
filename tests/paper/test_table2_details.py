"""What stands behind Table 2, from records made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from table2_records import record, write

from paper.class_analysis import ANSWERS, holders
from paper.table2_cells import baseline_name, tagger_name
from paper.table2_details import label_curve, permuted_table, table2


def test_the_parts_of_the_page(tmp_path: Path) -> None:
    counts = [[[0, 5, 5, 90], [60, 10, 20, 10], [80, 5, 5, 10], [0, 0, 0, 0]]]
    groups = {"holders": holders(2), "answers": list(ANSWERS), "counts": counts}
    first = {"ami": [[0.5, 0.7], [0.5, 0.8]], "cost": [[1, -1], [1, -2]]}
    parts = {"error_first": [[0.1, 0.08]], "error_second": [[0.1, 0.02]]}
    write(
        tmp_path,
        texture_mnist_2={**record([1.0, 1.0]), "test": first},
        texture_mnist_2_labels_50k=record([5.0], groups=groups, test=parts, test_scenes=100),
        texture_mnist_2_reader_labels_50k=record([5.2]),
        texture_mnist_2_permuted_labels_50k=record([5.5]),
        convnet_texture_mnist_2_50k=record([12.0]),
        convnet_texture_mnist_2_50k_permuted=record([60.0]),
    )
    text = table2(tmp_path)
    assert "| AMI (n=2) | 0.500 ± 0.000 | 0.750 ± 0.071 |" in text
    assert "| denoising cost (n=2) | 1.000 ± 0.000 | -1.500 ± 0.707 |" in text
    assert "| 2.00 ± 0.00 | 8.00 ± 0.00 | 5.00 ± 0.00 |" in text, "the upper digit, the lower, both"
    assert "| background | 1.00 | - | 5.0 % | 5.0 % | 90.0 % |" in text
    assert "| lower digit | 1.00 | 60.0 % | 10.0 % | 20.0 % | 10.0 % |" in text
    assert "| nothing | 0.00 | - | - | - | - |" in text
    assert "| Tagger + mask reader | 50,000 | 5.20 ± 0.00 (n=1) | 5.50 ± 0.00 (n=1) |" in text
    assert "| ConvNet | 50,000 | 12.00 ± 0.00 (n=1) | 60.00 ± 0.00 (n=1) |" in text
    assert "Error over the number of labels" not in text, "one point is no curve"
    assert "What it took" not in text, "records without times"
    assert permuted_table(tmp_path)
    assert permuted_table(tmp_path) in text


def test_rows_of_fewer_iterations_end_in_empty_cells(tmp_path: Path) -> None:
    longer = record([4.0])
    longer["test"]["error"] = [[0.8, 0.2, 0.04]]
    write(tmp_path, texture_mnist_2_labels_50k=record([6.0]), texture_mnist_2_best_labels_50k=longer)
    lines = table2(tmp_path).splitlines()
    assert "| TextureMNIST2 | FC Tagger | 50,000 | 12.00 ± 0.00 | 6.00 ± 0.00 |  |" in lines
    begins = lines.index("### Tagger's error over iterations (%)") + 2
    assert len({lines[begins + i].count("|") for i in range(4)}) == 1


def test_the_time_that_the_records_took(tmp_path: Path) -> None:
    def made(seconds: float, **machine: str) -> dict[str, Any]:
        return record([5.0], seconds=seconds, environment={"cpu": "a processor", **machine})

    write(
        tmp_path,
        texture_mnist_2_labels_50k=made(90, gpu="a GPU"),
        ladder_texture_mnist_2_1k=made(120, gpu="a GPU"),
        mlp_texture_mnist_1_1k=made(60),
        texture_mnist_2_permuted_labels_50k=made(240, gpu="a GPU"),
    )
    text = table2(tmp_path)
    assert "| the paper's cells | a GPU | 2 | 4 |" in text
    assert "| the paper's cells | a processor | 1 | 1 |" in text
    assert "| around the table | a GPU | 1 | 4 |" in text


def test_the_curve_over_labels(tmp_path: Path) -> None:
    for labels, error in ((100, 60.0), (1_000, 25.0), (50_000, 8.0)):
        write(tmp_path, **{tagger_name(2, labels): record([error, error + 2])})
    write(tmp_path, **{baseline_name("ladder", 2, labels): record([70.0]) for labels in (100, 1_000)})
    tagger, ladder = label_curve(tmp_path)
    assert (ladder.method, ladder.labels) == ("FC Ladder", [100, 1_000])
    assert (tagger.method, tagger.digits, tagger.labels) == ("FC Tagger", 2, [100, 1_000, 50_000])
    np.testing.assert_allclose(tagger.errors, [[60, 62], [25, 27], [8, 10]])
    text = table2(tmp_path)
    assert "| FC Tagger | 61.00 ± 1.41 (n=2) | 26.00 ± 1.41 (n=2) | - | 9.00 ± 1.41 (n=2) |" in text
