"""Sprites: coloured squares, ellipses and hearts over one another, after Multi-dSprites (Kabra et al. 2019).

Shapes, six sizes and forty angles are those of dSprites (Matthey et al. 2017), rendered here; two to five objects of
random colour lie on a grey background, each where all of it fits. Later objects cover earlier ones. In two variants
colour does not tell objects apart: all have one colour, or each has a texture of its own in grey.

    n scenes · J objects, the last one on top · P = size * size positions
"""

from __future__ import annotations

import colorsys
import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from taggernet.arrays import Array
from taggernet.config.validate import check_choice, check_count
from taggernet.data.checks import check_scene_count
from taggernet.data.scenes import Scenes, one_thread
from taggernet.data.shapes import SPLITS
from taggernet.data.stencils import Stencils, fill, owners
from taggernet.data.textures import texture_bank
from taggernet.rng import Key

Variant = Literal["colour", "one-colour", "texture"]
KINDS = ("square", "ellipse", "heart")
SCALES, ANGLES = 6, 40
MIN_SIZE, MAX_SIZE, MAX_OBJECTS = 16, 256, 16
_HUES, _LEVELS = 96, 8  # colours: 96 hues x 8 saturations x 8 values

_KIND, _SCALE, _ANGLE, _ROW, _COL, _COUNT, _COLOUR, _GREY, _TEXTURE, _SHIFT = range(10)  # sub-streams, as numbers


def sprite_mask(kind: str, scale: float, angle: float, size: int = 64) -> Array:
    """One sprite on a canvas of this size, uint8 (height, width): scale from 0.5 to 1, angle in radians.

    Sizes are relative to the canvas. On a small one they grow with the fourth root of 64 / size, to keep their shape.
    """
    unit = scale * size * (64 / size) ** 0.25
    half = math.ceil(0.25 * unit)  # every sprite lies within this distance of its centre
    line = (np.arange(-half, half) + 0.5) / unit
    down, right = np.meshgrid(line, line, indexing="ij")
    along = math.cos(angle) * right + math.sin(angle) * down
    up = math.sin(angle) * right - math.cos(angle) * down
    if kind == "square":
        inside = np.maximum(abs(along), abs(up)) <= 0.14
    elif kind == "ellipse":
        inside = (along / 0.2) ** 2 + (up / 0.11) ** 2 <= 1
    else:
        along, up = along / 0.16, up / 0.16 + 0.2
        inside = along**2 + (1.2 * up - 0.9 * abs(along) ** 0.5) ** 2 <= 1
    rows, cols = inside.any(1), inside.any(0)
    mask: Array = inside[rows][:, cols].astype(np.uint8)
    return mask


@dataclass(frozen=True)
class SpriteTable:
    """What drawing needs, on one device."""

    stencils: Stencils  # by kind, then scale, then angle
    palette: Tensor  # (colours, 3) float32
    bank: Tensor  # (20, 38, 38) textures, which repeat after 38 positions


def sprite_table(size: int = 64, device: torch.device | str | None = None) -> SpriteTable:
    """The table for scenes of ``size`` x ``size``. Colours are multiples of 1/255, as in a picture of 8 bits."""
    check_count("size", size, low=MIN_SIZE, high=MAX_SIZE)
    masks = [
        sprite_mask(kind, scale, 2 * math.pi * turn / ANGLES, size)
        for kind in KINDS
        for scale in np.linspace(0.5, 1, SCALES)
        for turn in range(ANGLES)
    ]
    levels = np.linspace(0.5, 1, _LEVELS)
    hues = np.arange(_HUES) / _HUES
    colours = [colorsys.hsv_to_rgb(hue, saturation, value) for hue in hues for saturation in levels for value in levels]
    palette = np.round(np.array(colours) * 255).astype(np.float32) / np.float32(255)
    return SpriteTable(Stencils.of(masks, device), torch.from_numpy(palette).to(device), texture_bank(device))


def draw_sprites(
    key: Key, n: int, objects: int, min_objects: int, size: int, table: SpriteTable, start: int | Tensor = 0
) -> dict[str, Tensor]:
    """Kinds, scales, angles, rows and cols, each (*key, n, J), and counts (*key, n) of scenes start .. start+n-1."""
    begin, stencils = start * objects, table.stencils

    def pick(stream: int, high: int | Tensor) -> Tensor:
        return key.fold(stream).integers(high, n, objects, start=begin)

    drawn = {"kinds": pick(_KIND, len(KINDS)), "scales": pick(_SCALE, SCALES), "angles": pick(_ANGLE, ANGLES)}
    which = _stencil(drawn)
    drawn["rows"] = pick(_ROW, size + 1 - stencils.heights[which])
    drawn["cols"] = pick(_COL, size + 1 - stencils.widths[which])
    drawn["counts"] = min_objects + key.fold(_COUNT).integers(objects - min_objects + 1, n, start=start)
    return drawn


def _stencil(drawn: dict[str, Tensor]) -> Tensor:
    return (drawn["kinds"] * SCALES + drawn["scales"]) * ANGLES + drawn["angles"]


def paint_sprites(
    key: Key, drawn: dict[str, Tensor], size: int, variant: Variant, table: SpriteTable, start: int | Tensor = 0
) -> tuple[Tensor, Tensor]:
    """x float32 (*key, n, P, 3) and groups uint8 (*key, n, P) of drawn objects."""
    n, objects = drawn["kinds"].shape[-2:]
    seen = owners(table.stencils, _stencil(drawn), drawn["rows"], drawn["cols"], size, drawn["counts"])
    grey = key.fold(_GREY).integers(256, n, start=start)[..., None, None].to(torch.float32) / 255
    if variant == "texture":
        ground = grey.expand(*grey.shape[:-2], size * size, 1)
        return torch.where(seen[..., None] > 0, _textures(key, seen, n, objects, size, table, start), ground).expand(
            *seen.shape, 3
        ), seen
    if variant == "one-colour":
        index = key.fold(_COLOUR).integers(len(table.palette), n, 1, start=start).expand(*seen.shape[:-1], objects)
    else:
        index = key.fold(_COLOUR).integers(len(table.palette), n, objects, start=start * objects)
    colours = torch.cat([grey.expand(*grey.shape[:-1], 3), table.palette[index]], dim=-2)
    return fill(seen, colours), seen


def _textures(
    key: Key, seen: Tensor, n: int, objects: int, size: int, table: SpriteTable, start: int | Tensor
) -> Tensor:
    """The texture of each position's owner, (*key, n, P, 1); no two objects of a scene have the same one."""
    bank, period = table.bank, table.bank.shape[-1]
    order = key.fold(_TEXTURE).bits(n, len(bank), start=start * len(bank)).argsort(dim=-1, stable=True)
    shift = key.fold(_SHIFT).integers(period, n, objects, 2, start=start * (2 * objects))
    owner = (seen.long() - 1).clamp(min=0)
    down, right, which = (of.gather(-1, owner) for of in (shift[..., 0], shift[..., 1], order[..., :objects]))
    place = torch.arange(size * size, device=seen.device)
    row, col = (place // size + down) % period, (place % size + right) % period
    return bank[which, row, col][..., None]


def fresh_sprites(
    key: Key,
    n: int,
    objects: int = 5,
    size: int = 64,
    start: int | Tensor = 0,
    *,
    min_objects: int = 2,
    variant: Variant = "colour",
    table: SpriteTable | None = None,
) -> tuple[Tensor, Tensor]:
    """Scenes start .. start+n-1 of the key's stream, on its device: x (*key, n, P, 3) float32, groups (*key, n, P).

    A key of shape (S,) gives S sets, each as its seed would alone. ``table`` saves building one, and inside a compiled
    or captured step it must be given.
    """
    table = sprite_table(size, key.word.device) if table is None else table
    drawn = draw_sprites(key, n, objects, min_objects, size, table, start)
    return paint_sprites(key, drawn, size, variant, table, start)


@one_thread()
def sprites(
    n: int,
    seed: int = 0,
    objects: int = 5,
    size: int = 64,
    *,
    min_objects: int = 2,
    variant: Variant = "colour",
    split: str = "train",
) -> Scenes:
    """n scenes of ``min_objects`` to ``objects`` sprites on grey: x float32 (n, size, size, 3) from 0 to 1.

    ``variant`` is 'colour' (a colour for each object), 'one-colour' (one for all objects of a scene) or 'texture' (a
    texture for each, in grey). Groups are 1 .. objects, the last on top, and 0 on the background, which is not scored.
    A sprite may be wholly covered. ``details`` holds kinds, scales, angles, rows and cols, each (n, objects), and
    counts (n,), beyond which objects are left out. A smaller n is the beginning of a larger one.
    """
    check_count("n", n, low=1)
    check_count("objects", objects, low=1, high=MAX_OBJECTS)
    check_count("min_objects", min_objects, low=1, high=objects)
    check_choice("variant", variant, get_args(Variant))
    check_choice("split", split, SPLITS)
    table = sprite_table(size)
    check_scene_count(n, size)
    key = Key.of(seed).fold("sprites", split)

    x = np.empty((n, size, size, 3), np.float32)
    groups = np.empty((n, size, size), np.uint8)
    details: dict[str, Array] = {
        name: np.empty((n, objects), np.int16) for name in ("kinds", "scales", "angles", "rows", "cols")
    }
    details["counts"] = np.empty(n, np.int16)
    chunk = 128  # stays within a CPU's cache
    for begin in range(0, n, chunk):
        part = slice(begin, min(begin + chunk, n))
        drawn = draw_sprites(key, part.stop - begin, objects, min_objects, size, table, begin)
        for name, values in drawn.items():
            details[name][part] = values.numpy()
        painted, owner = paint_sprites(key, drawn, size, variant, table, begin)
        x[part] = painted.numpy().reshape(-1, size, size, 3)
        groups[part] = owner.numpy().reshape(-1, size, size)
    return Scenes(x, groups, kind="real", details=details, channels=3, background=0)
