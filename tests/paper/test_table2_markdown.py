"""Table 2 as markdown, from records made by hand."""

from __future__ import annotations

from pathlib import Path

from table2_records import record, write

from paper.baselines import BASELINES
from paper.published import TABLE_2
from paper.table2_cells import tagger_name
from paper.table2_details import table2
from paper.table2_markdown import main_table


def line(text: str, *words: str) -> str:
    (found,) = [one for one in text.splitlines() if all(word in one for word in words)]
    return found


def test_the_table_sets_our_errors_beside_the_papers(tmp_path: Path) -> None:
    write(
        tmp_path,
        texture_mnist_1_labels_50k=record([3.0, 4.0, 5.1]),
        texture_mnist_1_labels_1k=record([10.0, 12.0]),
        texture_mnist_2_best_labels_50k=record([3.0, 3.5]),
        texture_mnist_2_best_labels_1k=record([13.0, 13.0]),
        convnet_texture_mnist_2_50k=record([12.0]),
        ladder_mnist_1k=record([0.8, 0.9]),
    )
    text = table2(tmp_path)
    assert line(text, "| 4.0 ± 0.3 |") == (
        "| TextureMNIST1 | FC Tagger | "
        "4.0 ± 0.3 | 4.03 ± 1.05 | +0.03 ± 0.62 | 3 | 10.5 ± 0.9 | 11.00 ± 1.41 | +0.50 ± 1.08 | 2 |"
    )
    assert line(text, "fresh compositions (ours) | -") == (
        "| TextureMNIST2 | FC Tagger + mask reader, fresh compositions (ours) | "
        "- | 3.25 ± 0.35 | - | 2 | - | 13.00 ± 0.00 | - | 2 |"
    )
    assert "12.6 ± 0.4 | 12.00 ± 0.00 | −0.60 ± 0.18 | 1 | 79.1 ± 0.8 | - | - | - |" in line(text, "ConvNet")
    assert "0.85 ± 0.07 % (Rasmus et al.: 0.84 ± 0.08 %)" in text
    assert "10,000 test scenes" in text
    assert "| 8.07 ± 2.10 | 4.03 ± 1.05 |" in line(text, "TextureMNIST1", "50,000")


def test_scenes_that_are_not_the_papers_have_no_difference(tmp_path: Path) -> None:
    """Until 0.2 either of two digits could be on top."""
    either, papers = {"name": "texture-mnist-2"}, {"name": "texture-mnist-2", "depth": "up-left"}
    write(
        tmp_path,
        texture_mnist_2_labels_50k=record([8.0], data=papers),
        texture_mnist_2_labels_1k=record([40.0], data=either),
        convnet_texture_mnist_2_50k=record([12.0], data="texture-mnist-2"),
    )
    text = table2(tmp_path)
    assert "| 8.00 ± 0.00 | +0.10 ± 0.13 | 1 |" in line(text, "| 7.9 ± 0.3 |")
    assert "24.9 ± 1.8 | 40.00 ± 0.00 | - | 1 |" in line(text, "| 7.9 ± 0.3 |")
    assert "12.6 ± 0.4 | 12.00 ± 0.00 | - | 1 |" in line(text, "ConvNet")
    assert "have either digit on top" in text


def test_the_papers_tagger_stands_beside_its_own_method() -> None:
    """Fresh layers on top of the Ladder; where there is no record of them, ours are dashes."""
    taggers = {name for name in TABLE_2 if name.startswith("texture")}
    assert taggers == {tagger_name(d, n) for d in (1, 2) for n in (1_000, 50_000)}
    assert set(TABLE_2) - taggers <= set(BASELINES)


def test_a_row_of_the_paper_without_records_has_dashes(tmp_path: Path) -> None:
    row = line(main_table(tmp_path, ".."), "TextureMNIST1", "FC Tagger")
    assert row.endswith(
        "([recipe](../src/taggernet/recipes/texture_mnist.py)) | 4.0 ± 0.3 | - | - | - | 10.5 ± 0.9 | - | - | - |"
    )


def test_baselines_on_fresh_compositions_have_rows_of_their_own(tmp_path: Path) -> None:
    write(tmp_path, ladder_texture_mnist_1_50k=record([5.0]), ladder_texture_mnist_1_1k_fresh=record([7.0, 9.0]))
    text = table2(tmp_path)
    assert line(text, "FC Ladder, fresh compositions") == (
        "| TextureMNIST1 | FC Ladder, fresh compositions | - | - | - | - | - | 8.00 ± 1.41 | - | 2 |"
    )
    linked = line(main_table(tmp_path, ".."), "FC Ladder, fresh compositions")
    record_of = "../results/table2/ladder-texture-mnist-1-1k-fresh.json"
    assert f"([recipe](../paper/baselines/recipes.py), [1k]({record_of}))" in linked
