"""Pictures of groups, as a vector PDF and a PNG.

# K groups
"""

from __future__ import annotations

from pathlib import Path

from taggernet.data import Scenes
from taggernet.tag import Grouping
from taggernet.viz.layout import GAP, Sheet, Trace, save, style


def grouping_figure(scenes: Scenes, grouping: Grouping, out: str | Path, *, rows: int = 8, pdf: bool = True) -> None:
    """Rows of scenes: the input, its groups in colour, and the mask of every group; a PNG and, unless told, a PDF."""
    count = min(rows, len(scenes))
    traces = [Trace.of(scenes, grouping, i) for i in range(count)]
    size, margin, header, apart = 0.72, 0.08, 0.22, 0.12
    width = 2 * margin + (2 + grouping.groups) * (size + GAP) - GAP + apart
    with style():
        sheet = Sheet(width, 2 * margin + header + count * (size + GAP) - GAP)
        lefts = [margin + c * (size + GAP) + (apart if c > 1 else 0) for c in range(2 + grouping.groups)]
        masks = [rf"$\mathbf{{m}}_{{{k + 1}}}$" for k in range(grouping.groups)]
        for at, title in zip(lefts, ["input", "groups", *masks], strict=True):
            sheet.text(at + size / 2, margin + header - 0.1, title, ha="center")
        for r, trace in enumerate(traces):
            y = margin + header + r * (size + GAP)
            masked = [trace.mask(-1, k) for k in range(grouping.groups)]
            for at, picture in zip(lefts, [trace.input(), trace.groups(), *masked], strict=True):
                sheet.image(at, y, size, picture)
        save(sheet.figure, out, pdf=pdf)
