"""What is in a page: its elements, its words, and whether it stands alone."""

from __future__ import annotations

from html.parser import HTMLParser

EMPTY = {"meta", "img", "line", "polyline", "circle", "rect", "br"}


class Page(HTMLParser):
    """Elements (tag, attributes) in order; raises where they are not nested properly."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert not self._open, f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"{tag} was never opened"
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def all(self, tag: str, name: str = "") -> list[dict[str, str]]:
        """The elements of this tag, and of this class if one is named."""
        return [of for t, of in self.elements if t == tag and (not name or name in of.get("class", "").split())]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    @property
    def addresses(self) -> list[str]:
        """Whatever the page refers to, but for pictures inside it."""
        found = [of[name] for _, of in self.elements for name in ("src", "href", "data") if name in of]
        return [address for address in found if not address.startswith("data:image/png;base64,")]
