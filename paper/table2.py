"""Table 2 from training to records: ``reproduce_table2`` writes one record per cell, ``table2`` prints them.

All second phases that start from one first phase are trained after it in one go, from its weights in memory: the 50k
and the 1k run of a seed share them, and no weights need be kept on a disk.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from paper.baselines import BaselineConfig, run_baseline
from paper.baselines import quick as quick_baseline
from paper.baselines.run import same_config as same_baseline_config
from paper.class_analysis import answers_record
from paper.label_curve import label_curve_figure
from paper.quick import sized_config
from paper.records import Record, config_record, evaluate_run, load_record, run_record, same_config
from paper.table2_cells import ROWS, baseline_cells, chosen_families, wanted
from paper.table2_details import label_curve, table2
from taggernet.fileio import make_folder, read_json, write_json
from taggernet.training import Config
from taggernet.training.datasets import load_split
from taggernet.training.loop import Run, train_to_end

__all__ = ["ROWS", "reproduce_table2", "table2"]

TRAINING_SCENES = 5_000
"""How many of the scenes it was trained on a second phase is evaluated on."""


def reproduce_table2(
    results: Path,
    runs: Path | None,
    *,
    seeds: int = 5,
    quick: bool = False,
    device: str = "auto",
    rows: Iterable[str] = ROWS,
) -> str:
    """The table as markdown, also written to results/table2.md, after every cell of these rows has its record.

    ``rows`` are parts of the table (``ROWS``) or names of cells or first phases, * standing for anything. A record that
    is there for the same configuration is kept. With ``runs`` every run has a folder there and can be resumed; without,
    a first phase whose second phases are not all recorded is trained again.
    """
    rows = list(rows)
    families, baselines = _chosen(rows)
    strange = [row for row in rows if _chosen([row]) == ([], [])]
    if strange or not rows:
        raise ValueError(f"rows={strange} name nothing of Table 2: choose from {', '.join(ROWS)}, or name cells")
    make_folder(results)
    for first, seconds in families:
        wanted_seconds = [sized_config(config, seeds, device, quick) for config in seconds]
        _reproduce_family(sized_config(first, seeds, device, quick), wanted_seconds, results, runs)
    for config in baselines:
        config = replace(config, seeds=seeds, device=device)
        _reproduce_baseline(quick_baseline(config) if quick else config, results)
    text = table2(results)
    (results / "table2.md").write_text(text)
    points = label_curve(results)
    if points:
        label_curve_figure(points, results / "labels")
    return text


def _chosen(rows: Sequence[str]) -> tuple[list[tuple[Config, list[Config]]], list[BaselineConfig]]:
    """The families and the baselines that these rows name."""
    return chosen_families(rows), [cell.config for cell in baseline_cells() if wanted(cell, rows)]


def train_family(name: str, runs: Path, *, seeds: int, quick: bool, device: str) -> None:
    """Train the first phase of a cell and then its second, or resume them, whatever records there are."""
    (first, seconds), *_ = chosen_families([name])
    run = _trained(sized_config(first, seeds, device, quick), runs)
    _trained(sized_config(seconds[0], seeds, device, quick), runs, run)


def _reproduce_family(first: Config, seconds: Sequence[Config], results: Path, runs: Path | None) -> None:
    """One first phase and the second phases that start from it."""
    missing = [config for config in seconds if not _has_record(config, first, results)]
    recorded = load_record(first, results / f"{first.recipe}.json") is not None
    if recorded and not missing:
        return
    begin = time.monotonic()
    run = _trained(first, runs)
    if not recorded:
        write_json(results / f"{first.recipe}.json", run_record(run, begin))
    for config in missing:
        begin = time.monotonic()
        second = _trained(config, runs, run)
        tested = evaluate_run(second, load_split(config.data, "test"))
        record = run_record(second, begin, tested)
        record["first_phase"] = config_record(first)
        record["groups"] = answers_record(tested)
        record["training_scenes"] = _on_training_scenes(second)
        write_json(results / f"{config.recipe}.json", record)


def _on_training_scenes(run: Run) -> Record:
    """Metrics on the first training scenes: errors far below those of the test split mean overfitting."""
    scenes = load_split(run.config.data, "train")[:TRAINING_SCENES]
    return {"scenes": len(scenes), **evaluate_run(run, scenes).metrics()}


def _has_record(config: Config, first: Config, results: Path) -> bool:
    path = results / f"{config.recipe}.json"
    found = load_record(config, path)
    return found is not None and "first_phase" in found and same_config(first, found["first_phase"], path)


def _trained(config: Config, runs: Path | None, first: Run | None = None) -> Run:
    _tidy()
    start = None if first is None else first.weights
    return train_to_end(config, None if runs is None else runs / config.recipe, start=start)


def _reproduce_baseline(config: BaselineConfig, results: Path) -> None:
    path = results / f"{config.recipe}.json"
    if path.exists() and same_baseline_config(config, read_json(path).get("config", {})):
        return
    _tidy()
    write_json(path, run_baseline(config))


def _tidy() -> None:
    """Let go of the memory of the run before, and of its graph."""
    if torch.cuda.is_available():
        gc.collect()
        torch.cuda.empty_cache()
