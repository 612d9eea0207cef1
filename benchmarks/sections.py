"""Sections of RESULTS.md that commands of their own write, and that `make bench` keeps."""

from __future__ import annotations

import re
from pathlib import Path

RESULTS = Path(__file__).parent / "RESULTS.md"


def put(name: str, text: str, page: Path = RESULTS) -> None:
    """Write a section, in place of the one of that name if there is one."""
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    section = f"<!-- {name} -->\n{text.strip()}\n<!-- end of {name} -->\n"
    rest = _of(name).sub("", old).rstrip("\n")
    page.write_text(f"{rest}\n\n{section}" if rest else section, encoding="utf-8")


def kept(page: Path = RESULTS) -> str:
    """All such sections of a page, as they are in it."""
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    return "".join(f"\n{match[0]}" for match in _of(r"[\w ]+?").finditer(old))


def _of(name: str) -> re.Pattern[str]:
    return re.compile(rf"<!-- ({name}) -->\n.*?<!-- end of \1 -->\n?", re.DOTALL)
