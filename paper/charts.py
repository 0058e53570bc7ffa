"""Figures of a ``generalisation`` record: other K, objects and T than in training, failures, the worst scenes.

# S seeds · K groups · J objects · T iterations
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Rectangle

from paper.figure_blocks import number
from paper.replay import Replay
from taggernet.arrays import Array
from taggernet.config.run import DataConfig
from taggernet.tagger import Tagger
from taggernet.viz.colours import FAINT, INK, group_colour, rgb
from taggernet.viz.layout import GAP, SMALL, Sheet, save, style

BLUE = group_colour(1)
KIND_COLOURS = {"perfect": 2, "ragged": 4, "merged": 5, "split": 0, "coincident": 7}
"""Failure kinds, in the order of the bars, and the colour of each."""


def generalisation_figure(record: dict[str, Any], out: str | Path) -> None:
    """Heat maps over K and objects, curves over T, failure kinds, AMI by overlap and by like shapes.

    Bars and lines are means over the seeds, error bars and bands their standard deviation.
    """
    standard = record["standard"]
    with style():
        spacing = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06, wspace=0.02, hspace=0.02)
        figure = Figure(figsize=(7.0, 4.1), layout=spacing)
        grid = figure.add_gridspec(2, 12)
        spans = [(0, slice(4 * i, 4 * i + 4)) for i in range(3)] + [(1, slice(3 * i, 3 * i + 3)) for i in range(4)]
        panels = [figure.add_subplot(grid[row, columns]) for row, columns in spans]
        _heat(panels[0], record, "ami", f"AMI, $T={standard['iterations']}$", number)
        _heat(panels[1], record, "empty", f"empty groups, $T={standard['iterations']}$", lambda v: f"{v:.1f}")
        _failures(panels[2], standard)
        _curves(panels[3], record, "ami", "AMI")
        _curves(panels[4], record, "cost", "cost (nats)")
        _overlap(panels[5], standard)
        _alike(panels[6], standard)
        for letter, axes in zip("abcdefg", panels, strict=True):
            at: Any = {"xytext": (-15, 4), "textcoords": "offset points", "xycoords": "axes fraction"}
            axes.annotate(letter, (0, 1), **at, weight="bold")
        save(figure, out)


def surface(record: dict[str, Any], name: str, iteration: int) -> Array:
    """(J, K): mean over the seeds after an iteration; NaN where it was not measured."""
    groups, objects = record["groups"], record["objects"]
    found = np.full((len(objects), len(groups)), np.nan)
    for cell in record["sweep"]:
        values = np.array(cell[name])[:, min(iteration, record["iterations"]) - 1]
        found[objects.index(cell["objects"]), groups.index(cell["groups"])] = values.mean()
    return found


def _heat(axes: Axes, record: dict[str, Any], name: str, title: str, text: Any) -> None:
    standard, groups, objects = record["standard"], record["groups"], record["objects"]
    values = surface(record, name, standard["iterations"])
    top = 1.0 if name == "ami" else max(float(np.nanmax(values)), 1.0)
    share = np.clip(values / top, 0, 1)[..., None]
    axes.imshow(1 - share * (1 - rgb(BLUE)), aspect="auto", origin="lower", interpolation="nearest")
    for j, row in enumerate(values):
        for k, value in enumerate(row):
            colour = "white" if share[j, k, 0] > 0.6 else INK
            axes.text(k, j, text(value), ha="center", va="center", fontsize=SMALL - 0.5, color=colour)
    if standard["groups"] in groups and standard["objects"] in objects:
        at = groups.index(standard["groups"]) - 0.5, objects.index(standard["objects"]) - 0.5
        axes.add_patch(
            Rectangle(at, 1, 1, fill=False, edgecolor=group_colour(5), linewidth=1.5, clip_on=False, zorder=3)
        )
    axes.set(xlabel="groups $K$", ylabel="objects")
    axes.set_title(title, loc="left", pad=4)
    axes.set_xticks(range(len(groups)), map(str, groups))
    axes.set_yticks(range(len(objects)), map(str, objects))
    axes.tick_params(length=0)


def _curves(axes: Axes, record: dict[str, Any], name: str, label: str) -> None:
    """Over T at the standard K, one line per number of objects."""
    k = record["standard"]["groups"]
    steps = np.arange(1, record["iterations"] + 1)
    cells = [cell for cell in record["sweep"] if cell["groups"] == k]
    for number_, cell in enumerate(sorted(cells, key=lambda c: int(c["objects"]))):
        values = np.array(cell[name])
        mean, spread = values.mean(0), values.std(0, ddof=1) if len(values) > 1 else np.zeros(len(steps))
        colour = group_colour((4, 2, 1, 0, 5, 3, 7, 6)[number_ % 8])
        axes.plot(steps, mean, color=colour, linewidth=1.2, marker="o", markersize=2.2, label=str(cell["objects"]))
        axes.fill_between(steps, mean - spread, mean + spread, color=colour, alpha=0.2, linewidth=0)
    axes.set(xlabel="iterations $T$")
    axes.set_title(f"{label}, $K={k}$", loc="left", pad=4)
    axes.set_xticks(steps[:: max(1, len(steps) // 10)])
    if name == "ami":
        axes.set_ylim(min(-0.03, axes.get_ylim()[0]), 1.02)
    else:
        axes.set_ylim(0, 1.3 * axes.get_ylim()[1])  # room for the legend of both panels above the lines
        looks: Any = {
            "frameon": False,
            "handlelength": 0.8,
            "handletextpad": 0.3,
            "columnspacing": 0.7,
            "borderpad": 0.1,
        }
        axes.legend(title="objects", title_fontsize=SMALL, loc="upper center", ncols=max(1, len(cells)), **looks)
    bare(axes)


def _bars(axes: Axes, names: list[str], seeds: Sequence[list[float] | None], colours: list[str]) -> None:
    """A bar per name; a missing one (no scenes) stays empty."""
    for place, (values, colour) in enumerate(zip(seeds, colours, strict=True)):
        if values is not None:
            spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
            axes.bar(
                place, np.mean(values), 0.72, yerr=spread, color=colour, error_kw={"elinewidth": 0.8, "capsize": 1.5}
            )
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.tick_params(axis="x", length=0)
    bare(axes)


def _failures(axes: Axes, standard: dict[str, Any]) -> None:
    seeds = [[100 * share for share in standard["failures"][kind]] for kind in KIND_COLOURS]
    _bars(axes, list(KIND_COLOURS), seeds, [group_colour(k) for k in KIND_COLOURS.values()])
    for place, values in enumerate(seeds):
        mean, spread = np.mean(values), np.std(values, ddof=1) if len(values) > 1 else 0.0
        above: Any = {"xytext": (0, 2), "textcoords": "offset points", "ha": "center", "fontsize": SMALL}
        axes.annotate(f"{mean:.1f}", (place, float(mean + spread)), **above)
    axes.set(ylim=(0, 108))
    axes.set_title(f"scenes by outcome (%), {_setting(standard)}", loc="left", pad=4)


def _overlap(axes: Axes, standard: dict[str, Any]) -> None:
    bins = standard["overlap"]
    names = [f"{100 * one['up_to']:g}" for one in bins]
    names[-1] = f">{100 * bins[-1]['above']:g}"
    _bars(axes, names, [b["ami"] for b in bins], [BLUE] * len(bins))
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("covered twice, up to (%)")
    axes.set_title(f"AMI by overlap, {_setting(standard)}", loc="left", pad=4)


def _alike(axes: Axes, standard: dict[str, Any]) -> None:
    """AMI by how many shapes of a scene are of one kind, coincident scenes left out."""
    found = standard["alike"]
    names = ["all differ", *(f"{one['alike']} alike" for one in found[1:])]
    _bars(axes, names, [one["ami"] for one in found], [BLUE] * len(found))
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("kinds of the shapes")
    axes.set_title(f"AMI by likeness, {_setting(standard)}", loc="left", pad=4)


def _setting(standard: dict[str, Any]) -> str:
    return f"$K={standard['groups']}$, $T={standard['iterations']}$"


def bare(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="y", color=FAINT, linewidth=0.3)
    axes.set_axisbelow(True)


def worst_scenes_figure(
    model: Tagger,
    record: dict[str, Any],
    out: str | Path,
    *,
    index: int = 0,
    data: DataConfig | None = None,
    columns: int = 8,
) -> None:
    """The worst scenes of each failure kind of a ``generalisation`` record, whose index-th model this is."""
    standard = record["standard"]
    replay = Replay(model, data, record["scenes"], record["seed"], standard["iterations"], record["batch"])
    drawn = replay.load_scenes(standard["objects"])
    worst = {kind: found[:columns] for kind, found in standard["worst"][index].items() if found}
    size, margin, label, between, score = 0.62, 0.08, 0.85, 0.12, 0.16
    block = score + 2 * size + GAP + between
    shown = max((len(found) for found in worst.values()), default=0)
    with style():
        sheet = Sheet(2 * margin + label + max(shown, 1) * (size + GAP) - GAP, 2 * margin + max(len(worst), 1) * block)
        for b, (kind, found) in enumerate(worst.items()):
            y = margin + b * block + score
            share = standard["failures"][kind][index]
            sheet.text(margin, y + size, kind, weight="bold", va="bottom")
            sheet.text(margin, y + size + 0.03, f"{share:.1%} of scenes".replace("%", " %"), SMALL, va="top")
            traces = replay.traces(drawn, [one["scene"] for one in found], standard["groups"])
            for c, (one, trace) in enumerate(zip(found, traces, strict=True)):
                x = margin + label + c * (size + GAP)
                sheet.text(x + size / 2, y - 0.06, f"AMI {number(one['ami'])}", SMALL, ha="center")
                sheet.image(x, y, size, trace.input())
                sheet.image(x, y + size + GAP, size, trace.groups())
        save(sheet.figure, out)
