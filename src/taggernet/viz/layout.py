"""Sheets on which small images are laid out to the hundredth of an inch.

# T iterations · K groups · H, W height and width of an image · C channels

Positions are in inches from the upper left corner.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from torch import Tensor

from taggernet.arrays import Array
from taggernet.data import Scenes
from taggernet.fileio import make_folder
from taggernet.tag import Grouping
from taggernet.viz.colours import FAINT, INK, coloured, grey, group_colour, ink, paint, tint

GAP = 0.05
SMALL, NORMAL = 7.0, 8.0
DPI = 300
STYLE: Any = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": NORMAL,
    "axes.titlesize": NORMAL,
    "axes.labelsize": NORMAL,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "pdf.fonttype": 42,
    "figure.dpi": 100,
    "savefig.facecolor": "white",
}


@contextmanager
def style() -> Iterator[None]:
    """The fonts and lines of all figures."""
    with mpl.rc_context(STYLE):
        yield


def save(figure: Figure, out: str | Path, *, pdf: bool = True) -> tuple[Path, ...]:
    """Write a PDF and a PNG beside each other, whatever the ending of ``out``; no date, so files can be compared.

    A PDF takes longer than a PNG; ``pdf=False`` leaves it out.
    """
    out = Path(out)
    make_folder(out.parent)
    stem = out.with_suffix("") if out.suffix in (".pdf", ".png") else out
    files = tuple(stem.with_name(stem.name + ending) for ending in ((".pdf", ".png") if pdf else (".png",)))
    for file in files:
        if file.suffix == ".pdf":
            figure.savefig(file, metadata={"CreationDate": None})
        else:
            figure.savefig(file, dpi=DPI)
    return files


def enlarged(picture: Float[Array, "H W 3"]) -> Float[Array, "h w 3"]:
    """Every element as a square of several: viewers blur small images."""
    times = max(1, round(240 / max(picture.shape[:2])))
    return picture.repeat(times, 0).repeat(times, 1)


class Sheet:
    """A page of a given size in inches."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.figure = Figure(figsize=(width, height))

    def axes(self, x: float, y: float, width: float, height: float) -> Axes:
        """Axes whose upper left corner is at (x, y)."""
        bottom = 1 - (y + height) / self.height
        return self.figure.add_axes((x / self.width, bottom, width / self.width, height / self.height))

    def image(self, x: float, y: float, size: float, picture: Float[Array, "H W 3"], frame: str = FAINT) -> Axes:
        """A picture that fits a square of this size, every element a sharp square in print too."""
        height, width = picture.shape[:2]
        scale = size / max(height, width)
        box_w, box_h = width * scale, height * scale
        axes = self.axes(x + (size - box_w) / 2, y + (size - box_h) / 2, box_w, box_h)
        axes.imshow(enlarged(picture), interpolation="none", aspect="auto")
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set(color=frame, linewidth=0.6)
        return axes

    def text(self, x: float, y: float, words: str, size: float = NORMAL, **options: Any) -> Text:
        place = {"ha": "left", "va": "center", "color": INK} | options
        return self.figure.text(x / self.width, 1 - y / self.height, words, fontsize=size, **place)

    def line(self, x: Sequence[float], y: Sequence[float], colour: str, width: float = 1.5) -> None:
        xs, ys = [v / self.width for v in x], [1 - v / self.height for v in y]
        self.figure.add_artist(
            Line2D(xs, ys, color=colour, linewidth=width, transform=self.figure.transFigure, solid_capstyle="butt")
        )


@dataclass(frozen=True)
class Trace:
    """The estimates of one scene over iterations, as images; x and z end in (C,) if the scene has channels."""

    x: Float[Array, "H W *C"]
    z: Float[Array, "T K H W *C"]
    m: Float[Array, "T K H W"]
    kind: str = "binary"

    @staticmethod
    def of(scenes: Scenes, grouping: Grouping, index: int, order: Array | None = None) -> Trace:
        """Scene ``index`` of a batch; ``order`` is the permutation of its elements to undo."""
        shape = scenes.shape
        if len(shape) != 2:
            raise ValueError(f"scenes have shape {shape}, but only images (height, width) can be drawn")
        inner = shape if scenes.channels == 1 else (*shape, scenes.channels)
        back = np.arange(shape[0] * shape[1]) if order is None else np.argsort(order)
        z = grouping.units.to_user(torch.stack([state.z[index] for state in grouping.history]))
        m = torch.stack([state.m[index] for state in grouping.history])
        x = np.asarray(scenes.x[index]).reshape(len(back), -1)[back].reshape(inner).astype(float)

        def images(part: Tensor, shape: tuple[int, ...]) -> Array:
            by_position = part.float().cpu().numpy().reshape(*part.shape[:2], len(back), -1)
            return by_position[:, :, back].reshape(*part.shape[:2], *shape)

        return Trace(x, images(z, inner), images(m, shape), scenes.kind)

    @property
    def real(self) -> bool:
        return self.kind == "real"

    @property
    def has_channels(self) -> bool:
        return self.x.ndim > 2

    @property
    def limits(self) -> tuple[float, float]:
        """Black and white of a real-valued scene."""
        low, high = float(self.x.min()), float(self.x.max())
        return (low, high) if high > low else (low, low + 1)

    def input(self) -> Float[Array, "H W 3"]:
        if self.has_channels:
            return coloured(self.x, *self.limits, self.kind)
        return grey(self.x, *self.limits) if self.real else ink(self.x)

    def group(self, i: int, k: int) -> Float[Array, "H W 3"]:
        """z of group k: with channels in its own colours, grey if real, else in the group's colour."""
        if self.has_channels:
            return coloured(self.z[i, k], *self.limits, self.kind)
        return grey(self.z[i, k], *self.limits) if self.real else ink(self.z[i, k], group_colour(k))

    def mask(self, i: int, k: int) -> Float[Array, "H W 3"]:
        return ink(self.m[i, k], group_colour(k))

    def groups(self, i: int = -1) -> Float[Array, "H W 3"]:
        """All groups together, in their colours."""
        low, high = self.limits
        if self.has_channels:  # the input has colours of its own: their lightness only shades those of the groups
            light = coloured(self.z[i], low, high, self.kind).mean(-1)
            return tint(0.5 + 0.5 * light, self.m[i])
        return tint((self.z[i] - low) / (high - low), self.m[i]) if self.real else paint(self.z[i], self.m[i])

    def between(self, position: float) -> Trace:
        """The single estimate at a position between two iterations, for moving pictures."""
        first = min(int(position), len(self.z) - 2)
        share = position - first
        z, m = ((1 - share) * a[first] + share * a[first + 1] for a in (self.z, self.m))
        return Trace(self.x, z[None], m[None], self.kind)
