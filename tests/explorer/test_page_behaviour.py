"""The page as a visitor uses it, in a real browser. Defects of an earlier page each have a test here."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest
from page_toys import Visit

STATE = """() => { const { view, live, history, ami } = explorer.session; return {
  source: view.source, number: view.scene.number, k: view.k, t: view.t, seed: view.seed, noise: view.noise,
  shown: view.shown, hidden: [...view.hidden], removed: [...view.removed], live, states: history.length, ami,
  things: view.scene.things, playing: explorer.player.playing } }"""
PIXELS = """id => { const canvas = document.getElementById(id); return [...canvas.getContext('2d').getImageData(
  0, 0, canvas.width, canvas.height).data] }"""
CARDS = """() => [...document.querySelectorAll('.card canvas')].map(canvas => canvas.toDataURL())"""


def state(page: Any) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate(STATE)
    return found


def slide(page: Any, name: str, value: float) -> None:
    page.locator(f"#{name}").fill(str(value))


def agrees(page: Any) -> None:
    """What the page says is what it shows."""
    now = state(page)
    assert page.locator("#k").input_value() == str(now["k"])
    assert page.locator("#t").input_value() == str(now["t"])
    assert page.locator("input[name=source]:checked").get_attribute("value") == now["source"]
    assert page.locator(".frame").count() == now["states"]
    assert page.locator(".frame[aria-pressed=true]").count() == 1
    pressed = page.locator(".frame").nth(now["shown"])
    assert pressed.get_attribute("aria-pressed") == "true"
    assert page.locator(".card").count() == now["k"]
    assert page.locator(".hide[aria-pressed=true]").count() == len(now["hidden"])
    assert page.locator(".remove[aria-pressed=true]").count() == len(now["removed"])
    if now["source"] == "test":
        assert page.locator("#number").input_value() == str(now["number"])
        assert page.locator("#scene-title").inner_text().endswith(f"scene {now['number']}")
    drawn = page.evaluate("() => [...explorer.session.seen]")
    shown = page.evaluate(PIXELS, "input")[::4]
    assert [value < 128 for value in shown] == [value > 0.5 for value in drawn]


# --- defect 1: playing was never cancelled ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "act",
    [
        lambda page: page.locator("#next").click(),
        lambda page: page.locator(".hide").first.click(),
        lambda page: page.locator(".remove").nth(1).click(),
        lambda page: slide(page, "t", 2),
        lambda page: slide(page, "noise", 0.1),
        lambda page: page.locator(".frame").nth(1).click(),
    ],
    ids=["next", "hide", "remove", "T", "noise", "frame"],
)
def test_whatever_is_done_ends_playing(act: Any, visit: Visit) -> None:
    page = visit(view="scene=0&t=10")
    page.locator("#play").click()
    assert state(page)["playing"]
    act(page)
    before = state(page)
    assert not before["playing"]
    page.wait_for_timeout(800)  # longer than an iteration is shown
    assert state(page) == before
    assert page.locator("#play").inner_text() == "Play"
    agrees(page)


# --- defect 2: taking an object away ----------------------------------------------------------------------------------


def test_hiding_a_group_changes_nothing_else(visit: Visit) -> None:
    page = visit()
    pictures, ami = page.evaluate(CARDS), page.locator("#ami").inner_text()
    owned = page.evaluate("""() => { const { m, z, groups } = explorer.session.state, n = m.length / groups
      return [0, 1, 2, 3].map(k => [...Array(n).keys()].filter(e => m[k * n + e] * z[k * n + e] > 0.7)) }""")
    before = page.evaluate(PIXELS, "output")
    group = max(range(4), key=lambda k: len(owned[k]))
    assert len(owned[group]) > 20
    page.get_by_role("button", name=f"Hide group {group + 1}").click()
    after = page.evaluate(PIXELS, "output")
    paper = [255, 255, 255]
    assert all(min(after[4 * e : 4 * e + 3]) > 170 for e in owned[group])  # hardly anything is left of it
    for other in set(range(4)) - {group}:
        for e in owned[other]:
            assert (
                max(abs(a - b) for a, b in zip(after[4 * e : 4 * e + 3], before[4 * e : 4 * e + 3], strict=True)) < 80
            )
    assert page.evaluate(CARDS) == pictures
    assert page.locator("#ami").inner_text() == ami
    assert "hidden" in page.locator("#shown-title").inner_text()
    assert before != after != paper
    agrees(page)


def test_on_arrival_every_object_can_be_removed(visit: Visit) -> None:
    page = visit()
    left = page.evaluate("""() => { const session = explorer.session, { truth } = session.painted
      const n = truth.length, { m } = session.state, found = [], every = [...Array(session.view.k).keys()]
      for (const thing of [1, 2, 3]) {
        const own = [...truth.keys()].filter(e => truth[e] === thing)
        const owner = every.reduce((a, b) => (own.reduce((s, e) => s + m[b * n + e] - m[a * n + e], 0) > 0 ? b : a))
        session.remove(owner)
        const now = session.state
        found.push(own.filter(e => every.reduce((s, k) => s + now.m[k * n + e] * now.z[k * n + e], 0) > 0.5).length / own.length)
        session.remove(owner)
      }
      return found }""")  # fmt: skip
    assert max(left) < 0.1


def test_what_is_removed_is_gone_everywhere(visit: Visit) -> None:
    """From the small pictures too, and the cards count the pixels that they show."""
    page = visit(view="scene=41")
    before = page.evaluate(PIXELS, "output")
    claimed = "() => [0, 1, 2, 3].map(k => { const { m, z } = explorer.session.state; \
      return m.slice(400 * k, 400 * (k + 1)).reduce((sum, share, e) => sum + share * z[400 * k + e], 0) })"
    shares = page.evaluate(claimed)
    first = shares.index(max(shares))
    page.locator(".remove").nth(first).click()
    assert page.evaluate(PIXELS, "output") != before
    small = "() => [...document.querySelector('.frame[aria-pressed=true] canvas').getContext('2d').getImageData(0, 0, 20, 20).data]"
    assert page.evaluate(small) == page.evaluate(PIXELS, "output")
    shares = page.evaluate(claimed)
    others = max((k for k in range(4) if k != first), key=lambda k: shares[k])
    assert page.locator(".card .note").nth(others).inner_text() == f"Explains about {round(shares[others])} pixels."


def test_ami_says_when_a_group_is_removed(visit: Visit) -> None:
    page = visit()
    page.locator(".remove").first.click()
    assert page.locator("#ami").inner_text().endswith("with all groups")
    assert "removed" in page.locator("#shown-title").inner_text()
    for number in range(1, 6):
        page.locator(".remove").nth(number).click()
    assert "One group has to stay" in page.locator("#status").inner_text()
    page.get_by_role("button", name="Show all again").click()
    assert state(page)["removed"] == []
    agrees(page)


# --- defect 3: parts that lost step -----------------------------------------------------------------------------------


@pytest.mark.parametrize("typed", ["", "-1", "99999999", "3.5"])
def test_a_scene_number_that_is_none_is_one_sentence(typed: str, visit: Visit) -> None:
    page = visit(view="scene=7")
    page.locator("#number").fill(typed)
    page.locator("#number").press("Tab")
    assert "There are scenes 0 to 9999" in page.locator("#status").inner_text()
    assert page.locator("#number").input_value() == "7"
    agrees(page)


def test_ten_quick_clicks_are_ten_scenes(visit: Visit) -> None:
    page = visit(view="scene=5")
    page.evaluate("() => { for (let i = 0; i < 10; i++) document.getElementById('next').click() }")
    assert state(page)["number"] == 15
    agrees(page)


def test_noise_and_iterations_keep_what_was_removed_and_shown(visit: Visit) -> None:
    page = visit(view="scene=4")
    page.locator(".remove").nth(2).click()
    page.locator(".frame").nth(3).click()
    slide(page, "noise", 0.1)
    slide(page, "t", 5)
    now = state(page)
    assert (now["removed"], now["shown"], now["t"]) == ([2], 3, 5)
    agrees(page)
    slide(page, "k", 4)
    assert state(page)["removed"] == []
    assert "all are shown again" in page.locator("#status").inner_text()
    agrees(page)


def test_the_source_says_what_is_shown(visit: Visit) -> None:
    page = visit(view="scene=4")
    handle = page.locator(".handle").first
    handle.focus()
    handle.press("ArrowDown")
    handle.press("ArrowUp")
    assert state(page)["source"] == "own"
    agrees(page)
    page.locator("input[name=source][value=random]").check()
    assert len(state(page)["things"]) == 3
    agrees(page)
    page.locator("input[name=source][value=test]").check()
    assert state(page)["number"] == 4
    agrees(page)


# --- defect 6: the human test -----------------------------------------------------------------------------------------


def test_the_human_test_reveals_the_groups_and_keeps_the_score(visit: Visit) -> None:
    page = visit("real-batch-classes")
    quiz = page.locator("#quiz")
    quiz.locator(".digit").nth(3).wait_for()
    waiting = page.evaluate("() => explorer.quiz.revealed.toDataURL()")
    assert quiz.get_by_role("button", name="Answer").is_disabled()
    quiz.locator(".digit").nth(3).click()
    quiz.locator(".digit").nth(8).click()
    quiz.get_by_role("button", name="Answer").click()
    assert re.search(r"It was \d and \d; the network said \d and \d\.", quiz.locator(".said").inner_text())
    assert quiz.get_by_role("button", name="Answer").is_disabled()
    assert "primary" not in (quiz.get_by_role("button", name="Answer").get_attribute("class") or "")
    assert "primary" in quiz.get_by_role("button", name="Next scene").get_attribute("class")
    assert page.evaluate("() => explorer.quiz.revealed.toDataURL()") != waiting
    score = quiz.locator(".tally").inner_text()
    assert "after 1 scene" in score
    assert "30 %" in score
    page.reload()
    page.locator("#rest").wait_for()
    assert page.locator("#quiz .tally").inner_text() == score
    assert page.locator("#quiz").get_by_role("button", name="Skip").is_visible()
    page.evaluate("() => localStorage.clear()")


def test_textures_show_classes_over_iterations(visit: Visit) -> None:
    page = visit("real-batch-classes")
    assert page.locator(".class-table tbody tr").count() == state(page)["t"]
    assert page.locator(".class-table td").count() == 10 * state(page)["t"]
    assert page.locator(".card .class-bars span").count() == 10 * state(page)["k"]
    assert page.locator("#challenges-panel").is_hidden()


# --- defect 7: words --------------------------------------------------------------------------------------------------


def test_the_letters_are_explained_where_they_stand(visit: Visit) -> None:
    page = visit()
    words = page.locator("#words").inner_text()
    for term in ("AMI", "K, the number of groups", "T, the number of iterations", "z", "m, the mask", "grey", "empty"):
        assert term in words
    for about, part in (
        ("ami", "mutual information"),
        ("k", "share the picture"),
        ("t", "improves its guess"),
        ("z", "hidden behind"),
        ("m", "adds up to one"),
        ("grey", "makes no difference"),
    ):
        button = page.locator(f"[data-about={about}]")
        button.focus()
        button.press("Enter")
        assert part in page.locator("#bubble").inner_text()
        page.keyboard.press("Escape")
        assert page.locator("#bubble").is_hidden()


def test_the_first_words_are_those_of_the_model(visit: Visit) -> None:
    written = " ".join(visit().locator("#lead").inner_text().split())
    assert written.startswith("You see three shapes at a glance; this network sees 400 loose pixels")
    assert written.endswith("Watch it guess eight times, and the shapes come apart.")
    assert "grey" in visit().locator("#words").inner_text()
    assert "grey in places" not in visit("conv-colour").locator("#words").inner_text()
    assert "FG-ARI" in visit("conv-colour").locator("#words").inner_text()
    assert "FG-ARI" not in visit().locator("#words").inner_text()  # which has no figure of that name
    assert "Two handwritten digits" in visit("real-batch-classes").locator("#lead").inner_text()
    assert "Watch it guess four times." in visit("conv-colour").locator("#lead").inner_text()


# --- what the page is for ---------------------------------------------------------------------------------------------


def test_a_scene_plays_on_arrival_and_then_it_is_the_visitors_turn(new_visit: Visit) -> None:
    page = new_visit(reduced_motion="no-preference")
    assert state(page)["playing"]
    assert "at random" in page.locator("#status").inner_text()
    page.get_by_text("Your turn").wait_for()
    assert state(page)["shown"] == state(page)["t"]
    shift = page.evaluate("""() => new Promise(done => new PerformanceObserver(list => done(
      list.getEntries().reduce((sum, entry) => sum + entry.value, 0))).observe({ type: 'layout-shift', buffered: true })
      || setTimeout(() => done(0), 300))""")
    assert shift < 0.05


def test_what_waits_while_it_plays_is_done_when_it_ends(new_visit: Visit) -> None:
    page = new_visit(view="t=1", reduced_motion="no-preference")
    for cell in page.locator(".compare-cell").all():
        cell.get_by_text("AMI").wait_for()
    page.locator(".handle").first.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("() => location.hash.includes('things')")
    page.locator("#play").click()  # from another start
    page.wait_for_function("() => location.hash.includes('seed=1')")


def test_nothing_moves_by_itself_where_motion_is_unwanted(visit: Visit) -> None:
    page = visit()
    assert not state(page)["playing"]
    assert state(page)["shown"] == state(page)["t"]
    assert "Your turn" in page.locator("#status").inner_text()


def centre(page: Any, row: float, col: float) -> tuple[float, float]:
    box = page.locator("#input").bounding_box()
    return box["x"] + (col + 0.5) * box["width"] / 20, box["y"] + (row + 0.5) * box["height"] / 20


def test_dragging_a_shape_takes_its_group_along(visit: Visit) -> None:
    page = visit(view="things=0.1.1~1.11.7&k=3")
    page.evaluate("scrollTo(0, 0)")
    page.mouse.move(*centre(page, 1, 1))
    page.mouse.down()
    for step in range(1, 9):
        page.mouse.move(*centre(page, 1, 1 + step))
    page.mouse.up()
    now = state(page)
    assert now["things"][0] == {"kind": "square", "row": 1, "col": 9}
    assert (now["live"], now["states"], now["source"]) == (True, 3, "own")
    assert now["ami"] > 0.9
    agrees(page)
    page.locator("#fresh").click()
    assert (state(page)["live"], state(page)["seed"]) == (False, 1)


def test_shapes_are_added_drawn_and_taken_out(visit: Visit) -> None:
    page = visit(view="things=&k=3")
    assert sum(page.evaluate("() => [...explorer.session.seen]")) == 0
    page.get_by_role("button", name="Add ring").click()
    page.get_by_role("button", name="Add square").click()
    assert [thing["kind"] for thing in state(page)["things"]] == ["ring", "square"]
    page.locator(".handle").first.focus()
    page.keyboard.press("Delete")
    assert [thing["kind"] for thing in state(page)["things"]] == ["square"]
    page.keyboard.press("Delete")  # which the next one has the focus for
    assert state(page)["things"] == []
    assert page.evaluate("document.activeElement.id") == "output"
    page.get_by_role("button", name="Add square").click()
    page.locator("input[name=tool][value=pen]").check()
    page.evaluate("scrollTo(0, 0)")
    page.mouse.move(*centre(page, 18, 2))
    page.mouse.down()
    page.mouse.move(*centre(page, 18, 3))
    page.mouse.up()
    seen = page.evaluate("() => [...explorer.session.seen]")
    assert seen[18 * 20 + 2] == seen[18 * 20 + 3] == 1
    assert page.locator("#ami").inner_text() == "no truth here"
    page.locator("input[name=tool][value=move]").check()
    agrees(page)


def test_the_truth_stands_beside_the_iterations(visit: Visit) -> None:
    """Where the groups are right, in their colours; where nobody knows it, nothing."""
    page = visit(view="scene=41")
    groups, truth = (page.evaluate(PIXELS, "output"), page.evaluate("""() => { const canvas = document.querySelector('.truth canvas')
      return [...canvas.getContext('2d').getImageData(0, 0, 20, 20).data] }"""))  # fmt: skip
    labels = page.evaluate("() => [...explorer.session.painted.truth]")
    far = [max(abs(groups[4 * e + i] - truth[4 * e + i]) for i in range(3)) for e in range(400) if labels[e]]
    assert sorted(far)[len(far) * 9 // 10] < 60
    assert all(truth[4 * e : 4 * e + 3] == [255] * 3 for e in range(400) if not labels[e])
    page.locator("input[name=tool][value=pen]").check()
    page.evaluate("scrollTo(0, 0)")
    page.mouse.click(*centre(page, 0, 0))
    assert page.locator(".truth").is_hidden()
    page.locator("input[name=tool][value=move]").check()


def test_an_element_shows_who_claims_it(visit: Visit) -> None:
    page = visit(view="scene=41&t=4")
    page.mouse.move(1, 1)
    page.evaluate("() => { explorer.stage.element = null }")
    page.locator("#output").focus()
    page.keyboard.press("ArrowUp")
    assert "Row 10, column 11" in page.locator(".inspector-title").inner_text()
    shares = [float(row.locator(".value").first.inner_text()) for row in page.locator(".bar-row:not(.head)").all()]
    assert abs(sum(shares) - 1) < 0.03
    lit = page.locator(".card.lit")
    assert lit.count() == 1
    assert lit.get_attribute("aria-label") == f"Group {shares.index(max(shares)) + 1}"
    page.locator("#play").focus()
    assert page.locator(".card.lit").count() == 0


def test_the_inside_shows_four_pictures_in_and_two_out(visit: Visit) -> None:
    page = visit(view="scene=2&k=3")
    page.locator(".frame").nth(1).click()
    assert "Iteration 1 of 8" in page.locator("#inside-about").inner_text()
    assert page.locator(".inside-row:not(.inside-head)").count() == 3
    assert page.locator(".inside-row canvas").count() == 18


def test_the_same_scene_with_other_numbers_of_groups(visit: Visit) -> None:
    page = visit()
    cells = page.locator(".compare-cell")
    assert [cell.locator("b").inner_text() for cell in cells.all()] == ["K = 2", "K = 3", "K = 4", "K = 6"]
    page.get_by_text("AMI 1.00").first.wait_for()
    cells.nth(3).click()
    assert state(page)["k"] == 6
    agrees(page)


def test_a_challenge_can_be_done_by_keyboard(visit: Visit) -> None:
    page = visit()
    page.get_by_role("button", name="Try: Exactly on top").click()
    assert state(page)["things"][0] == state(page)["things"][1]
    page.wait_for_timeout(400)
    assert page.locator(".challenge.done").count() == 0  # not done by itself
    page.locator(".handle").nth(1).focus()
    for _ in range(9):
        page.keyboard.press("ArrowRight")
    page.locator(".challenge.done").wait_for()
    assert "Done!" in page.locator("#status").inner_text()
    page.evaluate("() => localStorage.clear()")


SOLUTIONS = {
    "overlap": "{ scene: { things: [at(0), { ...at(1), row: 3, col: 12 }, at(2)], ink: null } }",
    "noise": "{ seed: 3 }",
    "unseen": "{ scene: { things: [at(0), at(1), { ...at(2), row: 1, col: 1 }], ink: null } }",
    "five": "{ k: 7, seed: 7 }",
}


@pytest.mark.parametrize("name", SOLUTIONS)
def test_every_challenge_is_open_at_first_and_can_be_done(name: str, visit: Visit) -> None:
    found = visit().evaluate(f"""async () => {{
      const {{ CHALLENGES }} = await import(new URL('ui/challenges.js', location.href))
      const {{ view, solved }} = CHALLENGES.find(({{ id }}) => id === '{name}'), {{ session }} = explorer
      const at = index => view.scene.things[index]
      session.set({{ ...session.defaults(), ...view }})
      const before = solved(session)
      session.set({SOLUTIONS[name]})
      return [before, solved(session)]
    }}""")
    assert found == [False, True]


def test_a_link_leads_to_the_same_view(visit: Visit, new_visit: Visit) -> None:
    page = visit(view="scene=12&k=5&t=4&seed=3&noise=0.1")
    page.locator(".frame").nth(2).click()
    page.locator(".hide").nth(1).click()
    page.evaluate("() => explorer.remember()")
    address = page.evaluate("() => location.hash.slice(1)")
    other = new_visit(view=address.partition("&")[2], color_scheme="light")
    assert state(other) == state(page)
    assert other.evaluate(PIXELS, "output") == page.evaluate(PIXELS, "output")


def test_own_scenes_of_a_file_are_shown(visit: Visit) -> None:
    page = visit("real-layer")
    assert page.locator("#number").get_attribute("max") == "4"
    page.locator("#next").click()
    assert page.locator("#scene-title").inner_text() == "scene 1"
    assert re.fullmatch(r"-?\d\.\d\d", page.locator("#ami").inner_text())
    box = page.locator("#input").bounding_box()
    assert abs(box["width"] / box["height"] - 9 / 6) < 0.02  # as wide as it is


def test_without_webassembly_it_is_plain_javascript_and_says_so(new_visit: Visit) -> None:
    page = new_visit(before="delete window.WebAssembly", reduced_motion="reduce")
    assert "plain JavaScript" in page.locator("#how").inner_text()
    assert page.locator("#ami").inner_text() == "1.00"


def answer(body: str | None, route: Any) -> None:
    route.fulfill(status=404 if body is None else 200, body=body or "")


def test_a_model_that_is_not_there_is_one_sentence_on_the_page(site: Any, browser: Any) -> None:
    context = browser.new_context()
    page = context.new_page()
    for pattern, body, said in (
        ("**/config.json", '{"format": 2}', "is not the card of a taggernet model"),
        ("**/models.json", "<html>", "models.json is damaged"),
        ("**/model.safetensors", None, "is not there"),
    ):
        page.route(pattern, partial(answer, body))
        page.goto(site.url)
        page.locator("#alert").wait_for()
        assert said in page.locator("#alert").inner_text()
        page.unroute(pattern)
    context.close()
