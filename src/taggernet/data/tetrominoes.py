"""Tetrominoes: three pieces of four squares each, in six colours, none over another (Kabra et al. 2019).

A piece is one of the 19 that the seven tetrominoes become when they are turned; the published images have 17 of them.
Pieces are placed one after another: of ``TRIES`` draws of kind and place the first is taken that overlaps none. As
their number is fixed, a compiled or captured step can draw scenes.

    n scenes · J pieces · P = size * size positions
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
from taggernet.data.shapes import SPLITS
from taggernet.data.stencils import Stencils, fill, owners
from taggernet.rng import Key

CANVAS = 7
"""Height and width of a scene in squares of a piece: 35 positions for squares of 5."""
MAX_PIECES = 3
TRIES = 96
"""All of them fail in about one scene in a million, which is then three squares in a row."""
COLOURS = ("red", "green", "blue", "yellow", "magenta", "cyan")
_RGB = ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1))
_PIECES = {"I": "####", "O": "##/##", "T": "###/.#.", "S": ".##/##.", "Z": "##./.##", "J": "#../###", "L": "..#/###"}

_KIND, _ROW, _COL, _COLOUR = range(4)  # sub-streams; numbers, as a compiled step cannot hash names


def pieces() -> dict[str, Array]:
    """The 19 pieces, uint8 (rows, columns) of squares, by letter and quarter turns, e.g. 'T1'."""
    found: dict[str, Array] = {}
    for letter, picture in _PIECES.items():
        piece = np.array([[mark == "#" for mark in line] for line in picture.split("/")], np.uint8)
        turned = [np.ascontiguousarray(np.rot90(piece, turns)) for turns in range(4)]
        for turns, one in enumerate(turned):
            if not any(np.array_equal(one, earlier) for earlier in turned[:turns]):
                found[f"{letter}{turns}"] = one
    return found


KINDS = tuple(pieces())


@dataclass(frozen=True)
class Pieces:
    """What drawing needs, on one device."""

    stencils: Stencils
    clash: Tensor
    """(kinds, kinds, 2 D + 1, 2 D + 1) bool: whether two pieces overlap, by the place of the second from the first."""
    colours: Tensor  # (1 + 6, 3) uint8, black first
    instead: Tensor  # (3, J) kinds, rows and columns of the scene that stands for one whose tries all failed


def piece_table(size: int = 35, device: torch.device | str | None = None) -> Pieces:
    """The table for scenes of ``size`` x ``size``, a multiple of seven."""
    check_count("size", size, low=CANVAS, high=CANVAS * 36)
    if size % CANVAS:
        raise ValueError(f"size={size} is not a multiple of {CANVAS}: tetrominoes have 14, 21, 28, 35, ...")
    side = size // CANVAS
    shapes = list(pieces().values())
    far = 4 * side
    apart = np.arange(-far, far + 1)
    squares = [np.argwhere(shape) * side for shape in shapes]
    clash = np.zeros((len(shapes), len(shapes), len(apart), len(apart)), bool)
    for a, first in enumerate(squares):
        for b, second in enumerate(squares):
            for down, right in (second[:, None] - first[None]).reshape(-1, 2):
                clash[a, b] |= (abs(apart + down) < side)[:, None] & (abs(apart + right) < side)[None]
    square = KINDS.index("O0")
    return Pieces(
        Stencils.of([shape.repeat(side, 0).repeat(side, 1) for shape in shapes], device),
        torch.from_numpy(clash).to(device),
        torch.tensor(((0, 0, 0), *_RGB), dtype=torch.uint8, device=device),
        torch.tensor([[square] * 3, [0] * 3, [0, 2 * side, 4 * side]], device=device),
    )


def draw_pieces(
    key: Key, n: int, objects: int, size: int, table: Pieces, start: int | Tensor = 0
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Kind, top row, left column and colour of each piece of scenes start .. start+n-1, each (*key, n, J)."""
    stencils, shape = table.stencils, (n, objects, TRIES)
    begin, far = start * (objects * TRIES), table.clash.shape[-1] // 2
    kinds = key.fold(_KIND).integers(len(KINDS), *shape, start=begin)
    rows = key.fold(_ROW).integers(size + 1 - stencils.heights[kinds], *shape, start=begin)
    cols = key.fold(_COL).integers(size + 1 - stencils.widths[kinds], *shape, start=begin)
    order = torch.arange(TRIES, 0, -1, device=kinds.device)
    placed: list[tuple[Tensor, ...]] = []  # kind, row and column of each piece, (*key, n)
    fits = torch.ones(kinds.shape[:-2], dtype=torch.bool, device=kinds.device)
    for number in range(objects):
        kind, row, col = (drawn[..., number, :] for drawn in (kinds, rows, cols))
        free = torch.ones_like(kind, dtype=torch.bool)
        for other, top, left in placed:
            down, right = row - top[..., None], col - left[..., None]
            down, right = (apart.clamp(-far, far) + far for apart in (down, right))
            free = free & ~table.clash[other[..., None], kind, down, right]
        fits = fits & free.any(-1)
        first = (free * order).argmax(-1, keepdim=True)
        placed.append(tuple(drawn.gather(-1, first).squeeze(-1) for drawn in (kind, row, col)))
    kinds, rows, cols = (
        torch.where(fits[..., None], torch.stack(chosen, dim=-1), instead[:objects])
        for chosen, instead in zip(zip(*placed, strict=True), table.instead, strict=True)
    )
    colours = key.fold(_COLOUR).integers(len(COLOURS), n, objects, start=start * objects)
    return kinds, rows, cols, colours


def paint_pieces(
    kinds: Tensor, rows: Tensor, cols: Tensor, colours: Tensor, size: int, table: Pieces
) -> tuple[Tensor, Tensor]:
    """x (..., P, 3) and groups (..., P), uint8, of pieces (..., J)."""
    seen = owners(table.stencils, kinds, rows, cols, size)
    black = torch.zeros_like(colours[..., :1])
    return fill(seen, table.colours[torch.cat([black, colours + 1], dim=-1)]), seen


def fresh_tetrominoes(
    key: Key, n: int, objects: int = 3, size: int = 35, start: int | Tensor = 0, *, table: Pieces | None = None
) -> tuple[Tensor, Tensor]:
    """Scenes start .. start+n-1 of the key's stream, on its device: x (*key, n, P, 3) and groups (*key, n, P), uint8.

    A key of shape (S,) gives S sets, each as its seed would alone. ``table`` saves building one, and inside a compiled
    or captured step it must be given.
    """
    table = piece_table(size, key.word.device) if table is None else table
    return paint_pieces(*draw_pieces(key, n, objects, size, table, start), size, table)


@one_thread()
def tetrominoes(n: int, seed: int = 0, objects: int = 3, size: int = 35, *, split: str = "train") -> Scenes:
    """n scenes of ``objects`` pieces (one to three) on black: x (n, size, size, 3) of 0 and 1.

    ``size`` is a multiple of seven. Groups are 1 .. objects, and 0 on the background, which is not scored. ``details``
    holds kinds, rows, cols and colours, each (n, objects): indices into ``KINDS`` and ``COLOURS``, and the place of the
    top left corner. A smaller n is the beginning of a larger one.
    """
    check_count("n", n, low=1)
    check_count("objects", objects, low=1, high=MAX_PIECES)
    check_choice("split", split, SPLITS)
    table = piece_table(size)
    check_scene_count(n, size)
    key = Key.of(seed).fold("tetrominoes", split)

    x = np.empty((n, size, size, 3), np.uint8)
    groups = np.empty((n, size, size), np.uint8)
    details = {name: np.empty((n, objects), np.int16) for name in ("kinds", "rows", "cols", "colours")}
    chunk = 512  # stays within a CPU's cache
    for begin in range(0, n, chunk):
        part = slice(begin, min(begin + chunk, n))
        drawn = draw_pieces(key, part.stop - begin, objects, size, table, start=begin)
        for name, values in zip(details, drawn, strict=True):
            details[name][part] = values.numpy()
        painted, owner = paint_pieces(*drawn, size, table)
        x[part] = painted.numpy().reshape(-1, size, size, 3)
        groups[part] = owner.numpy().reshape(-1, size, size)
    return Scenes(x, groups, kind="binary", details=details, channels=3, background=0)
