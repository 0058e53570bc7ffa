"""The page with shipped and toy models, served by this process, and one tab of a real browser to visit it with."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_toys import TOYS, Site, Visit, toy, toy_inputs

from taggernet import Tagger, data
from taggernet.explorer.bundle import DIGITS, LIST, PAGE, Bundle
from taggernet.explorer.serve import listen
from taggernet.explorer.shown_model import Content, as_tensors
from taggernet.model_io import CARD, WEIGHTS
from taggernet.pretrained import SHIPPED


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The page, with the shipped Shapes model, toys for all other worlds, and files of all toys."""
    folder = tmp_path_factory.mktemp("models")
    toys = {name: toy(config) for name, config in TOYS.items()}
    files: dict[str, Content] = {p.relative_to(PAGE).as_posix(): p for p in PAGE.rglob("*") if p.is_file()}
    places = {name: SHIPPED / name for name in ("shapes", "texture-mnist-2")} | {
        name: model.save(folder / name) for name, model in toys.items()
    }
    places["eight-bits"] = toys["binary-layer"].save(folder / "eight-bits", bits=8)
    toys["eight-bits"] = Tagger.load(places["eight-bits"])
    for name, place in places.items():
        files |= {f"{name}/{file}": place / file for file in (WEIGHTS, CARD)}
    images, labels = data.fixture_digits("test")
    files[DIGITS] = as_tensors(images=images, labels=labels)
    worlds = {"shapes": ("shapes", 3), "real-batch-classes": ("textures", 2), "real-layer": ("own", 0),
              "conv-colour": ("sprites", 4), "bits-batch": ("tetrominoes", 1), "colour-layer": ("own", 0),
              "states-layer": ("own", 0), "grey-values": ("own", 0), "colour-parts": ("own", 0),
              "colour-result": ("own", 0), "real-layer-head": ("own", 0)}  # fmt: skip
    entries = []
    for name, (world, objects) in worlds.items():
        scenes = None
        if world == "own" and name != "states-layer":  # which has no file: an empty canvas
            scenes, x = f"{name}.safetensors", toy_inputs(TOYS[name], 5)
            light = x.mean(-1) if TOYS[name].channels > 1 else x
            files[scenes] = as_tensors(x=x, groups=(light > light.mean()).astype("uint8") + 1)
        entries.append({
            "name": name, "weights": f"{name}/{WEIGHTS}", "card": f"{name}/{CARD}", "world": world, "objects": objects,
            "fewest": objects, "one_colour": False, "draws": True, "background": None, "scenes": scenes,
        })  # fmt: skip
    files[LIST] = json.dumps({"digits": DIGITS, "models": entries}).encode()
    server = listen("127.0.0.1", None, Bundle(files))
    worker = threading.Thread(target=server.serve_forever, daemon=True)
    worker.start()
    yield Site(f"http://127.0.0.1:{server.server_address[1]}/", toys)
    server.shutdown()
    server.server_close()
    worker.join()


@pytest.fixture(scope="session")
def tab(browser: Any) -> Iterator[tuple[Any, list[str]]]:
    """One tab for all tests, and what went wrong in it."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 900}, color_scheme="light", reduced_motion="reduce"
    )
    page = context.new_page()
    page.set_default_timeout(60_000)
    problems: list[str] = []
    _watch(page, problems)
    yield page, problems
    context.close()


def _watch(page: Any, problems: list[str]) -> None:
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "request",
        lambda asked: (
            None if asked.url.startswith(("http://127.0.0.1:", "data:", "blob:")) else problems.append(asked.url)
        ),
    )


@pytest.fixture
def visit(site: Site, tab: tuple[Any, list[str]]) -> Iterator[Visit]:
    """Show a model in the tab that all tests share. At the end: no error on its console, nothing asked of others."""
    page, problems = tab
    problems.clear()

    def show(model: str = "shapes", view: str = "") -> Any:
        address = f"model={model}" + (f"&{view}" if view else "")
        if page.url.startswith(site.url) and page.evaluate("window.explorer?.entry?.name ?? ''") == model:
            page.evaluate("address => explorer.open(address)", address)
        else:
            page.goto("about:blank")
            page.goto(f"{site.url}#{address}")
            ready(page)
        return page

    yield show
    assert not problems, problems


@pytest.fixture
def new_visit(site: Site, browser: Any) -> Iterator[Visit]:
    """A visitor of their own: another width, another scheme, touch, with motion."""
    problems: list[str] = []
    contexts = []

    def show(model: str = "shapes", view: str = "", width: int = 1280, before: str = "", **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        if before:
            page.add_init_script(before)
        _watch(page, problems)
        page.goto(f"{site.url}#model={model}" + (f"&{view}" if view else ""))
        ready(page)
        return page

    yield show
    for context in contexts:
        context.close()
    assert not problems, problems


def ready(page: Any) -> None:
    page.locator("#rest").wait_for()  # hidden until the model is there


@pytest.fixture(scope="session")
def screenshots() -> Path | None:
    """Where TAGGERNET_SCREENSHOTS asks pictures of the page to be kept."""
    named = os.environ.get("TAGGERNET_SCREENSHOTS")
    return Path(named) if named else None
