"""A page as PDF: the same words, tables and pictures, with nothing folded.

The page is read back as a tree of elements, and `page.typ` sets the tree. So a section that is
added to a page is in its PDF as well, and no text is ever taken for markup: it is passed as data.
"""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any

from evenhand.errors import MissingExtraError

SVG = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
VOID = {"meta", "br", "hr", "link", "img", "input"}
UNSEEN = {"style", "script", "title"}
# What holds blocks; blanks between blocks come from the template, and are not content.
HOLDERS = {"body", "header", "main", "section", "footer", "div", "details", "figure", "ul", "ol"}
# A word this long, such as a checksum, may be broken in a table: it would run over its neighbour.
LONG = re.compile(r"\S{25,}")
PIECE = 16
BREAK = "\u200b"  # a space of no width

Node = dict[str, Any]


def to_pdf(page: str) -> bytes:
    """A page of `render` as PDF, on A4. Needs the extra `pdf`.

    Args:
        page: the whole page, as HTML.

    Example:
        >>> from evenhand._html import render
        >>> from evenhand._html.pdf import to_pdf
        >>> to_pdf(render("base.html", title="Loans"))[:5]
        b'%PDF-'
    """
    try:
        import typst
    except ImportError as error:
        raise MissingExtraError("PDF needs typst: pip install 'evenhand[pdf]'") from error
    script = (files(__package__) / "page.typ").read_bytes()
    pdf: bytes = typst.compile(script, sys_inputs={"page": json.dumps(content_of(page))})
    return pdf


def content_of(page: str) -> dict[str, Any]:
    """The title of a page, and its body as a tree.

    An element has its `tag`, its `class` and its `kids`, which are elements and texts; a picture
    has its `svg`, and a table `numbers` (which columns hold some), `head`, `rows` and `caption`.

    Example:
        >>> from evenhand._html import render
        >>> from evenhand._html.pdf import content_of
        >>> content = content_of(render("base.html", title="Loans & more"))
        >>> content["title"], content["body"][0]["kids"][0]["kids"]
        ('Loans & more, by evenhand', ['Loans & more'])
    """
    pictures = SVG.findall(page)
    tree = _Tree()
    tree.feed(SVG.sub("<svg></svg>", page))
    tree.close()
    rest = iter(pictures)
    title = " ".join("".join(_texts(_first(tree.root, "title"))).split())
    body = _first(tree.root, "body")
    return {"title": title, "body": _plain(body, rest)["kids"]}


class _Tree(HTMLParser):
    """All elements of a page, in the order in which they are opened and closed."""

    def __init__(self) -> None:
        super().__init__()
        self.root: Node = {"tag": "", "class": "", "kids": []}
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = {"tag": tag, "class": dict(attrs).get("class") or "", "kids": []}
        self._open[-1]["kids"].append(node)
        if tag not in VOID:
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        if len(self._open) > 1 and self._open[-1]["tag"] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1]["kids"].append(re.sub(r"[ \t\r\n]+", " ", data))


def _first(node: Node, tag: str) -> Node:
    """The first element with this tag, in the order of the page."""
    return next(_all(node, tag), {"tag": tag, "class": "", "kids": []})


def _all(node: Node, *tags: str) -> Any:
    for kid in node["kids"]:
        if isinstance(kid, dict):
            if kid["tag"] in tags:
                yield kid
            yield from _all(kid, *tags)


def _texts(node: Node) -> list[str]:
    return [
        text for kid in node["kids"] for text in ([kid] if isinstance(kid, str) else _texts(kid))
    ]


def _plain(node: Any, pictures: Any) -> Any:
    """An element as `page.typ` takes it."""
    if isinstance(node, str):
        return node
    if node["tag"] == "svg":
        return {"tag": "svg", "svg": next(pictures)}
    if node["tag"] == "table":
        return _table(node, pictures)
    kids = [_plain(kid, pictures) for kid in node["kids"] if _is_seen(kid, node["tag"])]
    return {**node, "kids": kids}


def _is_seen(kid: Any, within: str) -> bool:
    if isinstance(kid, str):
        return bool(kid.strip()) or within not in HOLDERS
    return kid["tag"] not in UNSEEN


def _table(node: Node, pictures: Any) -> Node:
    lines = [list(_all(line, "th", "td")) for line in _all(node, "tr")]
    head = list(_all(_first(_first(node, "thead"), "tr"), "th", "td"))
    rows = lines[1:] if head else lines
    width = max(map(len, lines), default=0)
    numbers = ["number" in cell["class"] for cell in (head or (rows[0] if rows else []))]
    return {
        "tag": "table",
        "class": node["class"],
        "caption": _plain(_first(node, "caption"), pictures)["kids"],
        "numbers": numbers + [False] * (width - len(numbers)),
        "head": [_cell(cell, pictures) for cell in head],
        "rows": [[_cell(cell, pictures) for cell in row] for row in rows],
    }


def _cell(node: Node, pictures: Any) -> Node:
    cell: Node = _plain(node, pictures)
    return {**cell, "kids": [_breakable(kid) for kid in cell["kids"]]}


def _breakable(kid: Any) -> Any:
    if isinstance(kid, str):
        return LONG.sub(lambda word: BREAK.join(re.findall(f".{{1,{PIECE}}}", word[0])), kid)
    return {**kid, "kids": [_breakable(inner) for inner in kid["kids"]]} if "kids" in kid else kid
