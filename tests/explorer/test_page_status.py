"""What the page says is true of what it shows: the status line, names of classes, hints, a page opened from a file."""

from __future__ import annotations

from typing import Any

import pytest
from page_toys import Site, Visit

from taggernet.explorer.bundle import PAGE

CONDITIONS = "() => (({ k, t, seed, noise }) => [k, t, seed, noise])(explorer.session.view)"
GIVEN_BACK = """async () => { const { givenBack } = await import('./ui/session.js'), { session } = explorer
  return givenBack(session.painted.x, session.history.at(-1), 1) }"""
"""The share of the ink that the groups give back."""
LEFT_OUT = "Group 2 is removed; the others share out its pixels."
TURN = "Your turn: drag a shape in the left picture, and the groups follow."
FOLLOWS = "The groups follow: every frame goes on from the last one."
EMPTY = "The picture is empty: add a shape or draw."


def status(page: Any) -> str:
    said: str = page.locator("#status").inner_text()
    return said


def use(page: Any, tool: str) -> None:
    page.locator(f"input[name=tool][value={tool}]").check()


def draw(page: Any, *corners: tuple[int, int]) -> None:
    """One stroke of the pen through these rows and columns."""
    use(page, "pen")
    page.evaluate("scrollTo(0, 0)")
    box = page.locator("#input").bounding_box()
    places = [(box["x"] + (col + 0.5) * box["width"] / 20, box["y"] + (row + 0.5) * box["height"] / 20)
              for row, col in corners]  # fmt: skip
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=4)
    page.mouse.up()


def square(row: int, col: int, side: int = 6) -> list[tuple[int, int]]:
    return [(row, col), (row, col + side), (row + side, col + side), (row + side, col), (row, col)]


# --- the status line --------------------------------------------------------------------------------------------------


def test_a_group_is_called_removed_as_long_as_it_is(visit: Visit) -> None:
    page = visit(view="scene=4")
    remove = page.get_by_role("button", name="Remove group 2")
    remove.click()
    assert status(page) == LEFT_OUT
    page.locator("#noise").fill("0.1")
    page.locator("#t").fill("5")
    assert status(page) == LEFT_OUT
    page.locator("#restore").click()
    assert status(page) == "All groups are shown again."
    page.locator("#t").fill("6")
    assert status(page) == TURN
    remove.click()
    page.locator("input[name=source][value=random]").check()
    assert status(page) == TURN
    remove.click()
    page.locator("#k").fill("4")
    assert status(page) == "Another K makes other groups: all are shown again."
    page.locator("#noise").fill("0")
    assert status(page) == TURN


def test_playing_ends_what_was_said_of_dragging(visit: Visit) -> None:
    page = visit(view="scene=4&t=3")
    page.locator(".handle").first.focus()
    page.keyboard.press("ArrowDown")
    assert status(page) == FOLLOWS
    page.locator(".frame").first.click()
    assert status(page) == "These are the groups before the last change."
    page.locator("#play").click()
    assert "at random" in status(page)
    page.get_by_text("The network improves its guess, one iteration after the other.").wait_for()
    page.locator("#play").click()
    shown = page.evaluate("explorer.session.view.shown")
    assert status(page) == (f"This is iteration {shown} of 3." if shown < 3 else TURN)


def test_a_challenge_ends_with_the_scene_and_takes_its_conditions_along(visit: Visit) -> None:
    page = visit(view="scene=4&k=5&t=6&seed=3")
    page.get_by_role("button", name="Try: One pixel in five is wrong").click()
    assert status(page).startswith("Every fifth pixel is flipped.")
    assert page.evaluate(CONDITIONS) == [4, 5, 2, 0.2]
    page.locator("#noise").fill("0.1")
    assert status(page).startswith("Your task: four shapes")
    page.locator("#clear").click()
    assert status(page) == EMPTY
    assert page.evaluate(CONDITIONS) == [5, 6, 3, 0]
    draw(page, *square(3, 3, 5))
    assert status(page) == FOLLOWS
    page.locator("#fresh").click()
    assert status(page) == "Your turn: draw in the left picture, and the groups follow."
    use(page, "move")
    page.get_by_role("button", name="Try: Five shapes").click()
    page.locator("#k").fill("7")
    page.locator("input[name=source][value=test]").check()
    assert status(page) == TURN
    assert page.evaluate(CONDITIONS) == [5, 6, 4, 0]


def test_a_challenge_is_done_as_long_as_it_is(visit: Visit) -> None:
    page = visit()
    try:
        for _ in range(2):  # also when it is begun again
            page.get_by_role("button", name="Try: Exactly on top").click()
            page.locator(".handle").nth(1).focus()
            for _ in range(9):
                page.keyboard.press("ArrowRight")
            page.get_by_text("Done! A few pixels were enough").wait_for()
        for _ in range(9):
            page.keyboard.press("ArrowLeft")
        assert status(page) == FOLLOWS
    finally:
        page.evaluate("() => localStorage.clear()")


def test_two_boxes_of_the_pen_come_out_as_groups(visit: Visit) -> None:
    page = visit(view="things=&k=4")
    for row, col in ((2, 2), (11, 11)):
        draw(page, *square(row, col))
    assert page.evaluate(GIVEN_BACK) > 0.6
    page.locator("#fresh").click()
    assert page.evaluate(GIVEN_BACK) > 0.6
    corner = "([row, col]) => { const { m, groups } = explorer.session.history.at(-1), at = row * 20 + col; \
      return [...Array(groups).keys()].reduce((a, b) => (m[b * 400 + at] > m[a * 400 + at] ? b : a)) }"
    assert page.evaluate(corner, [3, 5]) != page.evaluate(corner, [12, 14])
    use(page, "move")


def test_groups_that_hold_nothing_begin_again_while_the_pen_draws(visit: Visit) -> None:
    page = visit(view="things=&k=6")  # where the groups of the empty picture leave the whole stroke blank
    draw(page, *square(2, 2))
    assert page.evaluate(GIVEN_BACK) > 0.6
    assert status(page) == FOLLOWS
    use(page, "move")


def test_a_drawing_too_thin_for_the_groups_is_explained(visit: Visit) -> None:
    page = visit(view="things=&k=4")
    page.evaluate("""() => { const ink = new Uint8Array(400)
      for (let col = 3; col < 12; col++) ink[100 + col] = 1
      explorer.session.follow({ things: [], ink }) }""")
    assert page.evaluate(GIVEN_BACK) < 0.1
    assert "leave the drawing blank" in status(page)
    assert "draw thicker lines" in status(page)


@pytest.mark.parametrize(
    ("model", "added", "thing"),
    [("real-batch-classes", "Add an 8", "digit 8"), ("conv-colour", "Add ellipse", "ellipse")],
)
def test_what_is_added_and_taken_out_is_said_in_sentences(model: str, added: str, thing: str, visit: Visit) -> None:
    page = visit(model, "scene=1")
    page.get_by_role("button", name=added).click()
    said = status(page)
    assert said.startswith("The ")
    assert said.endswith(f"{thing} is added: drag it.")
    page.locator(".handle").last.focus()
    page.keyboard.press("Delete")
    said = status(page)
    assert said.startswith("The ")
    assert said.endswith(f"{thing} is taken out.")


def test_the_pictures_that_can_be_drawn_on_are_offered_the_pen(visit: Visit) -> None:
    for model, hint in (
        ("shapes", "Drag, add and draw as you like."),
        ("real-batch-classes", "Drag and add as you like."),
    ):
        assert visit(model).locator("#of-own").text_content() == f"This scene is yours. {hint}"


# --- classes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "noun"), [("real-batch-classes", "digit"), ("real-layer-head", "class")])
def test_digits_are_for_texture_mnist_only(model: str, noun: str, visit: Visit) -> None:
    page = visit(model)
    many = {"digit": "digits", "class": "classes"}[noun]
    assert page.locator("#classes-heading").inner_text() == f"Which {many} are there?"
    assert f"Share of each {noun} in percent; together they make 100." in page.locator("caption").inner_text()
    if noun == "class":
        assert "digit" not in page.locator("main").inner_text().lower()


def test_figures_of_the_human_test_stay_inside(visit: Visit) -> None:
    page = visit("real-batch-classes")
    page.evaluate(
        "() => { const { quiz } = explorer; quiz.round = { ...quiz.round, scenes: 1, you: 1, network: 1 }; quiz.render(quiz.painter) }"
    )
    try:
        for width in (320, 390, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            figures = page.locator(".tally b")
            assert figures.all_inner_texts() == ["100 %", "100 %", "30 %"]
            assert figures.evaluate_all("all => all.every(one => one.scrollWidth <= one.clientWidth)"), width
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})
        page.evaluate("() => explorer.quiz.go({ ...explorer.quiz.round, scenes: 0, you: 0, network: 0 })")
        page.evaluate("() => localStorage.clear()")


# --- opened from a file -----------------------------------------------------------------------------------------------


def test_a_page_opened_from_a_file_says_how_to_serve_it(browser: Any, site: Site) -> None:
    page = browser.new_page()
    try:
        page.goto((PAGE / "index.html").as_uri())
        said = page.get_by_role("alert").inner_text()
        assert "taggernet explore" in said
        assert "python -m http.server" in said
        assert page.get_by_text("Loading").count() == 0
        page.goto(site.url)
        page.locator("#rest").wait_for()
        assert page.get_by_role("alert").count() == 0
    finally:
        page.close()
