"""Take the screenshot of the explorer in the README: the shipped Shapes model, one element pointed at.

    python docs/images/explorer.py [ADDRESS]

ADDRESS is what a link to a scene has behind the '#'. Needs a Chromium on the PATH, and playwright.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from taggernet.explorer import launch

HERE = Path(__file__).parent
SCENE = "model=shapes&scene=41"


def take(address: str) -> None:
    served = launch("shapes", open_browser=False, block=False)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": 1180, "height": 1000}, color_scheme="light").new_page()
        page.goto(f"{served.url}#{address}")
        page.locator("#rest").wait_for()
        page.locator("#output").hover(position={"x": 190, "y": 205})
        page.wait_for_timeout(1000)
        bottom = page.locator("#groups").bounding_box()
        assert bottom is not None
        height = bottom["y"] + bottom["height"] + 30
        page.screenshot(
            path=HERE / "explorer.png", full_page=True, clip={"x": 0, "y": 0, "width": 1180, "height": height}
        )
        browser.close()
    served.close()


if __name__ == "__main__":
    take(sys.argv[1] if len(sys.argv) > 1 else SCENE)
