"""When is training done before its last update? When groups have formed and neither cost nor agreement gets better.

Validation alone does not tell: its cost can rest for a while before groups form, so that a run without groups is never
stopped early.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from taggernet.grouping_report import GroupingReport

COST = 0.01
"""Least progress of the cost that counts, as a share of all its progress so far."""
AGREEMENT = 0.01
"""Least progress of the agreement that counts."""
NUMBERS = ("confidence", "agreement", "used", "elsewhere")
"""Of a grouping report, in a record."""


@dataclass
class Patience:
    """What evaluations found since update ``since``, as means over the seeds."""

    evaluations: int
    """So many without progress end the training; 0: none do."""
    since: int = 0
    by_parts: bool = False
    """Whether masks start from the parts of the data (``GroupingReport``)."""
    costs: list[float] = field(default_factory=list)
    agreements: list[float] = field(default_factory=list)
    formed: bool = False

    def see(self, cost: list[list[float]], grouping: dict[str, list[float]]) -> None:
        """Cost (S, T) and numbers of the grouping report (S,) of one evaluation."""
        self.costs.append(fmean(of_seed[-1] for of_seed in cost))
        self.agreements.append(fmean(grouping["agreement"]))
        confidence, agreement, used, elsewhere = (
            [fmean(grouping[name])] if grouping.get(name) else []  # earlier versions did not look elsewhere
            for name in NUMBERS
        )
        report = GroupingReport(0, confidence, agreement, used, elsewhere, by_parts=self.by_parts)
        self.formed = report.formed[0]

    def see_again(self, records: Iterable[dict[str, Any]]) -> None:
        """The evaluations in the records of a run that is resumed."""
        for record in records:
            if "grouping" in record and record["step"] > self.since:
                self.see(record["valid"]["cost"], record["grouping"])

    @property
    def is_over(self) -> bool:
        """Whether groups formed and the last evaluations brought nothing more."""
        n = self.evaluations
        if not n or len(self.costs) <= n or not self.formed:
            return False
        progress = min(self.costs[:-n]) - min(self.costs[-n:])
        all_progress = self.costs[0] - min(self.costs)
        agreed = max(self.agreements[-n:]) - max(self.agreements[:-n])
        return progress <= COST * all_progress and agreed < AGREEMENT


def numbers(report: GroupingReport) -> dict[str, list[float]]:
    """What a record keeps of a grouping report."""
    return {name: getattr(report, name) for name in NUMBERS}


def duration(seconds: float) -> str:
    """In words, as rough as an estimate is: 40 s, 4 min, 2 h 10 min."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    tens = round(minutes / 10) * 10
    return f"{tens // 60} h {tens % 60} min" if tens % 60 else f"{tens // 60} h"
