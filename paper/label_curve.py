"""The figure of Table 2: how errors fall with the number of labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paper.charts import bare
from paper.table2_details import Curve
from taggernet.viz.colours import FAINT, group_colour
from taggernet.viz.layout import SMALL, save, style

LOOKS: dict[str, tuple[int, str]] = {
    "FC Tagger": (3, "v"),
    "Tagger + mask reader": (1, "o"),
    "Tagger + mask reader, fresh compositions": (4, "D"),
    "FC Ladder": (0, "s"),
    "ConvNet": (2, "^"),
}
"""Colour and marker of each method."""
CHANCE = {1: 90.0, 2: 80.0}


def label_curve_figure(curves: Sequence[Curve], out: str | Path) -> None:
    """A panel per data set, both axes logarithmic; lines are means over seeds, bands their standard deviation."""
    with style():
        shown = sorted({curve.digits for curve in curves})
        labels = sorted({n for curve in curves for n in curve.labels})
        figure = Figure(figsize=(0.4 + 2.9 * len(shown), 2.5), layout="constrained")
        panels: Any = figure.subplots(1, len(shown), sharex=True, sharey=True, squeeze=False)[0]
        for axes, digits in zip(panels, shown, strict=True):
            _panel(axes, [curve for curve in curves if curve.digits == digits], digits)
            axes.set_xticks(labels, [f"{n // 1000}k" if n >= 1000 else str(n) for n in labels])
        panels[0].set_ylabel("test error (%)")
        lines = {
            text: line for axes in panels[::-1] for line, text in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        looks: Any = {"frameon": False, "handlelength": 1.6, "columnspacing": 1.4}
        figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=1 + len(shown), **looks)
        save(figure, out)


def _panel(axes: Axes, curves: Sequence[Curve], digits: int) -> None:
    axes.axhline(CHANCE[digits], color=FAINT, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    axes.annotate("chance", (1, CHANCE[digits]), xycoords=("axes fraction", "data"), xytext=(-2, -3), va="top",
                  textcoords="offset points", ha="right", fontsize=SMALL - 0.5, color="#808080")  # fmt: skip
    for curve in curves:
        colour, marker = LOOKS[curve.method]
        mean = np.array([np.mean(values) for values in curve.errors])
        spread = np.array([np.std(values, ddof=1) if len(values) > 1 else 0.0 for values in curve.errors])
        line: Any = {"color": group_colour(colour), "linewidth": 1.3, "marker": marker, "markersize": 3.2}
        axes.plot(curve.labels, mean, label=curve.method, zorder=3, **line)
        low = np.maximum(mean - spread, 0.5 * mean)
        axes.fill_between(curve.labels, low, mean + spread, color=group_colour(colour), alpha=0.2, linewidth=0)
    axes.set(xscale="log", yscale="log", xlabel="labels")
    lowest = min(float(np.mean(values)) for curve in curves for values in curve.errors)
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100) if tick >= 0.4 * lowest]
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_title(f"TextureMNIST{digits}", loc="left", pad=4)
    bare(axes)
