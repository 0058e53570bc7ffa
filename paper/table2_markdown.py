"""Table 2 as markdown: records under results/table2 in, the paper's figures beside ours out.

What stands behind the figures is in ``paper/table2_details.py``.

Errors are in percent of the test scenes, mean and sample standard deviation over seeds, after the last iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paper.markdown import DASH, difference, links, mean_sd, table
from paper.published import LADDER_ON_MNIST, TABLE_2
from paper.records import Record
from paper.table2_cells import DIGITS, TABLE_LABELS, VARIANTS, baseline_name, tagger_name
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
}
"""Variants; the first is the paper's method."""
Records = dict[str, Record]


def main_table(results: Path, root: str) -> str:
    """The paper's table with links to recipes and records; how Tagger's rows differ; ``root`` is the repository."""
    records = records_in(results)
    return "\n\n".join("\n".join(part) for part in (errors_table(records, root), settings_table(records)) if part)


def either_on_top_table(results: Path, root: str) -> str:
    """Errors on scenes of two digits with either on top, which the paper does not have."""
    records, rows = records_in(results), []
    for title, recipes, names in _methods(2):
        if any(name in records for name in names):
            title += _links(recipes, names, records, root, f"results/table2/{results.name}")
            rows.append([title, *(counted(percent(records[n])) if n in records else DASH for n in names)])
    return "\n".join(table("Two digits, either on top: test error in percent", ["method", "50k", "1k"], rows))


def records_in(results: Path) -> Records:
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


def tagger_rows(records: Records) -> list[tuple[str, int, int, Record]]:
    """Variant, digits, labels and record of the Tagger cells that there are; the curve's other cells left out."""
    cells = [(v, d, n, tagger_name(d, n, v)) for d in DIGITS for v in TITLES for n in TABLE_LABELS]
    return [(v, d, n, records[name]) for v, d, n, name in cells if name in records]


def where(digits: int, variant: str, labels: int) -> list[str]:
    return [f"TextureMNIST{digits}", TITLES[variant], f"{labels:,}"]


def counted(errors: list[float]) -> str:
    """For tables whose cells differ in their number of seeds."""
    return f"{mean_sd(errors, 2)} (n={len(errors)})"


def errors_table(records: Records, root: str | None = None) -> list[str]:
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


def settings_table(records: Records) -> list[str]:
    """What each Tagger row was trained with, and how many iterations it has."""
    rows = []
    for variant, digits, labels, record in tagger_rows(records):
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
