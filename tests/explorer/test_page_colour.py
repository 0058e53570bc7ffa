"""The page with models of colour and of states: what is drawn, dragged, shown and passed on."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_toys import TOYS, Visit
from PIL import Image

VIEW = """() => { const { view, live, history, world, painted } = explorer.session; return {
  source: view.source, k: view.k, t: view.t, shown: view.shown, noise: view.noise, hidden: [...view.hidden],
  removed: [...view.removed], things: view.scene.things, back: view.scene.back, live, states: history.length,
  height: world.height, width: world.width, truth: painted.truth && [...painted.truth] } }"""
SEEN = "() => [...explorer.session.seen]"
COLOURED = ["conv-colour", "bits-batch", "colour-layer"]
"""Sprites, tetrominoes and scenes of a file."""


def view(page: Any) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate(VIEW)
    return found


def pixels(page: Any, which: str = "#input") -> Any:
    """(H, W, 3), of a canvas."""
    found = page.evaluate("""which => { const canvas = document.querySelector(which)
      const { width, height } = canvas
      return { width, height, data: [...canvas.getContext('2d').getImageData(0, 0, width, height).data] } }""", which)  # fmt: skip
    return np.array(found["data"]).reshape(found["height"], found["width"], 4)[..., :3]


def seen(page: Any, name: str) -> Any:
    config = TOYS[name]
    return np.array(page.evaluate(SEEN)).reshape(*config.shape, config.channels)


def at(page: Any, row: float, col: float) -> tuple[float, float]:
    box, now = page.locator("#input").bounding_box(), view(page)
    return box["x"] + (col + 0.5) * box["width"] / now["width"], box["y"] + (row + 0.5) * box["height"] / now["height"]


def stroke(page: Any, *places: tuple[float, float]) -> None:
    page.evaluate("scrollTo(0, 0)")
    page.mouse.move(*at(page, *places[0]))
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*at(page, *place))
    page.mouse.up()


@pytest.mark.parametrize("name", COLOURED)
def test_the_picture_has_the_colours_of_x(name: str, visit: Visit) -> None:
    page = visit(name)
    x = seen(page, name)
    low, high = page.evaluate("() => explorer.session.world.range ?? [0, 1]")
    assert np.abs(pixels(page) - 255 * (x - low) / (high - low)).max() <= 1


def test_states_have_colours_of_their_own(visit: Visit) -> None:
    page = visit("states-layer")
    for number in range(4):
        page.locator("#colours input").nth(number).check()
        page.locator("input[name=tool][value=pen]").check()
        stroke(page, (2, 2 * number))
    page.locator("input[name=tool][value=move]").check()
    states, shown = seen(page, "states-layer").argmax(-1), pixels(page)
    assert [states[2, 2 * number] for number in range(4)] == [1, 2, 3, 0]  # the ground's own last
    colours = {tuple(shown[states == state][0]) for state in range(4)}
    assert len(colours) == 4
    apart = [np.abs(np.subtract(a, b)).sum() for a in colours for b in colours if a != b]
    assert min(apart) > 60
    for state in range(4):
        assert (shown[states == state] == shown[states == state][0]).all()


@pytest.mark.parametrize("name", ["conv-colour"])
def test_a_coloured_shape_is_added_dragged_and_taken_out(name: str, visit: Visit) -> None:
    page = visit(name)
    page.locator("#clear").click()
    page.locator("#colours input").nth(1).check()
    page.locator("#palette .stamp").first.click()
    colour = np.array(page.evaluate("() => explorer.session.world.colours[explorer.session.world.swatches[1]]"))
    (thing,) = view(page)["things"]
    bare = seen(page, name)[0, -1]
    covered = (np.abs(seen(page, name) - colour) < 1e-6).all(-1)
    assert covered.any()
    assert not np.allclose(bare, colour)
    assert view(page)["truth"] == covered.astype(int).ravel().tolist()
    row, col = np.argwhere(covered)[0]
    stroke(page, (row, col), (row - 1, col), (row - 9, col - 9))
    now = view(page)
    assert (now["things"][0]["row"], now["things"][0]["col"]) == (0, max(0, thing["col"] - 9))
    assert (now["live"], now["states"], now["source"]) == (True, 3, "own")
    page.locator(".handle").first.focus()
    page.keyboard.press("Delete")
    assert view(page)["things"] == []
    assert np.allclose(seen(page, name), bare)


def test_sprites_of_a_test_scene_are_dragged_over_one_another(visit: Visit) -> None:
    page = visit("conv-colour", "scene=1")
    before = view(page)
    assert len(before["things"]) == 4
    page.locator(".handle").nth(3).focus()
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    after = view(page)
    assert after["things"][3]["row"] == max(0, before["things"][3]["row"] - 3)
    assert after["things"][:3] == before["things"][:3]
    assert after["back"] == before["back"]


@pytest.mark.parametrize("name", ["conv-colour", "states-layer"])
def test_pen_and_eraser(name: str, visit: Visit) -> None:
    page = visit(name)
    bare = page.evaluate("() => explorer.session.world.bare(explorer.session.view.scene.back)")
    page.locator("#colours input").nth(2).check()
    page.locator("input[name=tool][value=pen]").check()
    stroke(page, (3, 2), (3, 3))
    colour = page.evaluate("() => explorer.session.world.colours[explorer.session.world.swatches[2]]")
    assert np.allclose(seen(page, name)[3, 2:4], colour)
    page.locator("input[name=tool][value=eraser]").check()
    stroke(page, (3, 3))
    assert np.allclose(seen(page, name)[3, 2], colour)
    assert np.allclose(seen(page, name)[3, 3], bare)
    assert page.locator("#ami").inner_text() == "no truth here"
    page.locator("input[name=tool][value=move]").check()


@pytest.mark.parametrize("name", ["conv-colour"])
def test_hide_remove_groups_iterations_and_noise(name: str, visit: Visit) -> None:
    page = visit(name)
    whole, clean = pixels(page, "#output"), seen(page, name)
    page.get_by_role("button", name="Hide group 2").click()
    assert (pixels(page, "#output") != whole).any()
    page.get_by_role("button", name="Hide group 2").click()
    assert (pixels(page, "#output") == whole).all()
    page.get_by_role("button", name="Remove group 1").click()
    m = page.evaluate("() => [...explorer.session.state.m]")
    assert max(m[: len(m) // 3]) == 0
    page.locator("#k").fill("5")
    page.locator("#t").fill("2")
    page.locator("#noise").fill("0.2")
    now = view(page)
    assert (now["k"], now["t"], now["noise"], now["states"], now["removed"]) == (5, 2, 0.2, 3, [])
    assert page.locator(".card").count() == 5
    changed = np.abs(seen(page, name) - clean) > 1e-6
    assert 0.05 < changed.mean() <= 1


def test_the_background_has_a_score_of_its_own(visit: Visit) -> None:
    page = visit("conv-colour", "scene=3")
    assert page.locator("#ari").is_visible()
    assert -0.5 <= float(page.locator("#ari").inner_text()) <= 1
    page = visit("colour-layer")
    assert page.locator("#ari").is_hidden()


def test_an_element_shows_what_each_group_expects_as_a_colour(visit: Visit) -> None:
    page = visit("conv-colour", "scene=2")
    page.locator("#output").focus()
    page.keyboard.press("ArrowUp")
    row, col = 16 // 2 - 1, 16 // 2
    x = seen(page, "conv-colour")[row, col]
    said = page.locator(".inspector-title").inner_text()
    assert said.startswith(f"Row {row + 1}, column {col + 1}: " + ", ".join(f"{value:.2f}" for value in x))
    swatches = page.locator(".bar-row:not(.head) .swatch")
    assert swatches.count() == view(page)["k"]
    z = page.evaluate("() => [...explorer.session.state.z]")
    first = 255 * np.clip(np.array(z).reshape(-1, 16, 16, 3)[0, row, col], 0, 1)
    shown = swatches.first.evaluate("one => getComputedStyle(one).backgroundColor.match(/\\d+/g).map(Number)")
    assert np.abs(np.array(shown) - first).max() <= 1
    assert page.locator(".card.lit").count() == 1
    page.locator("#play").focus()


@pytest.mark.parametrize("name", ["conv-colour", "states-layer"])
def test_a_link_leads_to_the_same_drawing(name: str, visit: Visit, new_visit: Visit) -> None:
    page = visit(name)
    page.locator("#colours input").nth(3).check()
    page.locator("#palette .stamp").nth(1).click()
    page.locator("input[name=tool][value=pen]").check()
    stroke(page, (5, 1), (6, 1))
    page.locator("input[name=tool][value=move]").check()
    page.locator("#fresh").click()  # not what dragging led to, but what Python would find
    page.locator(".hide").first.click()
    page.evaluate("() => explorer.remember()")
    address = page.evaluate("() => location.hash.slice(1)")
    other = new_visit(name, address.partition("&")[2], color_scheme="light", reduced_motion="reduce")
    assert view(other) == view(page)
    for which in ("#input", "#output"):
        assert (pixels(other, which) == pixels(page, which)).all()


def test_downloads_are_in_colour(visit: Visit) -> None:
    page = visit("conv-colour", "scene=1")
    x = 255 * seen(page, "conv-colour")
    for button, near in (("save-png", 1), ("save-gif", 33)):  # a GIF has 256 colours
        with page.expect_download() as waiting:
            page.locator(f"#{button}").click()
        with Image.open(io.BytesIO(Path(waiting.value.path()).read_bytes())) as saved:
            picture = np.asarray(saved.convert("RGB")).astype(float)
        middle = picture[30 + 10 : 30 + 320 : 20, 16 + 10 : 16 + 320 : 20]  # the middles of 16 x 16 enlarged pixels
        assert np.abs(middle - x).max() <= near


def test_it_fits_a_phone_in_colour(visit: Visit) -> None:
    page = visit("conv-colour")
    try:
        for width in (320, 390, 820):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, width
            assert page.locator("#colours input").last.is_visible()
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})
