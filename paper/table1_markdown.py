"""Table 1 as markdown: records under results/table1 in, the paper's figures beside ours out.

The paper prints medians over 20 seeds, so ours are medians too; spreads are sample standard deviations.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np

from paper.markdown import DASH, difference, links, mean_sd, table
from paper.published import TABLE_1A, TABLE_1B, Published
from paper.records import Record
from taggernet.fileio import read_json

TITLES = {
    "shapes": "Tagger (BatchNorm)",
    "shapes-layernorm": "Tagger* (LayerNorm)",
    "shapes-best": "Tagger, our best recipe (half the width)",
    "shapes-wide": "Tagger, the same at full width",
    "shapes-permuted": "Tagger*, permuted elements",
}
METRICS = {"cost": ("denoising cost", 3), "ami": ("AMI", 2)}
"""Title, and the digits that the paper prints."""
DIFFERENCE_DIGITS = {"cost": 4, "ami": 3}
Linked = Callable[[str, str], str]
"""A recipe's file and a record's -> links to both, or nothing."""


def table1(results: Path, root: str | None = None) -> str:
    """Tables 1a and 1b from the records in a folder; ``root`` leads from the page to the repository and adds links."""
    records = {name: read_json(results / f"{name}.json") for name in TITLES if (results / f"{name}.json").exists()}

    def linked(recipe_file: str, name: str) -> str:
        return "" if root is None else links(recipe_file, {"record": f"results/table1/{name}.json"}, root)

    limit = _limit(results / "bayes-limit.json")
    parts = [_over_iterations(records, limit), _methods(records, results / "rc.json", limit, linked)]
    shares = [r["coincident_share"] for r in records.values() if r.get("coincident_share") is not None]
    if shares:
        parts.append([f"{100 * shares[0]:.2f} % of the test scenes have two shapes exactly on top of each other."])
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def last_iteration(record: Record, metric: str) -> list[float]:
    """A metric of the test split per seed, after the last iteration."""
    return [row[-1] for row in record["test"][metric]]


def _limit(file: Path) -> Record:
    """The least cost, and the AMI of the most probable three objects, with standard errors; empty without a record."""
    found = read_json(file)["limits"] if file.exists() else []
    for one in found:
        if one["objects"] == 3:
            return {"cost": one.get("entropy_with_control", one["entropy"]), "ami": one["ami"], "scenes": one["scenes"]}
    return {}


def _over_iterations(records: dict[str, Record], limit: Record) -> list[str]:
    rows = []
    for name, record in records.items():
        for metric, (title, digits) in METRICS.items():
            ours = np.asarray(record["test"][metric]).T
            cells = _rounded(np.median(ours, axis=1)) + (_rounded([limit[metric]["mean"]]) if limit else [])
            rows.append([TITLES[name], f"{title}, ours (n={len(record['seeds'])})", *cells])
            if name in TABLE_1A:
                paper = TABLE_1A[name][metric]
                rows.append(["", f"{title}, paper (n=20)", *_rounded(paper, digits)])
                apart = [
                    difference(list(one), Published(p), DIFFERENCE_DIGITS[metric], median=True)
                    for one, p in zip(ours, paper, strict=True)
                ]
                rows.append(["", "difference", *apart])
    head = ["row", "", *(f"iter {i}" for i in range(1, 6)), *(["limit"] if limit else [])]
    note = "The paper gives no spread over iterations: the standard error of the difference is that of our median."
    return table("Table 1a: convergence over iterations (Shapes, median over seeds)", head, rows, note)


def _rounded(values: object, digits: int = 3) -> list[str]:
    return [f"{value:.{digits}f}" for value in np.asarray(values)]


def _methods(records: dict[str, Record], rc: Path, limit: Record, linked: Linked) -> list[str]:
    rows = []
    if rc.exists():
        for name, mode in read_json(rc)["modes"].items():
            final = {key: [seed["test"][key] for seed in mode["seeds"]] for key in ("ami", "ami_arithmetic", "ari")}
            title = f"RC, trained on {name.replace('_', ' ')}"
            rows.append([title + linked("paper/rc/run.py", "rc"), *_method(final, TABLE_1B["rc"])])
    for name, record in records.items():
        final = {metric: last_iteration(record, metric) for metric in record["test"]}
        title = TITLES[name] + linked("src/taggernet/recipes/shapes.py", name)
        rows.append([title, *_method(final, TABLE_1B.get(name))])
    if rows and limit:
        cost, ami = (f"{limit[name]['mean']:.4f} ± {limit[name]['standard_error']:.4f}" for name in ("cost", "ami"))
        title = "Bayes limit" + linked("benchmarks/bayes_limit.py", "bayes-limit")
        rows.append([title, DASH, ami, DASH, DASH, DASH, DASH, DASH, cost])
    head = ["method", "paper", "ours", "difference", "n", "mean ± sd", "AMI (arithmetic)", "ARI", "cost"]
    note = (
        "Paper and ours are medians over seeds. The standard error of the difference includes the paper's spread over "
        "20 seeds (RC: our runs alone). Arithmetic AMI and ARI are mean ± standard deviation, the cost is a median."
    )
    if limit:
        note += (
            " The limit is computed from the exact posterior over all placements, mean ± standard error over "
            f"{limit['scenes']:,} test scenes; its AMI is that of the most probable objects."
        )
    return table("Table 1b: AMI after the last iteration (max normaliser)", head, rows, note)


def _method(final: dict[str, list[float]], paper: Published | None) -> list[str]:
    ami = final["ami"]
    return [
        DASH if paper is None else str(paper),
        f"{statistics.median(ami):.3f}",
        DASH if paper is None else difference(ami, paper, 3, median=True),
        str(len(ami)),
        *(mean_sd(final[metric]) for metric in ("ami", "ami_arithmetic", "ari")),
        f"{statistics.median(final['cost']):.4f}" if "cost" in final else DASH,
    ]
