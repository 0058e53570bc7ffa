"""Links that leave docs/ lead to the repository, whose address is the environment variable REPOSITORY_URL.

On a code host, links such as ../results/table1 work as they are. The site does not hold those files: a link becomes the
file's address. Where no address is known, the path follows the text; in a table, which has no room, it is a tooltip.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\[]*)\]\((?P<target>[^)\s]+)\)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Called by mkdocs with the text of each page."""
    folder = PurePosixPath("docs", page.file.src_uri).parent
    return LINK.sub(lambda match: _link(match, folder, config["repo_url"]), markdown)


def _link(match: re.Match[str], folder: PurePosixPath, repository: str | None) -> str:
    text, target = match["text"], match["target"]
    if re.match(r"[a-z]+:|#|/", target):
        return match[0]
    inside = PurePosixPath(normpath(str(folder / target)))
    if inside.parts[:1] == ("docs",) or not (ROOT / inside).exists():
        return match[0]  # a page of the site, or a broken link, which mkdocs reports
    if repository:
        kind = "tree" if (ROOT / inside).is_dir() else "blob"
        return f"[{text}]({repository.rstrip('/')}/{kind}/main/{inside})"
    line = match.string[match.string.rfind("\n", 0, match.start()) + 1 : match.start()]
    if line.startswith("|"):
        return f'<abbr title="{inside}">{text}</abbr>'
    shown = text.strip("`").rstrip("/")
    return f"`{inside}`" if shown in (str(inside), inside.name) else f"{text} [`{inside}`]"
