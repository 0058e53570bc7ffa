"""Drawing a scene with the mouse, the keyboard and a finger, in a real Chromium."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from page_view import INPUT, Pixels, as_ink, inked, shows, until

from taggernet import data

Visit = Callable[..., Any]
OpenTab = Callable[..., None]


def test_draw_with_the_mouse(visit: Visit, pixels: Pixels, open_tab: OpenTab) -> None:
    page = visit("shapes")
    open_tab(page, "Draw")
    box = page.locator("canvas").bounding_box()

    def at(row: int, col: int) -> tuple[float, float]:
        return box["x"] + (col + 0.5) * box["width"] / 10, box["y"] + (row + 0.5) * box["height"] / 10

    page.mouse.move(*at(0, 0))
    page.mouse.down()
    page.mouse.move(*at(0, 4))
    page.mouse.up()
    page.get_by_text("Square", exact=True).click()
    page.mouse.click(*at(6, 6))
    expected = np.zeros((10, 10))
    expected[0, :5], expected[4:8, 4:8] = 1, 1
    shows(page, pixels, INPUT, as_ink(expected))
    assert page.locator("[data-fact=ami]").inner_text().endswith("the truth is unknown")
    page.get_by_role("button", name="Undo").click()
    expected[4:8, 4:8] = 0
    shows(page, pixels, INPUT, as_ink(expected))
    page.get_by_role("button", name="Clear").click()
    shows(page, pixels, INPUT, as_ink(expected * 0))


def test_draw_with_the_keyboard_on_the_scene_shown(visit: Visit, pixels: Pixels, open_tab: OpenTab) -> None:
    page = visit("shapes")
    open_tab(page, "Draw")
    page.get_by_role("button", name="Start from the scene shown").click()
    x = data.shapes(1, 0, 2, 10, style="small", split="test").x[0].copy()
    until(page, lambda: page.locator("canvas").get_attribute("data-inked") == str(int(x.sum())), "the copy")
    page.locator("canvas").focus()
    for key in ["ArrowUp"] * 9 + ["ArrowLeft"] * 9 + ["Space", "ArrowRight", "Enter"]:
        page.keyboard.press(key)
    x[0, :2] = 1 - x[0, :2]
    shows(page, pixels, INPUT, as_ink(x))
    page.keyboard.press("Delete")
    x[0, 1] = 0
    shows(page, pixels, INPUT, as_ink(x))


def test_draw_with_a_finger(visit: Visit, pixels: Pixels, open_tab: OpenTab) -> None:
    page = visit("shapes", width=390, has_touch=True, is_mobile=True)
    open_tab(page, "Draw", tap=True)
    page.get_by_text("Triangle up").tap()
    page.locator("canvas").tap(position={"x": 150, "y": 150})
    until(page, lambda: inked(pixels(page.locator(INPUT))) == 16, "a triangle")


def test_a_drawn_digit_is_textured(visit: Visit, pixels: Pixels, open_tab: OpenTab) -> None:
    page = visit("textures")
    open_tab(page, "Draw")
    before = page.locator(INPUT).get_attribute("src")
    page.locator("canvas").click(position={"x": 100, "y": 100})
    until(page, lambda: page.locator(INPUT).get_attribute("src") != before, "the drawing")
    assert len(np.unique(pixels(page.locator(INPUT)))) > 20
    page.get_by_text("drawn by hand").wait_for()
