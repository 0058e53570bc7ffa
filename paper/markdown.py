"""Markdown from numbers: tables, links to recipes and records, a mean with its spread, a difference with its error."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import PurePosixPath

from paper.published import Published

MEDIAN_ERROR = math.sqrt(math.pi / 2)
"""Standard error of a median, in units of that of the mean (normal distribution)."""
DASH = "-"


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> list[str]:
    """The lines of a table; none without rows. Rows shorter than the head end in empty cells."""
    if not rows:
        return []
    lines = [f"### {title}", ""] if title else []
    lines += [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines += [f"| {' | '.join([*row, *[''] * (len(head) - len(row))])} |" for row in rows]
    return [*lines, "", note] if note else lines


def mean_sd(values: Sequence[float], digits: int = 3) -> str:
    """Mean ± sample standard deviation."""
    return f"{statistics.fmean(values):.{digits}f} ± {_sd(values):.{digits}f}"


def difference(values: Sequence[float], paper: Published, digits: int, *, median: bool = False) -> str:
    """Ours minus the paper's ± the standard error of that difference.

    The paper's runs count in the error where it gives their number and spread; otherwise the error is ours alone.
    """
    center = statistics.median(values) if median else statistics.fmean(values)
    variance = _sd(values) ** 2 / len(values)
    if paper.sd is not None and paper.n is not None:
        variance += paper.sd**2 / paper.n
    error = math.sqrt(variance) * (MEDIAN_ERROR if median else 1)
    return f"{signed(center - paper.value, digits)} ± {error:.{digits}f}"


def signed(value: float, digits: int) -> str:
    """With a sign, a proper minus, and none before zero."""
    rounded = round(value, digits) + 0.0
    return f"{rounded:+.{digits}f}".replace("-", "−") if rounded else f"{0:.{digits}f}"


def links(recipe_file: str, records: dict[str, str], root: str = "") -> str:
    """Links to a row's recipe and to its records, by name; ``root`` leads from the page to the repository."""
    found = {"recipe": recipe_file, **records}
    return f" ({', '.join(f'[{name}]({PurePosixPath(root, path)})' for name, path in found.items())})"


def _sd(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0
