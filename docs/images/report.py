"""Take the screenshot of a report in the guide on own data: a small model of crossing bars, trained on the spot.

    python docs/images/report.py

Needs a Chromium on the PATH, and playwright.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

import taggernet as tn
from taggernet.training.report import REPORT

HERE = Path(__file__).parent


def bars(n: int = 4_000, size: int = 8) -> tn.data.Scenes:
    """One horizontal and one vertical bar per scene."""
    rng, every = np.random.default_rng(0), np.arange(n)
    x = np.zeros((n, size, size), np.uint8)
    x[every, rng.integers(0, size, n)] = 1
    x[every, :, rng.integers(0, size, n)] = 1
    return tn.data.Scenes.of(x)


def trained(folder: Path) -> Path:
    bars().save(folder / "bars.npz")
    config = tn.config_for(folder / "bars.npz")
    config = replace(
        config,
        groups=3,
        test_groups=3,
        model=replace(config.model, widths=(96, 48, 24), norm="layer"),
        optimiser=replace(config.optimiser, lr=5e-3, batch=50, updates=1_500, warmup=40),
        runtime=replace(config.runtime, evaluate_every=75, checkpoint_every=0, tensorboard=False),
    )
    tn.train(config, folder / "runs" / "bars")
    return folder / "runs" / "bars" / REPORT


def take(report: Path) -> None:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": 1000, "height": 880}, color_scheme="light").new_page()
        page.goto(report.as_uri())
        page.screenshot(path=HERE / "report.png")
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        take(trained(Path(place)))
