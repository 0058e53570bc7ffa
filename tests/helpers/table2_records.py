"""Records of Table 2, made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def record(errors: list[float], **more: Any) -> dict[str, Any]:
    """A record with these errors in percent, one seed each, half as good after its first iteration."""
    return {
        "config": {"data": more.pop("data", "texture-mnist-1")},
        "seeds": list(range(len(errors))),
        "test_scenes": more.pop("test_scenes", 10_000),
        "test": {"error": [[min(1, e / 50), e / 100] for e in errors], **more.pop("test", {})},
        **more,
    }


def write(folder: Path, **records: dict[str, Any]) -> None:
    for name, content in records.items():
        (folder / f"{name.replace('_', '-')}.json").write_text(json.dumps(content))
