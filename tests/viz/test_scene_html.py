"""Scenes on a page: pictures, curves or bars, each with the values it should have."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from html_pages import Page
from PIL import Image

from taggernet.data import Scenes
from taggernet.tag import Grouping, State
from taggernet.viz.colours import coloured, group_colour, rgb
from taggernet.viz.scene_html import MOST_BARS, PALE, picture_kind, scenes_html


def grouping(z: Any, m: Any, shape: tuple[int, ...]) -> Grouping:
    z, m = (torch.as_tensor(np.asarray(a), dtype=torch.float32).reshape(len(a), len(a[0]), -1) for a in (z, m))
    return Grouping((State(z, m, z, m),), shape, as_numpy=True)


def pixels(of: dict[str, str]) -> Any:
    data = base64.b64decode(of["src"].split(",", 1)[1])
    return np.asarray(Image.open(io.BytesIO(data)), np.float64) / 255


def halves(shape: tuple[int, int]) -> Any:
    """Two groups: the upper half of an image and the lower."""
    upper = (np.arange(shape[0]) < shape[0] // 2)[:, None] * np.ones(shape)
    return np.stack([upper, 1 - upper])


def test_images_show_input_groups_z_and_masks() -> None:
    x = np.random.default_rng(0).random((3, 4, 5)).astype(np.float32)
    m = np.stack([halves((4, 5))] * 3)
    page = Page(scenes_html(Scenes.of(x), grouping(np.stack([x, 1 - x], 1), m, (4, 5)), 2))
    assert len(page.all("article", "image")) == 2
    names = [of["alt"] for of in page.all("img")]
    assert names == ["input", "groups", "z1", "m1", "z2", "m2"] * 2
    pictures = dict(zip(names[:6], map(pixels, page.all("img")[:6]), strict=True))
    low, high = x[:2].min(), x[:2].max()
    np.testing.assert_allclose(pictures["input"][..., 0], (x[0] - low) / (high - low), atol=0.003)
    np.testing.assert_allclose(pictures["m2"][..., 3], m[0, 1], atol=0.003)
    np.testing.assert_allclose(pictures["m2"][0, 0, :3], rgb(group_colour(1)), atol=0.003)
    assert not page.addresses


def test_who_owns_a_zero_of_a_binary_image_is_pale() -> None:
    x = np.zeros((1, 4, 4), np.uint8)
    x[0, 1:3] = 1
    page = Page(scenes_html(Scenes.of(x), grouping(np.stack([x, x], 1), [halves((4, 4))], (4, 4)), 1))
    mask = pixels(page.all("img")[3])[..., 3]
    np.testing.assert_allclose(mask, np.array([PALE, 1, 0, 0])[:, None] * np.ones((1, 4)), atol=0.003)


@pytest.mark.parametrize("channels", [1, 3])
def test_colours_have_masks_of_their_own_or_share_them(channels: int) -> None:
    x = np.random.default_rng(1).random((1, 4, 4, 3)).astype(np.float32)
    m = np.stack([halves((4, 4))])
    whole = np.stack([x, x], 1)
    if channels == 3:
        found = replace(grouping(whole, m, (4, 4)), channels=3)
    else:
        found = grouping(whole, np.repeat(m[..., None], 3, -1), (4, 4, 3))
    page = Page(scenes_html(Scenes(x, kind="real", channels=channels), found, 1))
    low, high = x.min(), x.max()
    np.testing.assert_allclose(pixels(page.all("img")[0]), (x[0] - low) / (high - low), atol=0.003)
    np.testing.assert_allclose(pixels(page.all("img")[3])[..., 3], m[0, 0], atol=0.003)


def test_curves_are_coloured_where_a_group_owns_them() -> None:
    t = np.linspace(0, 1, 20)
    x = np.stack([np.sin(2 * np.pi * (t + phase)) for phase in np.random.default_rng(0).random(30)]).astype(np.float32)
    m = np.zeros((30, 2, 20))
    m[:, 0, :12] = m[:, 1, 12:] = 1
    scenes = Scenes.of(x)
    assert picture_kind(scenes) == "curve"
    page = Page(scenes_html(scenes, grouping(np.stack([x, x], 1), m, (20,)), 1))
    thick = page.all("polyline", "thick")
    # in the input both groups, below each its own stretch
    assert [of["stroke"] for of in thick] == [group_colour(k) for k in (0, 1, 0, 1)]
    assert [len(of["points"].split()) for of in thick] == [12, 8, 12, 8]
    heights = [float(pair.split(",")[1]) for pair in page.all("polyline", "thin")[0]["points"].split()]
    assert np.corrcoef(heights, x[0])[0, 1] == pytest.approx(-1, abs=1e-3), "the page's y axis points down"
    np.testing.assert_allclose(pixels(page.all("img")[0])[0, :, 3], m[0, 0], atol=0.003)


def test_bars_stand_for_elements_without_an_order() -> None:
    x = np.random.default_rng(2).normal(size=(40, 12)).astype(np.float32)
    m = np.zeros((40, 2, 12))
    m[:, 0, ::2] = m[:, 1, 1::2] = 1
    scenes = Scenes.of(x)
    assert picture_kind(scenes) == "bars"
    page = Page(scenes_html(scenes, grouping(np.stack([x, x], 1), m, (12,)), 1))
    bars = page.all("rect")
    assert len(bars) == 3 * 12
    assert [of["fill"] for of in bars[:12]] == [group_colour(i % 2) for i in range(12)]
    assert [float(of["opacity"]) for of in bars[12:24]] == pytest.approx([1.0, 0.15] * 6)
    heights = np.array([float(of["height"]) for of in bars[:12]])
    tall = heights > 1.1  # a bar is at least a line
    np.testing.assert_allclose(heights[tall] / heights.max(), (abs(x[0]) / abs(x[0]).max())[tall], atol=0.03)


@pytest.mark.parametrize("shape", [(4, 5), (12,)])
def test_binary_channels_are_drawn_too(shape: tuple[int, ...]) -> None:
    """Pictures in the channels' colours; rows by the mean of the channels."""
    x = (np.random.default_rng(4).random((2, *shape, 2)) < 0.5).astype(np.uint8)
    m = np.full((2, 3, *shape), 1 / 3)
    found = replace(grouping(np.stack([x] * 3, 1), m, shape), channels=2)
    page = Page(scenes_html(Scenes(x, channels=2), found, 2))
    if len(shape) == 1:
        assert len(page.all("rect")) == 2 * 4 * 12
    else:
        np.testing.assert_allclose(pixels(page.all("img")[0]), coloured(x[0], 0.0, 1.0, "binary"), atol=0.003)


def test_long_rows_are_cut_and_said_so() -> None:
    x = (np.random.default_rng(3).random((25, 300)) < 0.2).astype(np.uint8)
    scenes, m = Scenes.of(x), np.full((25, 2, 300), 0.5)
    page = Page(scenes_html(scenes, grouping(np.stack([x, x], 1), m, (300,)), 1))
    assert len(page.all("rect")) == 3 * MOST_BARS
    assert f"the first {MOST_BARS} of 300 elements" in page.text


@pytest.mark.parametrize(
    ("shape", "kind"),
    [((6, 6), "image"), ((1, 9), "bars"), ((6, 6, 3), "image"), ((3, 3, 3, 3), "bars"), ((5,), "bars")],
)
def test_the_shape_suggests_the_picture(shape: tuple[int, ...], kind: str) -> None:
    assert picture_kind(Scenes.of(np.random.default_rng(0).random((30, *shape)))) == kind
