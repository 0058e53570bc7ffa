"""The figure of errors over the number of labels."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from paper.label_curve import label_curve_figure
from paper.table2_details import Curve


def test_every_curve_is_drawn_in_the_panel_of_its_data(tmp_path: Path, drawn: list[Figure]) -> None:
    curves = [
        Curve("FC Tagger", 2, [100, 1_000, 50_000], [[60, 62], [25, 27], [8, 10]]),
        Curve("FC Ladder", 2, [300, 1_000], [[70.0], [68.0]]),
        Curve("ConvNet", 1, [100, 1_000], [[80.0], [50.0]]),
    ]
    label_curve_figure(curves, tmp_path / "labels")
    assert (tmp_path / "labels.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "labels.png").exists()
    one, two = drawn[0].axes
    assert [axes.get_title(loc="left") for axes in (one, two)] == ["TextureMNIST1", "TextureMNIST2"]
    means = {line.get_label(): list(line.get_ydata()) for line in two.get_lines() if line.get_marker() != "None"}
    assert means == {"FC Tagger": [61, 26, 9], "FC Ladder": [70, 68]}
