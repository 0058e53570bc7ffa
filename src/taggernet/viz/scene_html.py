"""Scenes and their groups as HTML: pictures, curves or bars, as the shape of the data suggests.

# B scenes · K groups · P positions · C channels · H, W height and width

Pictures are tiny PNGs, one pixel per element; curves and bars are SVG. Nothing refers to another file.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from jaxtyping import Float, Int
from PIL import Image

from taggernet.arrays import Array
from taggernet.data import Scenes
from taggernet.tag import Grouping
from taggernet.viz.colours import INK, coloured, grey, group_colour, ink, paint, rgb, tint

MOST_BARS, MOST_POINTS = 120, 1_000
SMOOTH = 0.3
"""Correlation of neighbours from which on a row of numbers is drawn as a curve."""
PALE = 0.15
WIDTH, HEIGHT = 300, 90


def scenes_html(scenes: Scenes, grouping: Grouping, count: int) -> str:
    """The first scenes with their groups: the input, all groups in colour, and z and m of every group."""
    count = min(count, len(scenes))
    x, z, m = (np.asarray(part[:count], np.float64) for part in (scenes.x, grouping.reconstructions, grouping.masks))
    parts = [_Parts(*of_scene) for of_scene in zip(x, z, m, strict=True)]
    low, high = _limits(x)
    how = picture_kind(scenes)
    drawn = [
        _pictures(part, scenes.kind, low, high) if how == "image" else _rows(part, how, low, high) for part in parts
    ]
    columns = m.shape[1] + 1 if m.shape[1] < 7 else 5
    return "".join(f'<article class="scene {how}" style="--columns:{columns}">{html}</article>' for html in drawn)


def picture_kind(scenes: Scenes) -> str:
    """image: scenes of two dimensions, or three if the last are colours; curve: rows whose neighbours are alike; else
    bars."""
    shape = scenes.x.shape[1:]
    if len(shape) - (scenes.channels > 1) == 2 and min(shape[:2]) > 1:
        return "image"
    if len(shape) == 3 and shape[-1] in (1, 3, 4):
        return "image"
    rows = np.asarray(scenes.x[:200], np.float64).reshape(len(scenes.x[:200]), -1)
    if scenes.kind != "real" or rows.shape[1] < 8 or len(shape) != 1:
        return "bars"  # elements without an order, or with one that a row does not show
    rows = (rows - rows.mean(0)) / (rows.std(0) + 1e-12)
    return "curve" if float((rows[:, 1:] * rows[:, :-1]).mean()) > SMOOTH else "bars"


@dataclass(frozen=True)
class _Parts:
    """One scene: x and z have a last axis of channels where there are several, masks have not."""

    x: Array
    z: Array
    m: Array


def _limits(x: Array) -> tuple[float, float]:
    low, high = float(x.min()), float(x.max())
    return (low, high) if high > low else (low, low + 1)


# --- pictures -----------------------------------------------------------------------------------------------------


def _pictures(part: _Parts, kind: str, low: float, high: float) -> str:
    binary = kind != "real"
    m = part.m if part.m.ndim == 3 else part.m.mean(-1)
    shown = m * _counted(part.x, m) if binary else m
    whole = _tile(_plain(part.x, kind, low, high), "input") + _tile(_together(part, m, binary, low, high), "groups")
    tiles = [f'<div class="whole">{whole}</div>']
    for k in range(len(m)):
        colour = group_colour(k)
        z = _tile(_plain(part.z[k], kind, low, high, colour), f"z{k + 1}")
        tiles.append(f'<div class="group" style="--group:{colour}">{z}{_tile(_mask(shown[k], k), f"m{k + 1}")}</div>')
    return "".join(tiles)


def _counted(x: Array, m: Array) -> Array:
    """1 where a binary scene is 1, little where it is 0: who owns a zero is open."""
    ones = x != 0
    return np.where(ones if ones.ndim == m.ndim - 1 else ones.any(-1), 1.0, PALE)


def _plain(x: Array, kind: str, low: float, high: float, colour: str = INK) -> Array:
    """x or z without groups; binary ones in a colour."""
    if x.ndim == 3:
        return coloured(x, low, high, kind)
    return grey(x, low, high) if kind == "real" else ink(x, colour)


def _together(part: _Parts, m: Array, binary: bool, low: float, high: float) -> Array:
    z = part.z if part.z.ndim == 3 else part.z.max(-1) if binary else part.z.mean(-1)
    return paint(z, m) if binary else tint((z - low) / (high - low), m)


def _mask(m: Array, k: int) -> Array:
    """The group's colour, the more transparent the smaller the mask: it fits a light page and a dark one."""
    return np.concatenate([np.broadcast_to(rgb(group_colour(k)), (*m.shape, 3)), m[..., None]], axis=-1)


def _tile(pixels: Array, name: str) -> str:
    return f"<figure>{_img(pixels, name)}<figcaption>{_name(name)}</figcaption></figure>"


def _img(pixels: Array, name: str) -> str:
    """Pixels of three or four channels from 0 to 1, as a picture inside the page."""
    stream = io.BytesIO()
    Image.fromarray((np.clip(pixels, 0, 1) * 255 + 0.5).astype(np.uint8)).save(stream, "png")
    data = base64.b64encode(stream.getvalue()).decode()
    return f'<img src="data:image/png;base64,{data}" alt="{escape(name)}">'


def _name(name: str) -> str:
    letter, number = name[0], name[1:]
    return f"<i>{letter}</i><sub>{number}</sub>" if number.isdigit() else escape(name)


# --- curves and bars ----------------------------------------------------------------------------------------------


def _rows(part: _Parts, how: str, low: float, high: float) -> str:
    """The input with its elements in their groups' colours; below, what each group expects and its mask."""
    most = MOST_POINTS if how == "curve" else MOST_BARS
    x, z = (part.x, part.z) if part.z.ndim == part.m.ndim else (part.x.mean(-1), part.z.mean(-1))
    size, x, labels = x.size, x.reshape(-1)[:most], part.m.argmax(0).reshape(-1)[:most]
    z, m = (of_all.reshape(len(of_all), -1)[:, :most] for of_all in (z, part.m))
    draw = _curve if how == "curve" else _bars
    cut = f" (the first {most} of {size:,} elements)" if size > most else ""
    rows = [_plot(draw(x, _shares(labels, len(m)), low, high, under=how == "curve"), f"input and groups{cut}")]
    for k in range(len(m)):
        shares = np.zeros_like(m)
        shares[k] = m[k]
        plot = _plot(draw(z[k], shares, low, high), f"z{k + 1}")
        strip = f'<div class="strip">{_img(_mask(m[k][None], k), f"m{k + 1}")}</div>'
        rows.append(f'<div class="group" style="--group:{group_colour(k)}">{plot}{strip}</div>')
    return "".join(rows)


def _shares(labels: Int[Array, "n"], groups: int) -> Float[Array, "K n"]:
    return np.eye(groups)[labels].T


def _plot(inner: str, name: str) -> str:
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(name)}">{inner}</svg><figcaption>{_name(name)}</figcaption></figure>'
    )


def _curve(y: Float[Array, "n"], shares: Float[Array, "K n"], low: float, high: float, under: bool = True) -> str:
    """A thin line through all points, and in colour the stretches that belong to a group."""
    across = np.linspace(3, WIDTH - 3, len(y))
    down = _down(y, low, high)
    lines = [f'<polyline class="thin" points="{_points(across, down)}"/>'] if under else []
    for k, share in enumerate(shares):
        owned = np.flatnonzero(share > 0.5)
        for run in np.split(owned, np.flatnonzero(np.diff(owned) > 1) + 1) if len(owned) else []:
            if len(run) == 1:
                lines.append(f'<circle cx="{across[run[0]]:.1f}" cy="{down[run[0]]:.1f}" r="1.6" '
                             f'fill="{group_colour(k)}"/>')  # fmt: skip
            else:
                points = _points(across[run], down[run])
                lines.append(f'<polyline class="thick" stroke="{group_colour(k)}" points="{points}"/>')
    return "".join(lines)


def _bars(y: Float[Array, "n"], shares: Float[Array, "K n"], low: float, high: float, under: bool = True) -> str:
    """A bar from zero (or the nearest value) for every element, in the colour of its group; faint where it has none."""
    each = (WIDTH - 6) / len(y)
    zero = float(_down(np.array([min(max(0.0, low), high)]), low, high)[0])
    down, owner, share = _down(y, low, high), shares.argmax(0), shares.max(0)
    bars = []
    for i in range(len(y)):
        top, height = min(zero, down[i]), max(1.0, abs(zero - down[i]))
        colour = group_colour(int(owner[i]))
        bars.append(
            f'<rect x="{3 + i * each:.2f}" y="{top:.1f}" width="{0.8 * each:.2f}" height="{height:.1f}" '
            f'fill="{colour}" opacity="{0.15 + 0.85 * share[i]:.2f}"/>'
        )
    return "".join([f'<line class="zero" x1="0" x2="{WIDTH}" y1="{zero:.1f}" y2="{zero:.1f}"/>', *bars])


def _down(y: Float[Array, "n"], low: float, high: float) -> Float[Array, "n"]:
    return 4 + (high - np.clip(y, low, high)) / (high - low) * (HEIGHT - 8)


def _points(across: Sequence[float] | Array, down: Sequence[float] | Array) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, down, strict=True))
