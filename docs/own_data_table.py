"""Write the table of docs/what-makes-groups-form.md from the records under results/own_data/.

    python docs/own_data_table.py

The records come from benchmarks/own_data.py, the oracle's AMI from benchmarks/own_data_oracle.py.
"""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from scipy.stats import spearmanr

ROOT = Path(__file__).parents[1]
PAGE = "docs/what-makes-groups-form.md"


def records() -> list[dict[str, Any]]:
    """One for each kind, measured on a CPU; what a GPU gave is under ``gpu``."""
    found = []
    for path in sorted((ROOT / "results" / "own_data").glob("*.json")):
        beside = path.parent / "gpu" / path.name
        gpu = {"gpu": json.loads(beside.read_text("utf-8"))} if beside.exists() else {}
        found.append(json.loads(path.read_text("utf-8")) | gpu)
    return found


def own_data() -> str:
    """A row per kind: Tagger's AMI and time on a CPU and on a GPU, and the classical method that was best on
    validation."""
    lines = [
        "| data | Tagger, two cores | seconds | on a GPU | seconds | best classical method | oracle |",
        "|---|---|---|---|---|---|---|",
    ]
    for record in records():
        oracle = f"{record['oracle']:.2f}" if "oracle" in record else ""
        gpu = _tagger(record.get("gpu", {}))
        lines.append(f"| {record['what']} | {_tagger(record)} | {gpu} | {_classical(record)} | {oracle} |")
    return "\n".join(lines)


def ranks() -> str:
    """Does the score rank settings as AMI does? Over all trials, and within each kind."""
    found = [record.get("tagger", {}).get("trials", []) for record in records()]
    tried = [trials for trials in found if trials and "by_value" in trials[0]]  # earlier ones had another score
    if len(tried) < 3:
        return ""  # too few to say anything
    within = [_ranks(trials) for trials in tried]
    every = [trial for trials in tried for trial in trials]
    return (
        f"Spearman's rank correlation of score and AMI is {_ranks(every):.2f} over all {len(every)} settings that were "
        f"tried, and {fmean(within):.2f} within a kind on average ({min(within):.2f} to {max(within):.2f}, "
        f"{len(within)} kinds)."
    )


def _ranks(trials: list[dict[str, Any]]) -> float:
    return float(spearmanr([t["score"] for t in trials], [t["ami"] for t in trials]).statistic)


def _tagger(record: dict[str, Any]) -> str:
    found = record.get("tagger")
    if not found:
        return "- | -"
    seconds = [round(a + b) for a, b in zip(found["seconds_tuning"], found["seconds_training"], strict=True)]
    spread = f"{min(seconds)}" if len(seconds) == 1 else f"{min(seconds)} to {max(seconds)}"
    return f"{_mean(found['ami'])} ({len(found['ami'])}) | {spread}"


def _classical(record: dict[str, Any]) -> str:
    methods = record.get("classical")
    if not methods:
        return "-"
    name = max(methods, key=lambda one: fmean(methods[one]["valid"]))
    return f"{name} {_mean(methods[name]['ami'])}"


def _mean(values: list[float]) -> str:
    return f"{fmean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def filled(page: str) -> str:
    """The page with its table renewed."""
    replaced = runpy.run_path(str(ROOT / "docs" / "results_tables.py"))["replaced"]
    found: str = replaced(page, {"own-data": own_data(), "own-data-ranks": ranks()}, PAGE)
    return found


if __name__ == "__main__":
    (ROOT / PAGE).write_text(filled((ROOT / PAGE).read_text()))
