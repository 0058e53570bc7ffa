"""Pictures as tiny PNGs inside the page: one pixel per element, which the browser enlarges without blurring.

# H, W height and width

Nothing is written to disk and no file is served.
"""

from __future__ import annotations

import base64
import html
import io
from typing import Any

import numpy as np
from PIL import Image

from taggernet.arrays import Array
from taggernet.viz.colours import grey, group_colour, ink, paint, tint


def png(pixels: Array) -> str:
    """An (H, W, 3) array of 0 to 1 as a data address."""
    stream = io.BytesIO()
    Image.fromarray((np.clip(pixels, 0, 1) * 255 + 0.5).astype(np.uint8)).save(stream, "png")
    return f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"


def img(pixels: Array, alt: str) -> str:
    height, width = pixels.shape[:2]
    return f'<img src="{png(pixels)}" alt="{html.escape(alt)}" width="{width}" height="{height}">'


class Painter:
    """How the values of one model become colours: ink on paper if binary, else grey from low to high."""

    def __init__(self, binary: bool, low: float = 0.0, high: float = 1.0) -> None:
        self.binary, self.low, self.high = binary, low, high if high > low else low + 1.0

    def plain(self, x: Array) -> Array:
        """A scene or z, without groups."""
        return ink(x) if self.binary else grey(x, self.low, self.high)

    def mask(self, m: Array, k: int) -> Array:
        """m of one group: from white to the group's colour."""
        return ink(m, group_colour(k))

    def together(self, z: Any, m: Any) -> Array:
        """All groups in their colours."""
        if self.binary:
            return paint(z, m)
        return tint((z - self.low) / (self.high - self.low), m)

    def alone(self, z: Array, m: Array, k: int) -> Array:
        """What one group adds to the picture, in its colour; white where it adds nothing."""
        if self.binary:
            return ink(z * m, group_colour(k))
        share = np.clip((z - self.low) / (self.high - self.low), 0, 1)
        colour = ink(np.ones_like(z), group_colour(k)) * (0.25 + 0.75 * share)[..., None]
        return 1 - m[..., None] * (1 - colour)
