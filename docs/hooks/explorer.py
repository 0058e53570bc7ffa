"""Put the explorer beside the documentation, at explore/: the same files that ``taggernet explore`` serves.

Links to its folder become links to its page, as opened from the disk a folder is only listed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.utils import get_relative_url

from taggernet.explorer.bundle import bundle

FOLDER = "explore"
LINK = re.compile(rf'(?<=href=")(?:\.\./)*{FOLDER}/(?=["#])')


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Called by mkdocs with the HTML of each page."""
    return LINK.sub(get_relative_url(f"{FOLDER}/index.html", page.url), html)


def on_post_build(config: Any, **_: Any) -> None:
    """Called by mkdocs when all pages are written."""
    bundle("shapes").write(Path(config["site_dir"]) / FOLDER)
