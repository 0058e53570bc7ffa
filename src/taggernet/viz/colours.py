"""One colour per group, the same in every picture, and how z and m are painted with it.

# K groups · H, W height and width of an image

The colours are those of Okabe and Ito, which people with any common form of colour blindness tell apart. Binary images
are ink on white paper; real-valued ones are grey.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from taggernet.arrays import Array

GROUP_COLOURS = (
    "#E69F00",  # orange
    "#0072B2",  # blue
    "#009E73",  # bluish green
    "#CC79A7",  # reddish purple
    "#56B4E9",  # sky blue
    "#D55E00",  # vermillion
    "#F0E442",  # yellow
    "#666666",  # in place of black, which is the ink of the input
)
INK = "#1A1A1A"
FAINT = "#B8B8B8"


def rgb(colour: str) -> Float[Array, "3"]:
    """A colour '#RRGGBB' as three numbers from 0 to 1."""
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def group_colour(k: int) -> str:
    """The colour of group k; beyond eight they begin again."""
    return GROUP_COLOURS[k % len(GROUP_COLOURS)]


def palette(groups: int) -> Float[Array, "K 3"]:
    return np.stack([rgb(group_colour(k)) for k in range(groups)])


def ink(values: Array, colour: str = INK) -> Float[Array, "H W 3"]:
    """From white (0) to a colour (1)."""
    painted: Array = 1 - np.clip(values, 0, 1)[..., None] * (1 - rgb(colour))
    return painted


def grey(values: Array, low: float = 0.0, high: float = 1.0) -> Float[Array, "H W 3"]:
    """From black (low) to white (high)."""
    share = np.clip((values - low) / (high - low), 0, 1)
    return np.repeat(share[..., None], 3, axis=-1)


def coloured(values: Array, low: float, high: float, kind: str) -> Float[Array, "... 3"]:
    """An image with channels (..., H, W, C): three are red, green and blue, other real ones are grey by their mean; of
    one-hot ones, and of binary ones that are not three, each has a colour of its own, on white."""
    channels = values.shape[-1]
    if kind == "categorical" or (kind == "binary" and channels != 3):
        painted: Array = np.clip(1 - np.clip(values, 0, 1) @ (1 - palette(channels)), 0, 1)
        return painted
    share = np.clip((values - low) / (high - low), 0, 1)
    return share if channels == 3 else np.repeat(share.mean(-1, keepdims=True), 3, axis=-1)


def paint(z: Float[Array, "K H W"], m: Float[Array, "K H W"]) -> Float[Array, "H W 3"]:
    """sum_k m_k z_k, each group's share in its own colour, on white: the reconstruction of a binary image."""
    shares = np.einsum("khw,khw,kc->hwc", m, np.clip(z, 0, 1), 1 - palette(len(z)))
    painted: Array = np.clip(1 - shares, 0, 1)
    return painted


def tint(z: Float[Array, "K H W"], m: Float[Array, "K H W"]) -> Float[Array, "H W 3"]:
    """The same for a real-valued image of values about 0 to 1: the colour says which group, its lightness z."""
    light = 0.25 + 0.75 * np.clip(z, 0, 1)
    painted: Array = np.clip(np.einsum("khw,khw,kc->hwc", m, light, palette(len(z))), 0, 1)
    return painted
