"""What the tests of figures share."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.figure import Figure

from taggernet.viz import layout


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that were written, at a resolution that takes little time."""
    figures: list[Figure] = []

    def keep(self: Figure, path: Any, **options: Any) -> None:
        figures.append(self)
        original(self, path, **options)

    original = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", keep)
    monkeypatch.setattr(layout, "DPI", 60)
    return figures
