"""What every test runs under: no display, no network, checked array shapes, reproducible examples."""

from __future__ import annotations

import os
import runpy
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jaxtyping
import matplotlib
import pytest
import torch
from matplotlib.figure import Figure

matplotlib.use("Agg")

# No test passes only where a server happens to answer: see offline/sitecustomize.py. By its path, as there may be
# another module of that name; child processes find it themselves.
OFFLINE = Path(__file__).parent / "offline"
runpy.run_path(str(OFFLINE / "sitecustomize.py"))
sys.path.insert(0, str(OFFLINE))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(OFFLINE), os.environ.get("PYTHONPATH", "")]))

# The models here are small: on a busy machine threads that wait for each other make them far slower than one.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"  # of child processes

soak = os.environ.get("TAGGERNET_SOAK") == "1"
# A machine with a GPU may have neither hypothesis nor beartype; its tests, those marked cuda, need neither.
if find_spec("hypothesis") is not None:
    from hypothesis import HealthCheck, settings

    # derandomize: a failure seen in CI is the failure seen at home. The soak profile looks further.
    settings.register_profile(
        "ci",
        derandomize=True,
        deadline=None,
        max_examples=50,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    settings.register_profile("soak", settings.get_profile("ci"), derandomize=False, max_examples=1000)
    settings.load_profile(os.environ.get("TAGGERNET_HYPOTHESIS_PROFILE", "soak" if soak else "ci"))

# Must come before the first import of taggernet. Off where torch.compile is tested, which cannot trace it.
if os.environ.get("TAGGERNET_NO_TYPECHECK") != "1" and find_spec("beartype") is not None:
    jaxtyping.install_import_hook("taggernet", "beartype.beartype")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("cuda") and not torch.cuda.is_available():
        pytest.skip("there is no CUDA here: make test-gpu, on a machine with a GPU")


@contextmanager
def _without_typecheck() -> Iterator[None]:
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture
def without_typecheck() -> Iterator[None]:
    """Call as a user does: beartype would otherwise refuse bad input before our own sentence is raised."""
    with _without_typecheck():
        yield


@pytest.fixture(scope="session")
def unchecked() -> Callable[[], AbstractContextManager[None]]:
    """The same for a part of a fixture that several tests share."""
    return _without_typecheck


@pytest.fixture(autouse=True)
def checked_in_the_first_update(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Shapes are the same in every update of a run: checked in all of them, training would take three times as long."""
    from taggernet.training.step import Update

    once, before = Update.once, jaxtyping.config.jaxtyping_disable

    def once_checked(self: Update) -> None:
        once(self)
        jaxtyping.config.update("jaxtyping_disable", True)

    monkeypatch.setattr(Update, "once", once_checked)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that were written, at a resolution that takes little time."""
    figures: list[Figure] = []

    def keep(self: Figure, path: Any, **options: Any) -> None:
        figures.append(self)
        original(self, path, **options)

    original = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", keep)
    monkeypatch.setattr("taggernet.viz.layout.DPI", 60)
    return figures


BROWSER = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium for all tests of a process: playwright cannot be started twice."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium was found: install Debian's chromium package, for example")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=chromium, args=BROWSER)
        yield opened
        opened.close()
