"""Put the explorer beside the documentation, at explore/: the same files that ``taggernet explore`` serves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from taggernet.explorer.bundle import bundle


def on_post_build(config: Any, **_: Any) -> None:
    """Called by mkdocs when all pages are written."""
    bundle("shapes").write(Path(config["site_dir"]) / "explore")
