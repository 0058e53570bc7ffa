"""A page for each kind of model, served by a process of its own, and a real browser to visit it with."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from taggernet import Tagger, TaggerConfig, data
from taggernet.explorer.quiz import Contest
from taggernet.explorer.scenes import ShapeScenes
from taggernet.explorer.session import Explorer

# gradio starts threads and event loops whose warnings are not ours to mend: it stays out of the tests' process.
SERVER = """
import json, sys, torch
torch.set_num_threads(1)
from taggernet.explorer import launch
pages = [launch(folder, open_browser=False, block=False) for folder in sys.argv[1:]]
print(json.dumps([page.url for page in pages]), flush=True)
sys.stdin.read()
"""
SETTLED = """
quiet => new Promise(done => {
  const end = () => { watch.disconnect(); done() }
  let timer = setTimeout(end, quiet)
  const watch = new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(end, quiet) })
  watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true })
})
"""
QUIET_MS = 200


@dataclass(frozen=True)
class Served:
    """A page that runs, and the model it shows."""

    url: str
    model: Tagger


def _models() -> dict[str, Tagger]:
    """Untrained, but with weights large enough for their groups to differ."""
    torch.manual_seed(0)
    models = {
        "shapes": Tagger(TaggerConfig(shape=(10, 10), widths=(40, 20, 10), norm="layer", mean=0.28), groups=3),
        "textures": Tagger(TaggerConfig(shape=(28, 28), kind="real", widths=(40, 20, 10), classes=10)),
    }
    with torch.no_grad():
        for model in models.values():
            for weights in model.parameters():
                if weights is not model.w:  # the variance stays what it was
                    weights.add_(0.5 * torch.randn_like(weights))
    return models


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Served]]:
    """The pages by name; one process serves them until its standard input closes."""
    pytest.importorskip("gradio", reason="the page needs gradio: pip install 'taggernet[web]'")
    folder = tmp_path_factory.mktemp("models")
    models = _models()
    folders = [str(model.save(folder / name)) for name, model in models.items()]
    settings = {name: value for name, value in os.environ.items() if name != "TAGGERNET_DATA"}
    settings |= {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1",
        "XDG_CACHE_HOME": str(folder), "GRADIO_TEMP_DIR": str(folder / "gradio"), "no_proxy": "127.0.0.1,localhost",
    }  # fmt: skip
    log = folder / "server.log"
    with log.open("w") as errors:
        server = subprocess.Popen(
            [sys.executable, "-c", SERVER, *folders],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=settings, cwd=folder,
        )  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line, f"the server did not start:\n{log.read_text()}"
        urls = json.loads(line)
        yield {name: Served(url, model) for (name, model), url in zip(models.items(), urls, strict=True)}
        server.stdin.close()
        server.stdout.close()
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
    assert "Traceback" not in log.read_text(), log.read_text()


Visit = Callable[..., Any]
OpenTab = Callable[..., None]


@pytest.fixture(scope="session")
def open_tab() -> OpenTab:
    """Open a tab and wait until it is all there.

    gradio gives a control that has just appeared its first value once more: what a program enters within the same
    few milliseconds is lost. No visitor is as quick as that.
    """

    def act(page: Any, name: str, tap: bool = False) -> None:
        tab = page.get_by_role("tab", name=name)
        (tab.tap if tap else tab.click)()
        page.evaluate(SETTLED, QUIET_MS)

    return act


@pytest.fixture
def visit(served: dict[str, Served], browser: Any) -> Iterator[Visit]:
    """Open a page by name. At the end: no error on its console, and nothing asked of another machine."""
    problems: list[str] = []
    contexts = []

    def open_page(name: str, width: int = 1280, dark: bool = False, **options: Any) -> Any:
        scheme = "dark" if dark else "light"
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda asked: _check_address(asked.url, problems))
        page.goto(served[name].url)
        page.locator(".tn-stage").wait_for()
        page.evaluate(SETTLED, QUIET_MS)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not problems, problems


def _check_address(url: str, problems: list[str]) -> None:
    if not url.startswith(("http://127.0.0.1:", "data:", "blob:")):
        problems.append(f"asked elsewhere: {url}")


@pytest.fixture(scope="session")
def pixels() -> Callable[[Any], Any]:
    """The pixels of a picture on the page, as numbers from 0 to 255."""

    def read(image: Any) -> Any:
        content = image.get_attribute("src").partition("base64,")[2]
        return np.asarray(Image.open(io.BytesIO(base64.b64decode(content))).convert("RGB")).astype(int)

    return read


@pytest.fixture(scope="session")
def server_port(served: dict[str, Served]) -> int:
    return int(served["shapes"].url.rstrip("/").rpartition(":")[2])


@pytest.fixture(scope="session")
def screenshots() -> Path | None:
    """Where TAGGERNET_SCREENSHOTS asks pictures of the page to be kept."""
    named = os.environ.get("TAGGERNET_SCREENSHOTS")
    return Path(named) if named else None


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    torch.manual_seed(0)
    return Explorer(Tagger(TaggerConfig(shape=(10, 10), widths=(30, 20, 10), norm="layer")), ShapeScenes(10))


@pytest.fixture(scope="module")
def contest() -> Contest:
    images, labels = data.fixture_digits("test")
    torch.manual_seed(0)
    model = Tagger(TaggerConfig(shape=(28, 28), kind="real", widths=(30, 20, 10), classes=10))
    return Contest(data.texture_mnist(2, "test", 0, images=images, labels=labels, n=120), model)
