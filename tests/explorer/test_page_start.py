"""The page with models whose masks start from the scene: what it shows, what it says, and how groups follow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from page_toys import TOYS, Site, Visit, toy_inputs

from taggernet.tagger import Tagger

SENTENCES = {
    "shapes": "every pixel is dealt to the groups at random",
    "grey-values": "start from the scene: pixels with like values",
    "colour-parts": "start from the scene: parts that often appear together",
}
INFORMED = ["grey-values", "colour-parts"]
LISTEN = """window.said = []
addEventListener('DOMContentLoaded', () => {
  const status = document.getElementById('status')
  new MutationObserver(() => said.push(status.textContent)).observe(status, { childList: true, characterData: true, subtree: true })
})"""
MASKS = "i => [...explorer.session.history[i].m]"


def labels(page: Any, iteration: int) -> Any:
    return (
        np.array(page.evaluate(MASKS, iteration)).reshape(page.evaluate("() => explorer.session.view.k"), -1).argmax(0)
    )


@pytest.mark.parametrize("name", INFORMED)
def test_the_groups_of_a_start_from_the_scene_are_shown(name: str, visit: Visit, site: Site) -> None:
    page, model = visit(name, "scene=2"), site.toys[name]
    x = toy_inputs(TOYS[name], 5)[2]
    ours = model.group(x[None], 3, 4).history
    for iteration in (0, 4):
        found = page.evaluate(MASKS, iteration)
        assert np.abs(np.array(found) - ours[iteration].m.numpy().ravel()).max() < 1e-3
    page.locator("#strip .frame").first.click()
    assert page.locator("#shown-title").inner_text() == "start from the scene"
    assert page.locator(".card").count() == 3
    assert page.locator(".card").first.inner_text().endswith("From the scene, like all groups at the start.")
    colours = page.evaluate("""() => { const canvas = document.querySelector('#output')
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
      return new Set(Array.from({ length: data.length / 4 }, (_, p) => String(data.slice(4 * p, 4 * p + 3)))).size }""")
    assert colours >= 3


@pytest.mark.parametrize("name", SENTENCES)
def test_the_page_says_what_the_masks_start_from(name: str, new_visit: Visit) -> None:
    """On arrival and in words; nothing else speaks of another start."""
    page = new_visit(name, before=LISTEN)
    page.wait_for_function("words => said.some((text) => text.includes(words))", arg=SENTENCES[name])
    assert SENTENCES[name] in page.locator("#words").inner_text()
    assert page.locator("#fresh").inner_text() == ("New random start" if name == "shapes" else "New start")
    if name in INFORMED:
        told = [
            page.locator("body").inner_text(),
            *page.locator(".frame").evaluate_all("all => all.map((one) => one.ariaLabel)"),
        ]
        assert not [text for text in told if "random start" in text or "at random" in text]
        assert "multiplied with the one at the start" in page.locator("#inside-about").inner_text()


SEEN = """async () => { const { asFed } = await import('./model/tagger.js')
  const last = explorer.session.history.at(-1)
  return [...asFed(last).m] }"""


def test_the_inside_shows_the_masks_of_the_loop_where_results_are_others(visit: Visit, site: Site) -> None:
    page, model = visit("colour-result", "scene=2"), site.toys["colour-result"]
    plain = Tagger(replace(model.config, masks="mapping"))
    plain.load_state_dict(model.state_dict())
    x = toy_inputs(TOYS["colour-result"], 5)[2][None]
    of_loop, shown = plain.eval().group(x, 3, 4).history[-1].m, model.group(x, 3, 4).history[-1].m
    assert (of_loop - shown).abs().max() > 0.05
    assert np.abs(np.array(page.evaluate(SEEN)) - of_loop.numpy().ravel()).max() < 1e-3
    assert np.abs(np.array(page.evaluate(MASKS, 4)) - shown.numpy().ravel()).max() < 1e-3
    assert "The other views show m times how well z explains the scene." in page.locator("#inside-about").inner_text()


EXCHANGE = """() => { const last = explorer.session.history.at(-1)
  for (const part of new Set([last.z, last.fed, last.m, last.mPre, last.fedM ?? last.m])) {  // z may be fed back as it is
    const size = part.length / last.groups, first = part.slice(0, size)
    part.copyWithin(0, size)
    part.set(first, part.length - size)
  } }"""


@pytest.mark.parametrize("name", INFORMED)
def test_groups_keep_their_colours_while_a_thing_is_dragged(name: str, visit: Visit) -> None:
    """Whatever the order in which the changed scene's own start has them."""
    page = visit(name, "scene=1")
    page.locator("#palette .stamp").first.click()
    page.locator(".handle").first.focus()
    page.evaluate(EXCHANGE)
    for key in 4 * ["ArrowLeft"] + 4 * ["ArrowUp"]:
        before = labels(page, page.evaluate("() => explorer.session.history.length - 1"))
        page.keyboard.press(key)
        assert page.evaluate("() => explorer.session.live")
        assert (labels(page, 2) == before).mean() > 0.7
