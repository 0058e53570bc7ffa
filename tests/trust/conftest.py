"""A finished run that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from taggernet.cli import main

TOY = """--widths 24 16 8 --batch 10 --updates 2 --train 30 --valid 20 --test 20 --no-tensorboard --no-progress
    --device cpu --log-every 1 --evaluate-every 0 --checkpoint-every 0 --evaluation-batch 10 --test-iterations 2"""


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory, unchecked: Callable[[], AbstractContextManager[None]]) -> Path:
    """A finished run, which the tests only read."""
    folder = tmp_path_factory.mktemp("trust") / "run"
    with unchecked():
        assert main(["train", "small", "--out", str(folder), *TOY.split()]) == 0
    return folder
