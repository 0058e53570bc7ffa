"""The table of the field's own benchmarks from made-up records."""

from __future__ import annotations

from pathlib import Path

from paper.objects_markdown import objects_table
from taggernet.fileio import write_json


def test_a_row_has_every_method_that_left_a_record(tmp_path: Path) -> None:
    alone = {"test": {"values": {"mean": 0.7}, "start": {"mean": 0.9}}}
    for name in ("tetrominoes", "sprites-texture"):
        write_json(tmp_path / f"untrained-{name}.json", alone)
    tagger = {"test": {"ari_foreground": [[0.5, 0.98], [0.6, 1.0]]}, "training_seconds": 100.0, "seeds": [0, 1]}
    write_json(tmp_path / "tetrominoes.json", tagger)
    seed = {"test": {"ari_foreground": 0.875}, "training_seconds": 61.0}
    write_json(tmp_path / "slots-tetrominoes.json", {"method": "slot-attention", "seeds": [seed]})
    _, _, first, second = objects_table(tmp_path).splitlines()
    assert first == (
        "| tetrominoes | 0.700 | 0.900 | 0.990 ± 0.014 (n=2, 50 s each) | 0.875 (n=1, 61 s each) | "
        "Slot Attention 0.995, IODINE 0.992 |"
    )
    assert second == "| sprites-texture | 0.700 | 0.900 | - | - | - |"
    linked = objects_table(tmp_path, "..").splitlines()[2]
    assert "[slots](../results/objects/slots-tetrominoes.json)" in linked
    assert "[record](../results/objects/tetrominoes.json)" in linked


def test_without_records_there_is_no_table(tmp_path: Path) -> None:
    assert objects_table(tmp_path) == ""
