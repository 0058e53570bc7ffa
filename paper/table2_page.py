"""Table 2 as markdown: records under results/table2 in, the paper's figures beside ours out.

Errors are in percent of the test scenes, mean and sample standard deviation over seeds, after the last iteration.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from paper.baselines.recipes import LABELS, PAPER, shorthand
from paper.table1 import Record, links, spread
from paper.table2_cells import DIGITS, TABLE_LABELS, VARIANTS, baseline_name, first_name, tagger_name
from taggernet.fileio import read_json

PAPER_TAGGER: dict[str, tuple[float, float]] = {
    "texture-mnist-1-labels-50k": (4.0, 0.3),
    "texture-mnist-1-labels-1k": (10.5, 0.9),
    "texture-mnist-2-labels-50k": (7.9, 0.3),
    "texture-mnist-2-labels-1k": (24.9, 1.8),
}
GOALS = {
    "texture-mnist-1-best-labels-50k": 2.5,
    "texture-mnist-1-best-labels-1k": 5.0,
    "texture-mnist-2-best-labels-50k": 4.0,
    "texture-mnist-2-best-labels-1k": 12.0,
}
METHODS = {"mlp": "FC MLP", "ladder": "FC Ladder", "convnet": "ConvNet"}
TITLES = {
    "": "FC Tagger",
    "best": "FC Tagger, our recipe",
    "top": "FC Tagger, classes on top of the Ladder",
    "compact": "FC Tagger, compact (the shipped model)",
    "permuted": "FC Tagger, permuted elements",
}
PUBLISHED = PAPER | PAPER_TAGGER
Records = dict[str, Record]


class Curve(NamedTuple):
    """Errors in percent of one method over the number of labels, one list per number: a value per seed."""

    method: str
    digits: int
    labels: list[int]
    errors: list[list[float]]


def table2(results: Path) -> str:
    """Everything that the records in a folder have to say, a part per question; parts without records are left out."""
    records = _records(results)
    parts = [
        _errors(records, results),
        _first_phases(records),
        _iterations(records),
        _by_digit(records),
        _answers(records),
        _permuted(records),
        _over_labels(label_curve(results)),
        _times(records),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def main_table(results: Path) -> str:
    """The paper's table alone, all of its rows, each with links to its recipe and its records."""
    return "\n".join(_errors(_records(results), results, linked=True)) + "\n"


def permuted_table(results: Path) -> str:
    """TextureMNIST2 in order and with its elements shuffled, or nothing where there are no records of it."""
    return "\n".join(_permuted(_records(results)))


def _records(results: Path) -> Records:
    return {path.stem: read_json(path) for path in sorted(results.glob("*mnist-*.json"))}


def percent(record: Record, figure: str = "error") -> list[float]:
    """Per seed, after the last iteration."""
    return [100 * row[-1] for row in record["test"][figure]]


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> list[str]:
    """Rows shorter than the head end in empty cells."""
    if not rows:
        return []
    lines = [f"### {title}", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines += [f"| {' | '.join([*row, *[''] * (len(head) - len(row))])} |" for row in rows]
    return [*lines, "", note] if note else lines


def _tagger_rows(records: Records) -> list[tuple[str, int, int, Record]]:
    """Variant, digits, labels and record of the Tagger cells that there are; the curve's other cells left out."""
    cells = [(v, d, n, tagger_name(d, n, v)) for d in DIGITS for v in TITLES for n in TABLE_LABELS]
    return [(v, d, n, records[name]) for v, d, n, name in cells if name in records]


def _where(digits: int, variant: str, labels: int | None = None) -> list[str]:
    return [f"TextureMNIST{digits}", TITLES[variant], *([] if labels is None else [f"{labels:,}"])]


# --- the paper's table --------------------------------------------------------------------------------------------


def _errors(records: Records, results: Path, *, linked: bool = False) -> list[str]:
    rows = []
    for digits in DIGITS:
        names = {title: [baseline_name(m, digits, n) for n in TABLE_LABELS] for m, title in METHODS.items()}
        names |= {
            f"{title}, fresh compositions": [baseline_name(m, digits, n, "fresh") for n in TABLE_LABELS]
            for m, title in METHODS.items()
        }
        names |= {TITLES[v]: [tagger_name(digits, n, v) for n in TABLE_LABELS] for v in ("", *VARIANTS)}
        for title, (all_labels, few) in names.items():
            there = [name for name in (all_labels, few) if name in records]
            if there or (linked and all_labels in PUBLISHED):
                cells = [part for name in (all_labels, few) for part in _cell(name, records.get(name))]
                recipes = "baselines/recipes.py" if title.startswith(tuple(METHODS.values())) else "recipes.py"
                counts = zip(TABLE_LABELS, (all_labels, few), strict=True)
                named = {shorthand(n): results / f"{name}.json" for n, name in counts if name in there}
                title += links(f"src/taggernet/{recipes}", named) if linked else ""
                rows.append([f"TextureMNIST{digits}", title, *cells])
    head = ["data", "method"] + [
        f"{labels}, {what}" for labels in ("50k", "1k") for what in ("paper", "ours", "n", "verdict")
    ]
    scenes = sorted({record["test_scenes"] for record in records.values()})
    note = f"Top-1 error with one digit, top-2 error with two; {' or '.join(f'{n:,}' for n in scenes)} test scenes."
    anchor = records.get("ladder-mnist-1k")
    if anchor is not None:
        paper, sd = PAPER["ladder-mnist-1k"]
        note += (
            f" Our FC Ladder on its own ground, permutation-invariant MNIST with 1,000 labels: "
            f"{spread(percent(anchor), 2)} % (Rasmus et al.: {paper} ± {sd} %)."
        )
    return _table("Table 2: test error in percent (mean ± sample standard deviation over seeds)", head, rows, note)


def _cell(name: str, record: Record | None) -> list[str]:
    """The paper's figure or our goal, ours, how many seeds, the verdict."""
    paper, goal = PUBLISHED.get(name), GOALS.get(name)
    stated = f"{paper[0]} ± {paper[1]}" if paper else f"(goal ≤ {goal:g})" if goal else "-"
    if record is None:
        return [stated, "-", "-", "-"]
    found = percent(record)
    bound, words = (paper[0], ("≤ paper", "above paper")) if paper else (goal, ("goal met", "above goal"))
    met = bound is not None and round(statistics.fmean(found), 1) <= bound
    return [stated, spread(found, 2), str(len(found)), "-" if bound is None else words[0] if met else words[1]]


# --- what stands behind it ----------------------------------------------------------------------------------------


def _over_iterations(record: Record, figure: str, factor: float = 1.0, digits: int = 3) -> list[str]:
    return [spread(list(column), digits) for column in factor * np.asarray(record["test"][figure]).T]


def _iteration_heads(rows: Sequence[Sequence[str]], before: Sequence[str]) -> list[str]:
    """Rows may differ in T: a head per iteration of the longest."""
    return [*before, *(f"iter {i + 1}" for i in range(max((len(row) for row in rows), default=0) - len(before)))]


def _first_phases(records: Records) -> list[str]:
    rows = []
    for digits in DIGITS:
        for variant in TITLES:
            record = records.get(first_name(digits, variant))
            if record is not None:
                for figure, title in (("ami", "AMI"), ("cost", "denoising cost")):
                    where = [*_where(digits, variant), f"{title} (n={len(record['seeds'])})"]
                    rows.append([*where, *_over_iterations(record, figure)])
    return _table("Phase 1, without labels", _iteration_heads(rows, ["data", "recipe", "figure"]), rows)


def _iterations(records: Records) -> list[str]:
    rows = [
        [*_where(digits, variant, labels), *_over_iterations(record, "error", 100.0, 2)]
        for variant, digits, labels, record in _tagger_rows(records)
    ]
    return _table("Tagger's error over iterations (%)", _iteration_heads(rows, ["data", "recipe", "labels"]), rows)


def _by_digit(records: Records) -> list[str]:
    rows = [
        [*_where(d, v, n), *(spread(percent(record, figure), 2) for figure in ("error_second", "error_first", "error"))]
        for v, d, n, record in _tagger_rows(records)
        if "error_first" in record["test"]
    ]
    head = ["data", "recipe", "labels", "upper digit", "lower digit", "both"]
    return _table("Tagger's error by digit (%)", head, rows)


def _answers(records: Records) -> list[str]:
    rows, head = [], ["data", "recipe", "labels", "a group that holds", "per scene"]
    for v, d, n, record in _tagger_rows(records):
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
            rows.append([*_where(d, v, n), holder, f"{total / scenes:.2f}", *shares])
    note = "A group holds what most of the elements it wins belong to; elements of mixed layers are not counted."
    return _table("What a group says, by what it holds", head, rows, note)


def _permuted(records: Records) -> list[str]:
    rows = []
    for labels in TABLE_LABELS:
        pairs = {
            "FC Tagger": [tagger_name(2, labels, variant) for variant in ("", "permuted")],
            "ConvNet": [baseline_name("convnet", 2, labels, variant) for variant in ("", "permuted")],
        }
        for method, names in pairs.items():
            if names[1] in records:
                errors = [_counted(percent(records[name])) if name in records else "-" for name in names]
                rows.append([method, f"{labels:,}", *errors])
    head = ["method", "labels", "error, elements in order", "error, elements permuted"]
    return _table("TextureMNIST2 with its elements permuted (%)", head, rows)


def _counted(errors: list[float]) -> str:
    """For tables whose cells differ in their number of seeds."""
    return f"{spread(errors, 2)} (n={len(errors)})"


def label_curve(results: Path) -> list[Curve]:
    """The curves that have at least two points in this folder."""
    found = []
    for digits in DIGITS:
        for method in ("tagger", "best", "ladder", "convnet"):
            labels, errors = [], []
            for n in LABELS:
                variant = "best" if method == "best" else ""
                tagger = method in ("tagger", "best")
                name = tagger_name(digits, n, variant) if tagger else baseline_name(method, digits, n)
                path = results / f"{name}.json"
                if path.exists():
                    labels.append(n)
                    errors.append(percent(read_json(path)))
            if len(labels) > 1:
                title = METHODS.get(method) or TITLES["best" if method == "best" else ""]
                found.append(Curve(title, digits, labels, errors))
    return found


def _over_labels(curves: Sequence[Curve]) -> list[str]:
    rows = []
    for curve in curves:
        at = dict(zip(curve.labels, curve.errors, strict=True))
        cells = [_counted(at[n]) if n in at else "-" for n in LABELS]
        rows.append([f"TextureMNIST{curve.digits}", curve.method, *cells])
    head = ["data", "method", *(f"{n:,}" for n in LABELS)]
    return _table("Error over the number of labels (%)", head, rows)


def _times(records: Records) -> list[str]:
    """What the records say of their own making: minutes of training, compiling and evaluating."""
    table = {*PUBLISHED, *(first_name(digits) for digits in DIGITS)}
    found: dict[tuple[bool, str], list[float]] = {}
    for name, record in records.items():
        if "seconds" in record:
            machine = record["environment"]
            found.setdefault((name not in table, machine.get("gpu") or machine["cpu"]), []).append(record["seconds"])
    rows = [
        ["around the table" if around else "the paper's cells", machine, str(len(seconds)), f"{sum(seconds) / 60:.0f}"]
        for (around, machine), seconds in sorted(found.items())
    ]
    return _table("What it took", ["part", "machine", "runs, all seeds at once", "minutes"], rows)
