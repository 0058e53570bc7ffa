"""What Figures 4 and 5 are made of: examples in a column, and one inference over iterations.

# T iterations · K groups · C classes

Positions are in inches from the upper left corner of a sheet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from taggernet.arrays import Array
from taggernet.viz.colours import FAINT, group_colour
from taggernet.viz.layout import GAP, SMALL, Sheet, Trace

INFERENCE_LABELS = 0.34
"""Room to the left of an inference block."""
APART = 4 * GAP
"""Between the iterations and what was made of the last one."""


def number(value: float) -> str:
    """Two digits, without a minus before zero and with a proper one elsewhere."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def inference_size(
    groups: int, iterations: int, size: float, bars: float = 0.0, edited: bool = False
) -> tuple[float, float]:
    """Width and height of ``draw_inference``."""
    width = INFERENCE_LABELS + (iterations + 1) * (size + GAP) - GAP + (bars + GAP if bars else 0)
    return width + (APART + size if edited else 0), size + groups * (2 * size + 3.5 * GAP)


def draw_inference(
    sheet: Sheet,
    x: float,
    y: float,
    size: float,
    trace: Trace,
    *,
    classes: Float[Array, "K C"] | None = None,
    bars: float = 0.0,
    edited: tuple[str, Trace] | None = None,
) -> None:
    """Iterations from left to right; below the coloured reconstruction, z and m of each group.

    ``edited``, a title and a trace whose last step is the result after a change, is drawn as one more column; a group
    without a mask there is left out. ``classes`` draws each group's class probabilities to the right of its rows,
    ``bars`` inches wide.
    """
    steps, groups = trace.z.shape[:2]
    left = [x + INFERENCE_LABELS + i * (size + GAP) for i in range(steps)]
    columns = [(at, "start" if i == 0 else f"$i={i}$", trace, i) for i, at in enumerate(left)]
    if edited is not None:
        columns.append((left[-1] + size + APART, edited[0], edited[1], -1))
    after = columns[-1][0] + size + 2 * GAP
    for at, title, shown, i in columns:
        sheet.text(at + size / 2, y - 0.09, title, ha="center")
        sheet.image(at, y, size, shown.groups(i))
    if classes is not None and bars:
        sheet.text(after + (bars - GAP) / 2, y - 0.09, "class", ha="center")
    sheet.text(x + INFERENCE_LABELS - 0.08, y + size / 2, r"$q(\mathbf{x})$", ha="right")
    for k in range(groups):
        top = y + size + 2.5 * GAP + k * (2 * size + 3.5 * GAP)
        colour = group_colour(k)
        sheet.line([x + INFERENCE_LABELS - 0.045] * 2, [top, top + 2 * size + GAP], colour, width=2.0)
        for row, name in enumerate(("z", "m")):
            under = top + row * (size + GAP)
            sheet.text(x + INFERENCE_LABELS - 0.09, under + size / 2, rf"$\mathbf{{{name}}}_{{{k + 1}}}$", ha="right")
            for at, _, shown, i in columns:
                if shown.m[i, k].any():
                    sheet.image(at, under, size, shown.group(i, k) if name == "z" else shown.mask(i, k))
                elif name == "z":
                    sheet.text(at + size / 2, top + size + GAP / 2, "removed", SMALL, ha="center", color=FAINT)
        if classes is not None and bars:
            draw_bars(sheet, after, top + size * 0.3, bars - GAP, size * 1.5, classes[k], colour)


@dataclass(frozen=True)
class Example:
    """One row of the left column: a scene, its groups, and what is said about it."""

    trace: Trace
    note: str
    letter: str = ""


def draw_examples(sheet: Sheet, x: float, y: float, size: float, examples: Sequence[Example], gap: float) -> float:
    """Input, groups and note of each example, a gap before the first letter; returns the lower edge."""
    sheet.text(x + size / 2, y - 0.09, "input", ha="center")
    sheet.text(x + size * 1.5 + GAP, y - 0.09, "groups", ha="center")
    lettered = False
    for example in examples:
        if example.letter and not lettered:
            y += gap
            lettered = True
        sheet.text(x - 0.08, y + size / 2, example.letter, ha="right", weight="bold")
        sheet.image(x, y, size, example.trace.input())
        sheet.image(x + size + GAP, y, size, example.trace.groups())
        sheet.text(x + 2 * (size + GAP) + 0.02, y + size / 2, example.note, SMALL, linespacing=1.25)
        y += size + GAP
    return y - GAP


def examples_height(count: int, size: float, gap: float) -> float:
    return count * (size + GAP) - GAP + gap


def draw_bars(
    sheet: Sheet, x: float, y: float, width: float, height: float, values: Float[Array, "C"], colour: str
) -> Axes:
    """A small bar chart of shares from 0 to 1, the class under each bar; the last is 'no class'."""
    axes = sheet.axes(x, y, width, height)
    axes.bar(np.arange(len(values)), values, color=colour, width=0.8)
    names = [*map(str, range(len(values) - 1)), "–"]
    axes.set(ylim=(0, 1), xlim=(-0.6, len(values) - 0.4), yticks=[])
    axes.set_xticks(np.arange(len(values)), names, fontsize=5)
    axes.tick_params(length=0, pad=1)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set(color=FAINT)
    return axes
