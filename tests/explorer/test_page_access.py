"""The page at every width, in the light and the dark, by mouse, touch and keyboard; its downloads."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from typing import Any

import pytest
from page_toys import Visit
from PIL import Image

# Contrast of every visible text with what is behind it (WCAG 2, 1.4.3); disabled buttons are exempt.
LOW_CONTRAST = """() => {
  const parse = text => (text.match(/[\\d.]+/g) ?? []).map(Number)
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0)
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor)
      if (colour.length === 3 || colour[3] > 0.99) return colour
    }
    return [255, 255, 255]
  }
  const poor = []
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, style = getComputedStyle(element)
    if (!walker.currentNode.data.trim() || !element.checkVisibility({ visibilityProperty: true }) || element.closest(':disabled')) continue
    if (element.closest('.hidden-group, .removed-group, noscript, td')) continue
    const [a, b] = [light(parse(style.color)), light(behind(element))].sort((p, q) => q - p)
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.6 && style.fontWeight >= 700)
    if ((a + 0.05) / (b + 0.05) < (large ? 3 : 4.5)) poor.push(`${walker.currentNode.data.trim().slice(0, 30)}: ${((a + 0.05) / (b + 0.05)).toFixed(2)}`)
  }
  return poor
}"""
OUTSIDE = """() => [...document.querySelectorAll('button, input, select, canvas, a, output')]
  .filter(one => one.checkVisibility() && !one.closest('.inside') && !one.matches('.skip, .handle'))
  .filter(one => { const box = one.getBoundingClientRect(); return box.left < -1 || box.right > innerWidth + 1 })
  .map(one => one.id || one.className || one.textContent)"""


def test_it_fits_every_width(visit: Visit) -> None:
    """Defect 4: controls hid behind dots, or lay off screen."""
    page = visit()
    try:
        for width in (320, 390, 620, 621, 820, 960, 961, 1280, 1600):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, width
            assert page.evaluate(OUTSIDE) == [], width
            for name in ("test", "random", "own"):
                assert page.locator(f"input[name=source][value={name}]").is_visible()
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})


@pytest.mark.parametrize("width", [320, 390])
def test_what_is_drawn_and_what_comes_of_it_are_seen_together(width: int, visit: Visit) -> None:
    page = visit()
    try:
        page.set_viewport_size({"width": width, "height": 640})
        boxes = page.evaluate("""() => { document.getElementById('stage').scrollIntoView()
          return ['input', 'output', 'status', 'play'].map(id => document.getElementById(id).getBoundingClientRect().bottom) }""")
        assert max(boxes) <= 640
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})


@pytest.mark.parametrize("width", [390, 1280])
def test_the_pictures_stay_where_they_are(width: int, visit: Visit) -> None:
    """While a pixel is pointed at, and a group hidden and another removed."""
    page = visit()
    place = """() => ['output', 'play'].map(id => Math.round(document.getElementById(id).getBoundingClientRect().top + scrollY))"""
    try:
        page.set_viewport_size({"width": width, "height": 900})
        page.mouse.move(1, 1)
        before = page.evaluate(place)
        page.locator("#output").hover()
        assert page.evaluate(place) == before
        page.locator(".hide").first.click()
        page.locator(".remove").nth(1).click()
        assert page.evaluate(place) == before
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_moves_under_an_answer(width: int, visit: Visit) -> None:
    page = visit("real-batch-classes")
    place = (
        "() => [explorer.quiz.next.getBoundingClientRect().top + scrollY, document.getElementById('quiz').offsetHeight]"
    )
    try:
        page.set_viewport_size({"width": width, "height": 900})
        before = page.evaluate(place)
        page.locator(".digit").first.click()
        page.locator("#quiz").get_by_role("button", name="Answer").click()
        assert page.get_by_role("button", name="Look at its groups").is_visible()
        assert page.evaluate(place) == before
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})
        page.evaluate(
            "() => explorer.quiz.go({ ...explorer.quiz.round, answered: false, scenes: 0, you: 0, network: 0 })"
        )
        page.evaluate("() => localStorage.clear()")


def test_the_human_test_fits_a_phone(visit: Visit) -> None:
    page = visit("real-batch-classes")
    try:
        page.set_viewport_size({"width": 390, "height": 844})
        boxes = page.evaluate("""() => { document.querySelector('.quiz').scrollIntoView()
          return [explorer.quiz.scene, explorer.quiz.answer, explorer.quiz.revealed, ...explorer.quiz.digits]
            .map(one => one.getBoundingClientRect()).map(box => [box.top, box.bottom]) }""")
        assert min(top for top, _ in boxes) >= -1
        assert max(bottom for _, bottom in boxes) <= 844
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})


@pytest.mark.parametrize("model", ["shapes", "conv-colour"])
def test_contrast_in_the_light_and_the_dark(model: str, visit: Visit) -> None:
    page = visit(model)
    try:
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert page.evaluate(LOW_CONTRAST) == [], scheme
    finally:
        page.emulate_media(color_scheme="light", reduced_motion="reduce")


def test_the_pictures_follow_the_scheme(visit: Visit) -> None:
    page = visit()
    corner = "() => [...document.getElementById('input').getContext('2d').getImageData(0, 0, 1, 1).data]"
    light = page.evaluate(corner)
    try:
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        page.wait_for_timeout(300)  # the browser tells the page with its next frame
        assert sum(page.evaluate(corner)[:3]) < 150 < sum(light[:3])
    finally:
        page.emulate_media(color_scheme="light", reduced_motion="reduce")


def test_every_control_is_reached_by_keyboard_and_shows_it(visit: Visit) -> None:
    """Defect 5: sliders without a ring, tabs that ignored the arrow keys."""
    page = visit()
    for slider in ("k", "t", "noise"):
        page.locator(f"#{slider}").focus()
        page.keyboard.press("ArrowRight")
        ring = page.evaluate("() => getComputedStyle(document.activeElement).outline")
        assert "3px" in ring, (slider, ring)
    page.locator("input[name=source][value=test]").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("explorer.session.view.source") == "random"
    inner = page.evaluate("() => getComputedStyle(document.activeElement.nextElementSibling).boxShadow")
    assert "inset" in inner  # the ring alone is lost on what is chosen
    wanted = {
        "model",
        "play",
        "fresh",
        "output",
        "k",
        "t",
        "noise",
        "copy",
        "save-png",
        "save-gif",
        "previous",
        "clear",
    }
    page.locator("input[name=source][value=test]").check()
    focusable = page.evaluate("""() => [...document.querySelectorAll('button, input, select, a, [tabindex]')]
      .filter(one => one.tabIndex >= 0 && one.checkVisibility() && !one.disabled).map(one => one.id)""")
    assert wanted <= set(focusable)


@pytest.mark.parametrize("model", ["shapes", "conv-colour"])
def test_headings_and_names(model: str, visit: Visit) -> None:
    page = visit(model)
    levels = page.evaluate("""() => [...document.querySelectorAll('h1, h2, h3')].filter(one => one.checkVisibility())
      .map(one => Number(one.tagName[1]))""")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert page.locator("#status").get_attribute("aria-live") == "polite"
    unnamed = page.evaluate("""() => [...document.querySelectorAll('button, input, select, canvas')]
      .filter(one => one.checkVisibility() && !one.closest('[aria-hidden=true]') && one.getAttribute('aria-hidden') !== 'true')
      .filter(one => !(one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.length)).map(one => one.outerHTML)""")
    assert unnamed == []


def test_a_finger_drags_a_shape(new_visit: Visit) -> None:
    page = new_visit(view="things=0.1.1~1.11.7&k=3", width=390, has_touch=True, reduced_motion="reduce")
    page.evaluate("() => document.getElementById('stage').scrollIntoView()")
    box = page.locator("#input").bounding_box()
    cell = box["width"] / 20
    client = page.context.new_cdp_session(page)

    def touch(kind: str, col: float) -> None:
        points = [] if kind == "touchEnd" else [{"x": box["x"] + (col + 0.5) * cell, "y": box["y"] + 1.5 * cell}]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 1)
    for col in range(2, 9):
        touch("touchMove", col)
    touch("touchEnd", 8)
    assert page.evaluate("explorer.session.view.scene.things[0].col") == 8


def test_downloads_are_pictures(visit: Visit) -> None:
    page = visit(view="scene=3")

    def saved(button: str) -> tuple[str, Any]:
        with page.expect_download() as waiting:
            page.locator(f"#{button}").click()
        return waiting.value.suggested_filename, Image.open(io.BytesIO(Path(waiting.value.path()).read_bytes()))

    name, still = saved("save-png")
    assert name == "taggernet.png"
    assert still.format == "PNG"
    assert min(still.size) > 500
    name, moving = saved("save-gif")
    assert name == "taggernet.gif"
    assert moving.format == "GIF"
    assert getattr(moving, "n_frames", 1) == 9


def test_pictures_to_look_at(new_visit: Visit, screenshots: Path | None) -> None:
    """TAGGERNET_SCREENSHOTS=folder keeps them; the README's is taken by docs/images/explorer.py."""
    if screenshots is None:
        pytest.skip("set TAGGERNET_SCREENSHOTS to a folder to take pictures of the page")
    for scheme in ("light", "dark"):
        for width in (390, 1280):
            page = new_visit(width=width, color_scheme=scheme, reduced_motion="reduce")
            page.wait_for_timeout(500)
            page.screenshot(path=screenshots / f"{scheme}-{width}.png", full_page=True)
