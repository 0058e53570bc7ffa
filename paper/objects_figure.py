"""Pictures of tetrominoes and sprites: scenes, their objects, the groups that Tagger finds, and what these draw.

# K groups · H, W height and width of an image
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Float
from scipy.optimize import linear_sum_assignment

from taggernet.arrays import Array
from taggernet.data import Scenes
from taggernet.tag import Grouping
from taggernet.viz.colours import coloured, palette, rgb
from taggernet.viz.layout import GAP, Sheet, Trace, save, style

SHOWN = 8
"""Scenes of a picture: the first of the test split, whatever became of them."""
GROUND = "#ECECEC"
"""Of the background."""
LABELS = 0.62
"""Room for the names of the rows, in inches."""


def objects_figure(scenes: Scenes, grouping: Grouping, out: str | Path) -> None:
    """A column for each scene, as a PNG; an object has the colour of the group that it shares most positions with."""
    assert scenes.groups is not None
    size, margin = 0.8, 0.06
    traces = [Trace.of(scenes, grouping, i) for i in range(min(SHOWN, len(scenes)))]
    names = ("scene", "objects", "groups", "drawn")
    with style():
        sheet = Sheet(
            2 * margin + LABELS + len(traces) * (size + GAP) - GAP, 2 * margin + len(names) * (size + GAP) - GAP
        )
        for row, name in enumerate(names):
            sheet.text(margin + LABELS - 0.08, margin + row * (size + GAP) + size / 2, name, ha="right")
        for column, trace in enumerate(traces):
            true, found = np.asarray(scenes.groups[column], np.int64), trace.m[-1].argmax(0)
            group_of = matched_objects(true, found, grouping.groups)
            ground = group_of[scenes.background or 0]
            pictures = (trace.input(), in_colours(group_of[true], ground), in_colours(found, ground), drawn(trace))
            for row, picture in enumerate(pictures):
                place = margin + LABELS + column * (size + GAP), margin + row * (size + GAP)
                sheet.image(*place, size, picture)
        save(sheet.figure, out, pdf=False)


def matched_objects(true: Array, found: Array, groups: int) -> Array:
    """For every true number the group that stands for it, so that objects and their groups share most positions."""
    count = max(groups, int(true.max()) + 1)
    shared = np.zeros((count, count))
    np.add.at(shared, (true.ravel(), found.ravel()), 1)
    return np.asarray(linear_sum_assignment(-shared)[1])


def in_colours(labels: Array, background: int) -> Float[Array, "H W 3"]:
    """Every position in the colour of its group, but what is background in a light grey."""
    colours = palette(int(labels.max()) + 1)
    picture = colours[labels]
    picture[labels == background] = rgb(GROUND)
    return np.asarray(picture)


def drawn(trace: Trace) -> Float[Array, "H W 3"]:
    """The mean of q(x): what every group draws, where it owns."""
    mean = (trace.z[-1] * trace.m[-1][..., None]).sum(0)
    return coloured(mean, *trace.limits, trace.kind)
