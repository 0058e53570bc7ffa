"""The page as a visitor uses it, in a real Chromium. ``visit`` also fails a test whose console shows an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taggernet import data
from taggernet.viz.colours import GROUP_COLOURS, ink, rgb

Visit = Callable[..., Any]
OpenTab = Callable[..., None]
Pixels = Callable[[Any], Any]

INPUT, SCENE, COLOUR = (f"[data-picture={name}] img" for name in ("input", "scene", "colour"))


def as_ink(x: Any) -> Any:
    return (ink(np.asarray(x, float)) * 255 + 0.5).astype(int)


def inked(picture: Any) -> int:
    """How many elements are drawn."""
    return int((picture == as_ink(np.ones((1, 1)))[0, 0]).all(-1).sum())


def until(page: Any, found: Callable[[], bool], what: str) -> None:
    """Wait for an answer of the server."""
    for _ in range(1000):
        if found():
            return
        page.wait_for_timeout(50)
    pytest.fail(f"waited in vain: {what}")


def shows(page: Any, pixels: Pixels, picture: str, expected: Any) -> None:
    until(page, lambda: bool((pixels(page.locator(picture)) == expected).all()), f"{picture} as expected")


def has(page: Any, what: str, count: int) -> None:
    until(page, lambda: page.locator(what).count() == count, f"{count} of {what}")


def set_number(page: Any, name: str, value: object) -> None:
    field = page.locator(f"#{name} input[type=number]")
    field.fill(str(value))
    field.press("Tab")
    assert field.input_value() == str(value)


def test_pick_a_scene(visit: Visit, pixels: Pixels) -> None:
    page = visit("shapes")
    x = data.shapes(21, 0, 2, 10, style="small", split="test").x
    shows(page, pixels, INPUT, as_ink(x[0]))
    page.get_by_role("button", name="Next scene").click()
    shows(page, pixels, INPUT, as_ink(x[1]))
    page.get_by_role("button", name="Previous scene").click()
    shows(page, pixels, INPUT, as_ink(x[0]))
    set_number(page, "tn-number", 20)
    shows(page, pixels, INPUT, as_ink(x[20]))
    assert page.locator("[data-fact=ami] strong").inner_text().strip("−").replace(".", "").isdigit()


def test_make_a_random_scene(visit: Visit, pixels: Pixels, open_tab: OpenTab) -> None:
    page = visit("shapes")
    open_tab(page, "Random")
    set_number(page, "tn-objects", 1)
    page.get_by_text("1 random shape", exact=True).wait_for()
    assert inked(pixels(page.locator(INPUT))) == 16  # one shape of 16 elements
    before = page.locator(INPUT).get_attribute("src")
    page.get_by_role("button", name="New random scene").click()
    until(page, lambda: page.locator(INPUT).get_attribute("src") != before, "another scene")


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


def test_noise_groups_and_iterations(visit: Visit, pixels: Pixels) -> None:
    page = visit("shapes")
    set_number(page, "tn-noise", 0.3)
    page.get_by_text("with noise").wait_for()
    x = data.shapes(1, 0, 2, 10, style="small", split="test").x[0]
    assert 10 < (pixels(page.locator(INPUT)) != as_ink(x)).any(-1).sum() < 50
    for groups in (8, 2):
        set_number(page, "tn-k", groups)
        has(page, "[data-group]", groups)
    for iterations in (10, 1):
        set_number(page, "tn-t", iterations)
        has(page, "[data-iteration]", iterations + 1)
        assert page.locator("#tn-shown input[type=range]").get_attribute("max") == str(iterations)
    noisy = page.locator(INPUT).get_attribute("src")
    page.get_by_role("button", name="New noise").click()
    until(page, lambda: page.locator(INPUT).get_attribute("src") != noisy, "other noise")


def test_walk_through_the_iterations(visit: Visit, pixels: Pixels, served: Any) -> None:
    page = visit("shapes")
    x = data.shapes(1, 0, 2, 10, style="small", split="test").x
    out = served["shapes"].model.group(x, 3, 5)
    slider = page.locator("#tn-shown input[type=range]")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    shows(page, pixels, SCENE, as_ink(out.at(4).denoised[0]))
    page.get_by_role("button", name="Show iteration 1").click()
    shows(page, pixels, SCENE, as_ink(out.at(1).denoised[0]))
    assert slider.input_value() == "1"
    assert page.locator("[aria-current=step]").get_attribute("data-iteration") == "1"
    for k in range(3):
        card = page.locator(f"[data-group='{k}'] img")
        assert np.abs(pixels(card.nth(0)) - as_ink(out.at(1).reconstructions[0, k])).max() <= 1
        assert np.abs(pixels(card.nth(1)) - (ink(out.at(1).masks[0, k], GROUP_COLOURS[k]) * 255 + 0.5)).max() <= 1
    page.get_by_role("button", name="Play").click()
    until(page, lambda: slider.input_value() == "0", "the start")
    until(page, lambda: slider.input_value() == "5", "the end")


def test_take_a_group_away_and_bring_it_back(visit: Visit, pixels: Pixels, served: Any) -> None:
    page = visit("shapes")
    out = served["shapes"].model.group(data.shapes(1, 0, 2, 10, style="small", split="test").x, 3, 5)
    assert np.abs(as_ink(out.without(1).denoised[0]) - as_ink(out.denoised[0])).max() > 20
    card = page.locator("[data-group='1']")
    card.click()
    shows(page, pixels, SCENE, as_ink(out.without(1).denoised[0]))
    assert card.get_attribute("aria-pressed") == "true"
    page.get_by_text("without group 2").wait_for()
    page.locator("[data-group='2']").click()
    page.locator("[data-group='2'][aria-pressed=true]").wait_for()
    shows(page, pixels, SCENE, as_ink(out.only(0).denoised[0]))
    page.locator("[data-group='0']").click()
    page.get_by_text("One group has to stay").wait_for()
    page.locator("[data-group='2']").click()
    page.locator("[data-group='2'][aria-pressed=false]").wait_for()
    card.click()
    shows(page, pixels, SCENE, as_ink(out.denoised[0]))
    assert card.get_attribute("aria-pressed") == "false"


def test_press_a_group_with_the_keyboard(visit: Visit) -> None:
    page = visit("shapes")
    page.get_by_role("button", name="Play").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.group") == "1"
    for key, pressed in (("Enter", "true"), ("Space", "false")):
        page.keyboard.press(key)
        page.locator(f"[data-group='1'][aria-pressed={pressed}]").wait_for()
        until(page, lambda: page.evaluate("document.activeElement.dataset.group") == "1", "focus kept")


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


def test_read_digits_against_the_network(visit: Visit, pixels: Pixels, served: Any, open_tab: OpenTab) -> None:
    page = visit("textures")
    images, labels = data.fixture_digits("test")
    scenes = data.texture_mnist(2, "test", 0, images=images, labels=labels, n=1000)
    model = served["textures"].model
    open_tab(page, "You against the network")

    def error(who: str) -> str:
        return str(page.locator(f"[data-error={who}] strong").inner_text())

    assert (error("you"), error("human")) == ("—", "30.0 %")
    page.wait_for_timeout(500)  # everyone is dealt scenes of their own when the page has opened
    networks = []
    for answered, right in ((1, True), (2, False)):
        page.get_by_text(f"Scene {answered}", exact=True).wait_for()
        shown = pixels(page.locator("[data-picture=test] img"))[..., 0]
        index = int(np.abs((scenes.x * 255 + 0.5).astype(int) - shown).sum((1, 2)).argmin())
        assert scenes.classes is not None
        truth = scenes.classes[index]
        part = scenes.x[index // 100 * 100 : (index // 100 + 1) * 100]
        ranked = np.argsort(-model.predict(part, 4, 5)[index % 100], kind="stable")[:2]
        same = truth[0] == truth[1]
        networks.append(float(ranked[0] != truth[0]) if same else float(np.mean([t not in ranked for t in truth])))
        named = set(truth) if right else [digit for digit in range(10) if digit not in truth][:2]
        for digit in named:
            page.get_by_role("checkbox", name=str(digit), exact=True).check()
        page.get_by_role("button", name="Answer").click()
        page.get_by_text("Both right" if right else "Neither digit").wait_for()
        expected = "0.0 %" if answered == 1 else "50.0 %"
        page.locator("[data-error=you] strong", has_text=expected).wait_for()
        assert error("network") == f"{100 * np.mean(networks):.1f} %"
        page.get_by_role("button", name="Next scene").last.click()
    page.get_by_text("Scene 3", exact=True).wait_for()
    page.get_by_role("button", name="Answer").click()
    page.get_by_text("name one or two").wait_for()


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


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["shapes", "textures"])
def test_it_fits_the_screen(
    visit: Visit, screenshots: Path | None, name: str, width: int, dark: bool, open_tab: OpenTab
) -> None:
    page = visit(name, width=width, dark=dark)
    views = ["Explore", "You against the network"] if name == "textures" else [""]
    for view in views:
        if view:
            open_tab(page, view)
        beyond = page.evaluate(
            "w => [...document.querySelectorAll('.gradio-container *')].filter(e => e.checkVisibility() &&"
            " !e.closest('.tn-film') && e.getBoundingClientRect().right > w + 1).map(e => e.className)",
            width,
        )
        assert not beyond, beyond
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        light = sum(
            int(v) for v in page.evaluate("getComputedStyle(document.body).backgroundColor")[4:-1].split(",")[:3]
        )
        assert (light < 200) == dark
        if screenshots:
            page.screenshot(
                path=screenshots / f"{name}-{view[:3]}-{width}-{'dark' if dark else 'light'}.png", full_page=True
            )


@pytest.mark.parametrize("name", ["shapes", "textures"])
def test_every_control_has_a_name(visit: Visit, name: str, open_tab: OpenTab) -> None:
    page = visit(name)
    for tab in ["Random", "Draw", "Test set", *(["You against the network"] if name == "textures" else [])]:
        open_tab(page, tab)
        nameless = page.evaluate("""() => [...document.querySelectorAll('input, button, canvas, select, textarea, img')]
            .filter(e => e.checkVisibility() && !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') ||
                e.title || e.alt || e.innerText?.trim() || [...(e.labels ?? [])].some(l => l.innerText.trim())))
            .map(e => e.outerHTML.slice(0, 120))""")
        assert not nameless, nameless
