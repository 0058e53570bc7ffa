"""The stage: what it escapes, what it refuses, and what a browser shows of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from page_view import Pixels, has, set_number

from taggernet import data
from taggernet.explorer.session import Choice, Explorer, Settings
from taggernet.explorer.stage_html import stage
from taggernet.viz.colours import GROUP_COLOURS, rgb

Visit = Callable[..., Any]
USUAL = Settings(noise=0.1, groups=3, iterations=4, seed=2)


def test_the_stage_escapes_what_others_wrote(explorer: Explorer) -> None:
    look = explorer.look(Choice("test", 0), Settings(0.0, 2, 1))
    named = replace(look, scene=replace(look.scene, title="<script>alert(1)</script>"))
    assert "<script" not in stage(explorer, named, 1, ())


def test_an_iteration_that_was_not_run_is_refused(explorer: Explorer) -> None:
    look = explorer.look(Choice("test", 0), USUAL)
    for iteration in (-1, 5):
        with pytest.raises(ValueError, match="give an integer from 0 to 4"):
            stage(explorer, look, iteration, ())


def test_a_scene_with_nothing_to_score_has_no_ami(explorer: Explorer) -> None:
    look = explorer.look(Choice("test", 5), USUAL)  # two shapes exactly on top of each other
    assert look.scene.groups is not None
    assert not look.scene.groups.any()
    assert look.ami is None
    assert "no element can be scored" in stage(explorer, look, 4, ())


def test_the_classes_of_each_group(visit: Visit, served: Any) -> None:
    page = visit("textures")
    images, labels = data.fixture_digits("test")
    x = data.texture_mnist(2, "test", 0, images=images, labels=labels, n=1000).x
    model = served["textures"].model
    out = model.group(np.concatenate([x[:1], x[:99]]), 4, 5)
    shares = model.class_shares(out.history[-1])[0].numpy()
    assert page.locator(".tn-bars").count() == 4
    for k in range(4):
        bars = page.locator(f"[data-group='{k}'] .tn-bar > span")
        heights = [float(bars.nth(c).get_attribute("style")[len("height:") : -1]) for c in range(10)]
        np.testing.assert_allclose(heights, 100 * shares[k] / shares.max(), atol=0.1)
        drawn = [bars.nth(c).evaluate("e => e.getBoundingClientRect().height") for c in range(10)]
        np.testing.assert_allclose(drawn, np.maximum(48 * shares[k] / shares.max(), 2), atol=1)
    best = int(shares.sum(0).argmax())
    assert page.locator("[data-fact=reads] strong").inner_text().startswith(f"{best} (")


@pytest.mark.parametrize("name", ["shapes", "textures"])
def test_a_group_has_one_colour_everywhere(visit: Visit, pixels: Pixels, name: str) -> None:
    page = visit(name)
    set_number(page, "tn-k", 8)
    has(page, "[data-group]", 8)
    for k, colour in enumerate(GROUP_COLOURS):
        components = (rgb(colour) * 255 + 0.5).astype(int).tolist()
        expected = f"rgb({', '.join(map(str, components))})"
        card = page.locator(f"[data-group='{k}']")
        for part, style in ((card, "border-top-color"), (card.locator(".tn-dot"), "background-color")):
            assert part.evaluate(f"e => getComputedStyle(e).getPropertyValue('{style}')") == expected
        mask = pixels(card.locator("img").nth(1))
        white_to_colour = (255 - mask) * (255 - np.array(components)).sum() - (255 - mask).sum(-1, keepdims=True) * (
            255 - np.array(components)
        )
        assert np.abs(white_to_colour).max() <= 2 * 3 * 255  # rounding to whole numbers
