"""Run the tests that need a GPU and record what they say: ``python tests/helpers/gpu_report.py FILE``.

Without a GPU all of them are skipped and nothing is written.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


class Reports:
    """A pytest plugin that keeps the outcome of every test."""

    def __init__(self) -> None:
        self.tests: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Set-up, call and tear-down come one after the other; the first that does not pass counts."""
        found = self.tests.setdefault(report.nodeid, {"outcome": "passed", "seconds": 0.0})
        found["seconds"] = round(found["seconds"] + report.duration, 2)
        if report.outcome != "passed" and found["outcome"] == "passed":
            found["outcome"] = report.outcome
            found["message"] = report.longreprtext.strip().rsplit("\n", 1)[-1]


def record(tests: dict[str, dict[str, Any]]) -> dict[str, Any]:
    from taggernet.training.log import environment  # after conftest.py, whose checks of shapes come before any import

    outcomes = [test["outcome"] for test in tests.values()]
    counts = {name: outcomes.count(name) for name in ("passed", "failed", "skipped")}
    return {"environment": environment(), **counts, "tests": dict(sorted(tests.items()))}


def main(out: Path) -> int:
    os.environ["TAGGERNET_NO_TYPECHECK"] = "1"  # neither torch nor Triton can compile what is checked
    reports = Reports()
    status = int(pytest.main(["-m", "cuda", "-p", "no:cacheprovider", "-q", str(ROOT / "tests")], plugins=[reports]))
    if any(test["outcome"] != "skipped" for test in reports.tests.values()):
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(record(reports.tests), indent=2) + "\n")
        print(f"the record is {out}")
    return status


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
