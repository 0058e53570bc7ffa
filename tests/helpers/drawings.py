"""Whether a figure was written."""

from __future__ import annotations

from pathlib import Path


def written(out: Path) -> bool:
    """Both files, each of its own kind."""
    pdf, png = out.with_suffix(".pdf"), out.with_suffix(".png")
    return pdf.read_bytes().startswith(b"%PDF") and png.read_bytes().startswith(b"\x89PNG")
