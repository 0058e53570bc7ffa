"""Take the screenshot of the explorer in the README: the shipped Shapes model, one group removed.

    python docs/images/explorer.py [SCENE] [GROUP]

Needs a Chromium on the PATH, and playwright.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from taggernet.explorer import launch

HERE = Path(__file__).parent


def take(scene: str, group: int) -> None:
    page_of = launch("shapes", open_browser=False, block=False)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light").new_page()
        page.goto(page_of.url)
        page.locator(".tn-stage").wait_for()
        number = page.locator("#tn-number input[type=number]")
        number.fill(scene)
        number.press("Tab")
        page.get_by_text(f"test scene {scene}").wait_for()
        page.get_by_role("button", name=f"Group {group}").first.click()
        page.get_by_text("taken away").first.wait_for()
        page.wait_for_timeout(1000)
        page.screenshot(path=HERE / "explorer.png", full_page=True)
        browser.close()
    page_of.close()


if __name__ == "__main__":
    chosen = sys.argv[1:3] if len(sys.argv) > 2 else ["8", "1"]
    take(chosen[0], int(chosen[1]))
