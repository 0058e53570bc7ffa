"""Table 2 as markdown: records under results/table2 in, the paper's figures beside ours out.

Errors are in percent of the test scenes, mean and sample standard deviation over seeds, after the last iteration.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from paper.baselines.recipes import LABELS
from paper.markdown import DASH, difference, links, mean_sd, table
from paper.published import LADDER_ON_MNIST, TABLE_2
from paper.records import Record
from paper.table2_cells import DIGITS, TABLE_LABELS, VARIANTS, baseline_name, first_name, tagger_name
from taggernet.config.run import with_former_depth
from taggernet.fileio import read_json
from taggernet.recipes.texture_mnist import shorthand

METHODS = {"mlp": "FC MLP", "ladder": "FC Ladder", "convnet": "ConvNet"}
TITLES = {
    "": "FC Tagger",
    "reader": "FC Tagger + mask reader (ours)",
    "best": "FC Tagger + mask reader, fresh compositions (ours)",
    "small": "FC Tagger + mask reader, narrower (the shipped model)",
    "permuted": "FC Tagger + mask reader, permuted elements",
    "shared-pool": "FC Tagger, one pool of digits",
    "own-pass": "FC Tagger, labelled scenes in a pass of their own",
}
"""Variants; the first is the paper's method."""
CURVES = {
    "": "FC Tagger",
    "reader": "Tagger + mask reader",
    "best": "Tagger + mask reader, fresh compositions",
    "ladder": "FC Ladder",
    "convnet": "ConvNet",
}
"""Methods of the curve over labels."""
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
        _errors(records),
        _settings(records),
        _first_phases(records),
        _iterations(records),
        _by_digit(records),
        _answers(records),
        _permuted(records),
        _like_the_code(records),
        _over_labels(label_curve(results)),
        _times(records),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def main_table(results: Path, root: str) -> str:
    """The paper's table with links to recipes and records; how Tagger's rows differ; ``root`` is the repository."""
    records = _records(results)
    return "\n\n".join("\n".join(part) for part in (_errors(records, root), _settings(records)) if part)


def either_on_top_table(results: Path, root: str) -> str:
    """Errors on scenes of two digits with either on top, which the paper does not have."""
    records, rows = _records(results), []
    for title, recipes, names in _methods(2):
        if any(name in records for name in names):
            title += _links(recipes, names, records, root, f"results/table2/{results.name}")
            rows.append([title, *(_counted(percent(records[n])) if n in records else DASH for n in names)])
    return "\n".join(table("Two digits, either on top: test error in percent", ["method", "50k", "1k"], rows))


def permuted_table(results: Path) -> str:
    """TextureMNIST2 in order and with its elements shuffled, or nothing where there are no records of it."""
    return "\n".join(_permuted(_records(results)))


def like_the_code_table(results: Path) -> str:
    """The paper's method with two more habits of the public code, or nothing where there are no records of it."""
    return "\n".join(_like_the_code(_records(results)))


def _records(results: Path) -> Records:
    return {path.stem: read_json(path) for path in sorted(results.glob("*mnist-*.json"))}


def on_papers_data(record: Record) -> bool:
    """Whether a record's scenes are stacked as the paper's are: two digits with the up-left one on top."""
    config = record["config"]
    of_baseline = {name: config[key] for name, key in (("name", "data"), ("depth", "depth")) if key in config}
    fields = with_former_depth(of_baseline if isinstance(config["data"], str) else config["data"])
    return bool(fields.get("depth", "up-left") == "up-left")


def percent(record: Record, metric: str = "error") -> list[float]:
    """Per seed, after the last iteration."""
    return [100 * row[-1] for row in record["test"][metric]]


def _tagger_rows(records: Records) -> list[tuple[str, int, int, Record]]:
    """Variant, digits, labels and record of the Tagger cells that there are; the curve's other cells left out."""
    cells = [(v, d, n, tagger_name(d, n, v)) for d in DIGITS for v in TITLES for n in TABLE_LABELS]
    return [(v, d, n, records[name]) for v, d, n, name in cells if name in records]


def _where(digits: int, variant: str, labels: int) -> list[str]:
    return [f"TextureMNIST{digits}", TITLES[variant], f"{labels:,}"]


# --- the paper's table --------------------------------------------------------------------------------------------


def _errors(records: Records, root: str | None = None) -> list[str]:
    rows = []
    for digits in DIGITS:
        for title, recipes, names in _methods(digits):
            there = any(name in records for name in names)
            if there or (root is not None and names[0] in TABLE_2):
                if root is not None:
                    title += _links(recipes, names, records, root, "results/table2")
                cells = [part for name in names for part in _cell(name, records.get(name))]
                rows.append([f"TextureMNIST{digits}", title, *cells])
    head = ["data", "method"] + [
        f"{labels}, {what}" for labels in ("50k", "1k") for what in ("paper", "ours", "difference", "n")
    ]
    scenes = sorted({record["test_scenes"] for record in records.values()})
    note = (
        f"Top-1 error with one digit, top-2 error with two; {' or '.join(f'{n:,}' for n in scenes)} test scenes. The "
        "difference has its standard error, from both spreads and the paper's 5 runs."
    )
    if not all(map(on_papers_data, records.values())):
        note += (
            " Our scenes of two digits have either digit on top; the paper's always have the up-left one, which is "
            "easier, so these rows have no difference."
        )
    anchor = records.get("ladder-mnist-1k")
    if anchor is not None:
        note += (
            f" Our FC Ladder on permutation-invariant MNIST with 1,000 labels: {mean_sd(percent(anchor), 2)} % "
            f"(Rasmus et al.: {LADDER_ON_MNIST} %)."
        )
    return table("Table 2: test error in percent (mean ± sample standard deviation over seeds)", head, rows, note)


def _links(recipes: str, names: Sequence[str], records: Records, root: str, place: str) -> str:
    """To the recipe of a row and to those of its records (50k, 1k) that there are."""
    there = [(shorthand(n), name) for n, name in zip(TABLE_LABELS, names, strict=True) if name in records]
    return links(recipes, {n: f"{place}/{name}.json" for n, name in there}, root)


def _methods(digits: int) -> list[tuple[str, str, list[str]]]:
    """Title, file of the recipes and the names of the cells (50k, 1k) of every method, in the order of the rows."""
    baselines = {(method, ""): title for method, title in METHODS.items()}
    baselines["ladder", "unwhitened"] = "FC Ladder, unwhitened"
    baselines |= {(method, "fresh"): f"{title}, fresh compositions" for method, title in METHODS.items()}
    found = [
        (title, "paper/baselines/recipes.py", [baseline_name(method, digits, n, variant) for n in TABLE_LABELS])
        for (method, variant), title in baselines.items()
    ]
    taggers = [variant for variant in TITLES if variant in ("", *VARIANTS)]
    return found + [
        (TITLES[v], "src/taggernet/recipes/texture_mnist.py", [tagger_name(digits, n, v) for n in TABLE_LABELS])
        for v in taggers
    ]


def _settings(records: Records) -> list[str]:
    """What each Tagger row was trained with, and how many iterations it has."""
    rows = []
    for variant, digits, labels, record in _tagger_rows(records):
        config = record["config"]
        if "iterations" in config:
            fresh = config["data"]["mode"] == "fresh"
            scenes = "fresh compositions of 50,000 digits" if fresh else f"{config['data']['train']:,} fixed"
            seen = f"{labels:,} {'digits' if fresh else 'scenes'}"
            steps = f"{config['optimiser']['updates']:,}"
            iterations = [str(config[name]) for name in ("iterations", "test_iterations")]
            rows.append([f"TextureMNIST{digits}", TITLES[variant], scenes, seen, steps, *iterations])
    head = ["data", "method", "training scenes", "labelled", "updates with labels", "T, training", "T, test"]
    return table("What Tagger's rows were trained with", head, rows)


def _cell(name: str, record: Record | None) -> list[str]:
    """The paper's error, ours, their difference, how many seeds."""
    paper = TABLE_2.get(name)
    stated = DASH if paper is None else str(paper)
    if record is None:
        return [stated, DASH, DASH, DASH]
    errors = percent(record)
    apart = DASH if paper is None or not on_papers_data(record) else difference(errors, paper, 2)
    return [stated, mean_sd(errors, 2), apart, str(len(errors))]


# --- what stands behind it ----------------------------------------------------------------------------------------


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
        [*_where(digits, variant, labels), *_over_iterations(record, "error", 100.0, 2)]
        for variant, digits, labels, record in _tagger_rows(records)
    ]
    return table("Tagger's error over iterations (%)", _iteration_heads(rows, ["data", "recipe", "labels"]), rows)


def _by_digit(records: Records) -> list[str]:
    rows = [
        [
            *_where(d, v, n),
            *(mean_sd(percent(record, metric), 2) for metric in ("error_second", "error_first", "error")),
        ]
        for v, d, n, record in _tagger_rows(records)
        if "error_first" in record["test"]
    ]
    head = ["data", "recipe", "labels", "upper digit", "lower digit", "both"]
    return table("Tagger's error by digit (%)", head, rows)


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
                errors = [_counted(percent(records[name])) if name in records else "-" for name in names]
                rows.append([method, f"{labels:,}", *errors])
    head = ["method", "labels", "error, elements in order", "error, elements permuted"]
    return table("TextureMNIST2 with its elements permuted (%)", head, rows)


def _like_the_code(records: Records) -> list[str]:
    """The paper's method with one more habit of the public code each."""
    variants, rows = ("", "shared-pool", "own-pass"), []
    for digits, labels in itertools.product(DIGITS, TABLE_LABELS):
        names = [tagger_name(digits, labels, variant) for variant in variants]
        if any(name in records for name in names[1:]):
            errors = [_counted(percent(records[name])) if name in records else "-" for name in names]
            rows.append([f"TextureMNIST{digits}", f"{labels:,}", *errors])
    head = [
        "data",
        "labels",
        "FC Tagger, as in Table 2",
        "one pool of digits",
        "labelled scenes in a pass of their own",
    ]
    note = (
        "In the public code's data, training and validation draw from one pool of 60,000 digits. With all labels it "
        "still has labelled scenes in a pass of their own; with few labels all rows have."
    )
    return table("The paper's method with two more habits of its public code (%)", head, rows, note)


def _counted(errors: list[float]) -> str:
    """For tables whose cells differ in their number of seeds."""
    return f"{mean_sd(errors, 2)} (n={len(errors)})"


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
        cells = [_counted(at[n]) if n in at else "-" for n in LABELS]
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
