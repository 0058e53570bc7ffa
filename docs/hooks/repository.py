"""What the site needs beside the Markdown: the README as its first page, every page in its navigation, and no links
that leave the site.

On a code host, links such as ../results/table1 lead to files of the repository. The site does not hold those, so they
become the file's path in code. Links of the README into docs/ are turned to the site's own pages.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FIRST = "index.md"
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\[]*)\]\((?P<target>[^)\s]+)\)")
IMAGE = re.compile(r"(?P<before>!\[[^\]]*\]\(|<img[^>]*\ssrc=\")docs/")


def on_config(config: Any) -> Any:
    """Pages of docs/ that the navigation forgets come at the end of their section, rather than nowhere."""
    named = set(re.findall(r"[\w/-]+\.md", str(config["nav"])))
    behind = next(section["Behind it"] for section in config["nav"] if "Behind it" in section)
    for path in sorted((ROOT / "docs").glob("*.md")):
        if path.name not in named:
            behind.append({path.stem.capitalize(): path.name})
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs with the text of each page."""
    source = page.file.src_uri
    if source == FIRST:
        markdown = IMAGE.sub(r"\g<before>", (ROOT / "README.md").read_text())
    folder = PurePosixPath() if source == FIRST else PurePosixPath("docs", source).parent
    return LINK.sub(lambda match: _link(match, folder, source), markdown)


def _link(match: re.Match[str], folder: PurePosixPath, source: str) -> str:
    text, target = match["text"], match["target"]
    if re.match(r"[a-z]+:|#|/", target):
        return match[0]
    path, _, anchor = target.partition("#")
    inside = PurePosixPath(normpath(str(folder / path)))
    if inside.parts[:1] != ("docs",):
        if not (ROOT / inside).exists():
            return match[0]  # mkdocs then says that it is broken
        shown = text.strip("`").rstrip("/")
        return f"`{inside}`" if shown in (str(inside), inside.name) else f"{text} (`{inside}`)"
    if source == FIRST:
        return f"[{text}]({inside.relative_to('docs')}{'#' + anchor if anchor else ''})"
    return match[0]
