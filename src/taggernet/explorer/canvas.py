"""The canvas on which scenes are drawn: its HTML, and what its script needs to know."""

from __future__ import annotations

from html import escape
from importlib import resources
from typing import Any

from taggernet.explorer.scenes import Source

FINE = 20
"""Up to this side a pen draws single cells; on finer grids it is three cells wide, like MNIST's strokes."""


def asset(name: str) -> str:
    """A file of the page's own."""
    return resources.files("taggernet.explorer").joinpath("static", name).read_text(encoding="utf-8")


def setup(source: Source, shape: tuple[int, ...]) -> dict[str, Any]:
    rows, cols = shape
    stamps = [
        {"name": name, "mask": mask.astype(int).tolist()}
        for name, mask in source.stamps.items()
        if mask.shape[0] <= rows and mask.shape[1] <= cols
    ]
    brush = 1 if max(shape) <= FINE else 3
    return {"rows": rows, "cols": cols, "stamps": stamps, "brush": brush}


def template(source: Source, shape: tuple[int, ...]) -> str:
    rows, cols = shape
    tools = [(f"pen:{number}", name) for number, name in enumerate(source.pens, start=1)]
    tools += [(f"stamp:{number}", name) for number, name in enumerate(source.stamps)]
    tools.append(("eraser", "Eraser"))
    radios = "".join(
        f'<label><input type="radio" name="tn-tool" value="{value}"{"" if i else " checked"}>{escape(name)}</label>'
        for i, (value, name) in enumerate(tools)
    )
    return (
        f'<div class="tn-draw"><fieldset><legend>Draw with</legend>{radios}</fieldset>'
        f'<canvas tabindex="0" role="application" aria-label="Canvas of {rows} by {cols} cells: arrow keys move, '
        'Space draws, Delete erases" data-inked="0"></canvas>'
        '<div class="tn-row"><button type="button" data-do="undo">Undo</button>'
        '<button type="button" data-do="clear">Clear</button></div>'
        "<p>Mouse or finger draws; on the keyboard the arrows move, Space draws and Delete erases.</p>"
        '<span class="tn-sr" aria-live="polite"></span></div>'
    )
