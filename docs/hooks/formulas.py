"""Formulas ($...$ and $$...$$) become MathML when the site is built: browsers draw it without scripts or fonts.

A number and its spread, or its percent sign, stay on one line.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(
    r'<span class="arithmatex">\\\((?P<inline>.*?)\\\)</span>'
    r'|<div class="arithmatex">\s*\\\[(?P<block>.*?)\\\]\s*</div>',
    re.DOTALL,
)
TOGETHER = re.compile(r"(?<=\d) (?:± (?=\d)|%)")


def on_page_content(html: str, **_: Any) -> str:
    """Called by mkdocs with the HTML of each page."""
    return TOGETHER.sub(lambda found: found[0].replace(" ", "\u00a0"), FORMULA.sub(_mathml, html))


def _mathml(found: re.Match[str]) -> str:
    if found["inline"] is not None:
        return convert(unescape(found["inline"]))
    return convert(unescape(found["block"]), display="block")
