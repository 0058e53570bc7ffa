"""What could be read from perfect masks: it is learned, and scored on the right digits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from paper.__main__ import main
from paper.perfect_masks import perfect_mask_error
from taggernet.data import fixture_digits


@pytest.mark.parametrize("digits", [1, 2])
def test_perfect_masks_are_read(digits: int) -> None:
    known = fixture_digits("train")
    errors = perfect_mask_error(known, known, digits, updates=150, channels=(8, 16))
    assert len(errors) == digits
    assert max(errors) < 0.3, "it has seen these digits"


def test_the_error_is_that_of_the_other_digits() -> None:
    """Which have labels at random here."""
    images, labels = fixture_digits("train")
    wrong = np.random.default_rng(0).permutation(labels)
    (error,) = perfect_mask_error((images, labels), (images, wrong), 1, updates=60, channels=(8,))
    assert error > 0.7


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "made" / "two.json"
    assert main(["perfect-masks", "--quick", "--device", "cpu", "--out", str(out)]) == 0
    record = json.loads(out.read_text())
    assert (record["digits"], record["updates"], len(record["error_by_digit"])) == (2, 20, 2)
    assert "read from perfect masks" in capsys.readouterr().out
