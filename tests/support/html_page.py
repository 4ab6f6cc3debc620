"""A page that the runtime wrote, as a browser would read it."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "img", "br", "input"}


class Page(HTMLParser):
    """Checks that elements nest, and gathers them.

    Attributes:
        tags: every element's name and attributes. text: everything that is no script. scripts: what is.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.scripts = "", list[str]()
        self._open: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script":
            self.scripts.append(data)
        else:
            self.text += data

    def count(self, tag: str, css_class: str) -> int:
        return sum(name == tag and css_class in (attrs.get("class") or "").split() for name, attrs in self.tags)
