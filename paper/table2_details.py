"""What stands behind Table 2, as markdown: first phases, iterations, digits, answers, order, labels, times.

Records under results/table2 in; figures are means and sample standard deviations over seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from paper.baselines.recipes import LABELS
from paper.markdown import mean_sd, table
from paper.published import TABLE_2
from paper.records import Record
from paper.table2_cells import DIGITS, TABLE_LABELS, baseline_name, first_name, tagger_name
from paper.table2_markdown import (
    TITLES,
    Records,
    counted,
    errors_table,
    percent,
    records_in,
    settings_table,
    tagger_rows,
    where,
)
from taggernet.fileio import read_json

CURVES = {
    "": "FC Tagger",
    "reader": "Tagger + mask reader",
    "best": "Tagger + mask reader, fresh compositions",
    "ladder": "FC Ladder",
    "convnet": "ConvNet",
}
"""Methods of the curve over labels."""


class Curve(NamedTuple):
    """Errors in percent of one method over the number of labels, one list per number: a value per seed."""

    method: str
    digits: int
    labels: list[int]
    errors: list[list[float]]


def table2(results: Path) -> str:
    """Everything that the records in a folder have to say, a part per question; parts without records are left out."""
    records = records_in(results)
    parts = [
        errors_table(records),
        settings_table(records),
        _first_phases(records),
        _iterations(records),
        _by_digit(records),
        _answers(records),
        _permuted(records),
        _over_labels(label_curve(results)),
        _times(records),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def permuted_table(results: Path) -> str:
    """TextureMNIST2 in order and with its elements shuffled, or nothing where there are no records of it."""
    return "\n".join(_permuted(records_in(results)))


def _over_iterations(record: Record, metric: str, factor: float = 1.0, digits: int = 3) -> list[str]:
    return [mean_sd(list(column), digits) for column in factor * np.asarray(record["test"][metric]).T]


def _iteration_heads(rows: Sequence[Sequence[str]], before: Sequence[str]) -> list[str]:
    """Rows may differ in T: a head per iteration of the longest."""
    return [*before, *(f"iter {i + 1}" for i in range(max((len(row) for row in rows), default=0) - len(before)))]


def _first_phases(records: Records) -> list[str]:
    rows = []
    for digits in DIGITS:
        for variant in TITLES:
            record = records.get(first_name(digits, variant))
            if record is not None:
                for metric, title in (("ami", "AMI"), ("cost", "denoising cost")):
                    where = [f"TextureMNIST{digits}", TITLES[variant], f"{title} (n={len(record['seeds'])})"]
                    rows.append([*where, *_over_iterations(record, metric)])
    return table("Phase 1, without labels", _iteration_heads(rows, ["data", "recipe", "metric"]), rows)


def _iterations(records: Records) -> list[str]:
    rows = [
        [*where(digits, variant, labels), *_over_iterations(record, "error", 100.0, 2)]
        for variant, digits, labels, record in tagger_rows(records)
    ]
    return table("Tagger's error over iterations (%)", _iteration_heads(rows, ["data", "recipe", "labels"]), rows)


def _by_digit(records: Records) -> list[str]:
    rows = [
        [
            *where(d, v, n),
            *(mean_sd(percent(record, metric), 2) for metric in ("error_second", "error_first", "error")),
        ]
        for v, d, n, record in tagger_rows(records)
        if "error_first" in record["test"]
    ]
    head = ["data", "recipe", "labels", "upper digit", "lower digit", "both"]
    return table("Tagger's error by digit (%)", head, rows)


def _answers(records: Records) -> list[str]:
    rows, head = [], ["data", "recipe", "labels", "a group that holds", "per scene"]
    for v, d, n, record in tagger_rows(records):
        found = record.get("groups")
        if found is None:
            continue
        head = [*head[:5], *found["answers"]]
        counts = np.asarray(found["counts"], dtype=float).sum(0)  # (holders, answers) over all seeds
        scenes = len(record["seeds"]) * record["test_scenes"]
        for holder, answers in zip(found["holders"], counts, strict=True):
            total = answers.sum()
            shares = [f"{100 * share / total:.1f} %" if total else "-" for share in answers]
            if not holder.endswith("digit"):
                shares[0] = "-"  # it has no digit of its own
            elif d == 1:
                shares[1] = "-"  # and the scene no other
            rows.append([*where(d, v, n), holder, f"{total / scenes:.2f}", *shares])
    note = "A group holds what most of the elements it wins belong to; elements of mixed layers are not counted."
    return table("What a group says, by what it holds", head, rows, note)


def _permuted(records: Records) -> list[str]:
    rows = []
    for labels in TABLE_LABELS:
        pairs = {
            "Tagger + mask reader": [tagger_name(2, labels, variant) for variant in ("reader", "permuted")],
            "ConvNet": [baseline_name("convnet", 2, labels, variant) for variant in ("", "permuted")],
        }
        for method, names in pairs.items():
            if names[1] in records:
                errors = [counted(percent(records[name])) if name in records else "-" for name in names]
                rows.append([method, f"{labels:,}", *errors])
    head = ["method", "labels", "error, elements in order", "error, elements permuted"]
    return table("TextureMNIST2 with its elements permuted (%)", head, rows)


def label_curve(results: Path) -> list[Curve]:
    """The curves that have at least two points in this folder."""
    found = []
    for digits in DIGITS:
        for method in CURVES:
            labels, errors = [], []
            for n in LABELS:
                name = tagger_name(digits, n, method) if method in TITLES else baseline_name(method, digits, n)
                path = results / f"{name}.json"
                if path.exists():
                    labels.append(n)
                    errors.append(percent(read_json(path)))
            if len(labels) > 1:
                found.append(Curve(CURVES[method], digits, labels, errors))
    return found


def _over_labels(curves: Sequence[Curve]) -> list[str]:
    rows = []
    for curve in curves:
        at = dict(zip(curve.labels, curve.errors, strict=True))
        cells = [counted(at[n]) if n in at else "-" for n in LABELS]
        rows.append([f"TextureMNIST{curve.digits}", curve.method, *cells])
    head = ["data", "method", *(f"{n:,}" for n in LABELS)]
    return table("Error over the number of labels (%)", head, rows)


def _times(records: Records) -> list[str]:
    """What the records say of their own making: minutes of training, compiling and evaluating."""
    paper = {*TABLE_2, *map(first_name, DIGITS)}
    found: dict[tuple[bool, str], list[float]] = {}
    for name, record in records.items():
        if "seconds" in record:
            machine = record["environment"]
            found.setdefault((name not in paper, machine.get("gpu") or machine["cpu"]), []).append(record["seconds"])
    rows = [
        ["around the table" if around else "the paper's cells", machine, str(len(seconds)), f"{sum(seconds) / 60:.0f}"]
        for (around, machine), seconds in sorted(found.items())
    ]
    note = "Runs that shared their GPU with others, as some records say, count with the time they took there."
    return table("What it took", ["part", "machine", "runs, all seeds at once", "minutes"], rows, note)
