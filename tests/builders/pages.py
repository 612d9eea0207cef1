"""A page as a browser takes it: its elements, their attributes, and its words."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Reads a page, and stops where an element is not closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, f"not closed: {self._open}"

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self._open and self._open[-1] == tag, f"</{tag}> in {self._open}"
        self._open.pop()

    def handle_data(self, data):
        if "style" not in self._open:
            self.words += data

    @property
    def ids(self) -> list[str]:
        return [str(value) for name, value in self.attributes if name == "id"]
