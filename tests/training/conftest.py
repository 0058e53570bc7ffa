"""A finished run that several tests of faults compare with."""

from __future__ import annotations

from pathlib import Path

import pytest
from faulty import CONFIG

from taggernet.training import train


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run, which the tests only read."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    train(CONFIG, folder)
    return folder
