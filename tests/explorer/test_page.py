"""The page as a visitor uses it, in a real Chromium. ``visit`` also fails a test whose console shows an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_view import INPUT, SCENE, Pixels, as_ink, has, inked, set_number, shows, until

from taggernet import data
from taggernet.viz.colours import GROUP_COLOURS, ink

Visit = Callable[..., Any]
OpenTab = Callable[..., None]


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
