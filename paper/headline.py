"""The paper's headline figures beside ours, for the README: from the same records as the full tables."""

from __future__ import annotations

import statistics
from pathlib import Path

from paper.markdown import DASH, difference, mean_sd, table
from paper.published import TABLE_1A, TABLE_1B, TABLE_2, Published
from paper.records import Record
from paper.table1_markdown import DIFFERENCE_DIGITS, last_iteration
from paper.table2_cells import DIGITS, TABLE_LABELS, tagger_name
from paper.table2_markdown import on_papers_data, percent
from taggernet.fileio import read_json


def headline_table(results: Path) -> str:
    """AMI and cost of Shapes (medians), errors of TextureMNIST (means): the paper's, ours, and our own recipe's."""
    rows = [
        _shapes(results, "shapes", "ami", "Shapes, BatchNorm", "AMI", TABLE_1B["shapes"], own=None),
        _shapes(results, "shapes-layernorm", "ami", "Shapes, LayerNorm", "AMI", TABLE_1B["shapes-layernorm"]),
        _shapes(
            results, "shapes-layernorm", "cost", "Shapes, LayerNorm", "denoising cost",
            Published(TABLE_1A["shapes-layernorm"]["cost"][-1]),
        ),
        *(_texture(results, digits, labels) for digits in DIGITS for labels in TABLE_LABELS),
    ]  # fmt: skip
    return "\n".join(table("", ["data", "metric", "paper", "ours", "difference", "n", "our own recipe"], rows))


def _shapes(
    results: Path, name: str, metric: str, data: str, title: str, paper: Published, own: str | None = "shapes-best"
) -> list[str]:
    record = _record(results / "table1", name)
    best = None if own is None else _record(results / "table1", own)
    ours = [DASH] * 3
    if record is not None:
        found = last_iteration(record, metric)
        apart = difference(found, paper, DIFFERENCE_DIGITS[metric], median=True)
        ours = [f"{statistics.median(found):.3f}", apart, str(len(found))]
    other = DASH if best is None else f"{statistics.median(last_iteration(best, metric)):.3f}"
    return [data, title, str(paper), *ours, other]


def _texture(results: Path, digits: int, labels: int) -> list[str]:
    name = tagger_name(digits, labels)
    record = _record(results / "table2", name)
    best = _record(results / "table2", tagger_name(digits, labels, "best"))
    ours = [DASH] * 3
    if record is not None and on_papers_data(record):
        errors = percent(record)
        ours = [mean_sd(errors, 2), difference(errors, TABLE_2[name], 2), str(len(errors))]
    other = DASH if best is None or not on_papers_data(best) else mean_sd(percent(best), 2)
    return [f"TextureMNIST{digits}, {labels:,} labels", "error (%)", str(TABLE_2[name]), *ours, other]


def _record(folder: Path, name: str) -> Record | None:
    path = folder / f"{name}.json"
    return read_json(path) if path.exists() else None
