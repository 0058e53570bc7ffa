"""Shapes: squares and triangles thrown on a small binary canvas (paper, section 3.1; Reichert et al. 2011).

A scene is one look-up per object: all placements of all shapes are laid out once as a table of masks, and
drawing a scene picks rows of it. That is as quick on a CPU as on a GPU, has no data-dependent shapes, and
gives the same integers on both.

    S seeds · n scenes · J objects · M placements · N = size * size elements

A scene covers an element if any of its objects does; an element that exactly one object covers belongs to
that object's group (1 .. J); one that several or none cover is unscored (0).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from taggernet.arrays import Array
from taggernet.config.validate import check_choice, check_count
from taggernet.data.checks import check_scene_count
from taggernet.data.scenes import Scenes, one_thread
from taggernet.rng import Key

SPLITS = ("train", "valid", "test")
MAX_SIZE = 128
"""The table of placements grows with the fourth power of the size: 0.7 GB at this one."""

_PICTURES = {
    "paper": {
        "square": """
            #######
            #######
            ##...##
            ##...##
            ##...##
            #######
            #######""",
        "triangle up": """
            .....##.....
            ....####....
            ...######...
            ..###..###..
            .###....###.
            ############
            ############""",
    },
    # Solid, and of 16 elements each: groups form on a CPU within minutes.
    "small": {
        "square": """
            ####
            ####
            ####
            ####""",
        "triangle up": """
            ...#...
            ..###..
            .#####.
            #######""",
    },
}
STYLES = tuple(_PICTURES)
KINDS = ("square", "triangle up", "triangle down")

_KIND, _ROW, _COL, _COUNT = range(4)  # sub-streams; numbers, as a compiled step cannot hash names


def shape_masks(style: str = "paper") -> list[Array]:
    """The mask of each kind of shape, in the order of ``KINDS``, uint8 (rows, columns)."""
    check_choice("style", style, STYLES)
    square, up = (
        np.array([[mark == "#" for mark in line.strip()] for line in picture.split()], dtype=np.uint8)
        for picture in _PICTURES[style].values()
    )
    return [square, up, up[::-1].copy()]


@dataclass(frozen=True)
class Placements:
    """Every way to put one shape on the canvas, on one device."""

    masks: Tensor  # (M, N) uint8
    first: Tensor  # (kinds,) row of masks at which a kind's placements begin
    rows: Tensor  # (kinds,) how many top rows a kind can have
    cols: Tensor  # (kinds,) how many left columns a kind can have


def placements(size: int = 20, style: str = "paper", device: torch.device | str | None = None) -> Placements:
    """The table for a canvas of ``size`` x ``size``: (row, col) of a kind is at first + row * cols + col."""
    shapes_ = shape_masks(style)
    smallest = max(max(shape.shape) for shape in shapes_)
    check_count("size", size, low=smallest, high=MAX_SIZE)
    tables, rows, cols = [], [], []
    for shape in shapes_:
        height, width = shape.shape
        rows.append(size - height + 1)
        cols.append(size - width + 1)
        table = np.zeros((rows[-1], cols[-1], size, size), dtype=np.uint8)
        for row in range(rows[-1]):
            for col in range(cols[-1]):
                table[row, col, row : row + height, col : col + width] = shape
        tables.append(table.reshape(-1, size * size))
    first = np.cumsum([0] + [len(table) for table in tables[:-1]])
    return Placements(
        masks=torch.from_numpy(np.concatenate(tables)).to(device),
        first=torch.from_numpy(first).to(device),
        rows=torch.tensor(rows, device=device),
        cols=torch.tensor(cols, device=device),
    )


def draw_shapes(
    key: Key, n: int, objects: int, table: Placements, start: int | Tensor = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Kind, top row and left column of each object of scenes start .. start+n-1, each (*key, n, J)."""
    begin = start * objects
    kinds = key.fold(_KIND).integers(len(KINDS), n, objects, start=begin)
    rows = key.fold(_ROW).integers(table.rows[kinds], n, objects, start=begin)
    cols = key.fold(_COL).integers(table.cols[kinds], n, objects, start=begin)
    return kinds, rows, cols


def draw_counts(key: Key, n: int, objects: int, min_objects: int, start: int | Tensor = 0) -> Tensor | None:
    """How many objects scenes start .. start+n-1 have, (*key, n); None where all have as many."""
    if not min_objects:
        return None
    return min_objects + key.fold(_COUNT).integers(objects - min_objects + 1, n, start=start)


def paint_shapes(
    kinds: Tensor, rows: Tensor, cols: Tensor, table: Placements, count: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """x and groups, each uint8 (..., N), of objects (..., J); of ``count`` (...) objects the rest are left out."""
    index = table.first[kinds] + rows * table.cols[kinds] + cols
    cover = torch.zeros((), dtype=torch.uint8, device=index.device)
    owner = torch.zeros((), dtype=torch.uint8, device=index.device)
    for number, placed in enumerate(index.unbind(-1), start=1):
        mask = table.masks[placed]
        if count is not None:
            mask = mask * (count >= number)[..., None]
        cover = cover + mask
        owner = owner + mask * number  # may wrap round where several cover, but is not used there
    return (cover > 0).to(torch.uint8), owner * (cover == 1)


def fresh_shapes(
    key: Key,
    n: int,
    objects: int = 3,
    size: int = 20,
    start: int | Tensor = 0,
    *,
    style: str = "paper",
    min_objects: int = 0,
    table: Placements | None = None,
) -> tuple[Tensor, Tensor]:
    """Scenes start .. start+n-1 of the key's stream, on its device: x and groups, uint8 (*key, n, N).

    A key of shape (S,) gives S sets, each as its seed would alone. ``table`` saves building the placements, and stands
    for size and style; inside a compiled or captured step it must be given.
    """
    table = placements(size, style, key.word.device) if table is None else table
    count = draw_counts(key, n, objects, min_objects, start)
    return paint_shapes(*draw_shapes(key, n, objects, table, start), table, count)


@one_thread()
def shapes(
    n: int,
    seed: int = 0,
    objects: int = 3,
    size: int = 20,
    *,
    style: str = "paper",
    min_objects: int = 0,
    split: str = "train",
) -> Scenes:
    """n scenes of ``objects`` shapes, or of ``min_objects`` to ``objects``, on a canvas of ``size`` x ``size``.

    ``style`` is 'paper' (outlines, made for size 20) or 'small' (solid and smaller, made for two objects on
    size 10). The splits 'train', 'valid' and 'test' are independent streams of the seed, and a smaller n is
    the beginning of a larger one. ``details`` holds kinds, rows and cols, each (n, objects): the kind as an
    index into ``KINDS`` and the place of its top left corner; with ``min_objects`` also counts (n,), beyond which
    objects are left out.
    """
    check_count("n", n, low=1)
    check_count("objects", objects, low=1, high=255)
    check_count("min_objects", min_objects, low=0, high=objects)
    check_choice("split", split, SPLITS)
    check_choice("style", style, STYLES)
    table = placements(size, style)
    check_scene_count(n, size)
    key = Key.of(seed).fold("shapes", split)

    x = np.empty((n, size * size), dtype=np.uint8)
    groups = np.empty_like(x)
    details: dict[str, Array] = {name: np.empty((n, objects), dtype=np.int16) for name in ("kinds", "rows", "cols")}
    counts = np.full(n, objects, np.int16)
    chunk = 2048  # stays within a CPU's cache
    for begin in range(0, n, chunk):
        part = slice(begin, min(begin + chunk, n))
        drawn = draw_shapes(key, part.stop - begin, objects, table, start=begin)
        for name, values in zip(details, drawn, strict=True):
            details[name][part] = values.numpy()
        count = draw_counts(key, part.stop - begin, objects, min_objects, begin)
        if count is not None:
            counts[part] = count.numpy()
        painted, owner = paint_shapes(*drawn, table, count)
        x[part], groups[part] = painted.numpy(), owner.numpy()
    if min_objects:
        details["counts"] = counts
    shape = (n, size, size)
    return Scenes(x.reshape(shape), groups.reshape(shape), kind="binary", details=details)


def coincident(scenes: Scenes) -> Array:
    """Which Shapes scenes hold two shapes of one kind exactly on top of each other: bool (n,)."""
    placed = np.stack([scenes.details[name] for name in ("kinds", "rows", "cols")], axis=-1)
    same = (placed[:, :, None] == placed[:, None]).all(-1)
    found: Array = same.sum((1, 2)) > same.shape[1]
    return found
