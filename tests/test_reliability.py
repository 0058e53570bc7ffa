"""Every promise of docs/reliability.md names tests that exist, and every test of a fault stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "reliability.md").read_text())


@pytest.mark.parametrize(("path", "name"), NAMED, ids=[name for _, name in NAMED])
def test_a_promise_names_a_test_that_exists(path: str, name: str) -> None:
    assert re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.MULTILINE), f"{path} has no {name}"


@pytest.mark.parametrize("path", ["tests/training/test_failures.py", "tests/training/test_failures_of_the_machine.py"])
def test_every_fault_that_is_tested_is_promised(path: str) -> None:
    """But for what guards the tests themselves."""
    written = set(re.findall(r"^def (test_\w+)", (ROOT / path).read_text(), re.MULTILINE))
    unnamed = written - {name for where, name in NAMED if where == path}
    assert unnamed <= {"test_other_errors_are_not_taken_for_a_lack_of_memory"}
