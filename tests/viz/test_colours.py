"""Groups are painted in their colours, which can be told apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from taggernet.viz.colours import GROUP_COLOURS, coloured, grey, ink, paint, palette, rgb, tint


def test_painting_mixes_the_groups_colours() -> None:
    z = np.ones((2, 1, 3))
    m = np.array([[[1.0, 0.0, 0.5]], [[0.0, 1.0, 0.5]]])
    first, second = rgb(GROUP_COLOURS[0]), rgb(GROUP_COLOURS[1])
    np.testing.assert_allclose(paint(z, m)[0], [first, second, (first + second) / 2])
    np.testing.assert_allclose(tint(z, m)[0], [first, second, (first + second) / 2])
    np.testing.assert_allclose(paint(0 * z, m), 1)  # nothing there: paper
    np.testing.assert_allclose(ink(np.array([[0.0, 1.0]]), GROUP_COLOURS[2])[0], [[1, 1, 1], rgb(GROUP_COLOURS[2])])
    np.testing.assert_allclose(grey(np.array([[-1.0, 2.0, 5.0]]), -1.0, 5.0)[0, :, 0], [0, 0.5, 1])


def lab(linear: Any) -> Any:
    """CIE L*a*b* of linear RGB (n, 3)."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = linear @ to_xyz.T / np.array([0.9505, 1.0, 1.089])
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def test_group_colours_differ_for_the_colour_blind() -> None:
    """Seen as simulated by Machado et al. (2009), severity 1; a difference of 2.3 is just noticeable."""
    protan = [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]]
    deutan = [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]]
    tritan = [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]]
    linear = np.where(palette(4) <= 0.04045, palette(4) / 12.92, ((palette(4) + 0.055) / 1.055) ** 2.4)
    for matrix in (np.eye(3), protan, deutan, tritan):
        seen = lab(np.clip(linear @ np.array(matrix).T, 0, 1))
        apart = np.linalg.norm(seen[:, None] - seen[None], axis=-1)
        assert apart[np.triu_indices(4, 1)].min() > 15


def test_channels_are_colours() -> None:
    values = np.random.default_rng(0).random((2, 5, 3))
    np.testing.assert_allclose(coloured(values, 0.0, 2.0, "real"), values / 2)
    two = coloured(values[..., :2], 0.0, 1.0, "real")
    np.testing.assert_allclose(two, np.repeat(values[..., :2].mean(-1, keepdims=True), 3, -1))
    for kind in ("binary", "categorical"):
        states = coloured(np.eye(4)[[[0, 1], [2, 3]]], 0.0, 1.0, kind)
        np.testing.assert_allclose(states.reshape(4, 3), palette(4))
        np.testing.assert_allclose(coloured(np.zeros((1, 1, 4)), 0.0, 1.0, kind), 1)


def test_three_binary_channels_are_red_green_and_blue_but_three_states_are_not() -> None:
    bits = np.array([[[1, 0, 0], [1, 1, 0], [0, 0, 0]]])
    np.testing.assert_allclose(coloured(bits, 0.0, 1.0, "binary"), bits)
    np.testing.assert_allclose(coloured(np.eye(3)[None], 0.0, 1.0, "categorical")[0], palette(3))
