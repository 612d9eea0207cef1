"""Data cards: what a set is, what is wrong with it, and what its traps are. Each is a TOML file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from textwrap import TextWrapper
from typing import Any

from evenhand import _checks
from evenhand.datasets._checked_files import NAMES

LONGEST = 30  # more features than this are not listed in a text


@dataclass(frozen=True)
class Card:
    """A data card. `print(card)` shows it; the columns it names are those of `load`.

    Args:
        name: What `load` calls the set.
        title: What people call it.
        what: What it is.
        source: Where it comes from.
        licence: What is known about it.
        citation: What to cite.
        rows: How many there are.
        columns: How many there are, as loaded.
        row: What a row is.
        attribute: The column that holds the group.
        sensitive: The group that is treated as sensitive.
        arms: How rows are split into arms.
        reward: The column that is the reward.
        features: The columns that are the context.
        choice: Who chose this reward, these groups and features.
        problems: What is wrong with it.
        traps: What goes wrong if you are not careful.

    Example:
        >>> import evenhand as eh
        >>> card = eh.datasets.card("student")
        >>> card.attribute, card.sensitive, card.reward, len(card.features)
        ('sex', 'F', 'G3', 29)
    """

    name: str
    title: str
    what: str
    source: str
    licence: str
    citation: str
    rows: int
    columns: int
    row: str
    attribute: str
    sensitive: str
    arms: str
    reward: str
    features: tuple[str, ...]
    choice: str
    problems: tuple[str, ...]
    traps: tuple[str, ...]

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, width: int = 80) -> str:
        """The card as plain text.

        Args:
            width: Characters in a line.

        Example:
            >>> import evenhand as eh
            >>> print(eh.datasets.card("mortgage").to_text(60).splitlines()[0])
            Mortgage applications, Boston 1990
        """
        lines = [self.title, "=" * len(self.title), "", *_wrapped(self.what, width), ""]
        for label, text in self._facts():
            lines += _wrapped(text, width, first=f"{label}: ", rest="  ")
        for heading, points in self._warnings():
            lines += ["", heading, "-" * len(heading)]
            for point in points:
                lines += _wrapped(point, width, first="- ", rest="  ")
        return "\n".join(lines) + "\n"

    def to_markdown(self, level: int = 2) -> str:
        """The card as Markdown.

        Args:
            level: Of its heading.

        Example:
            >>> import evenhand as eh
            >>> eh.datasets.card("mortgage").to_markdown(level=3).splitlines()[0]
            '### Mortgage applications, Boston 1990'
        """
        mark = "#" * _checks.whole("level", level)
        parts = [f"{mark} {self.title}", self.what]
        parts.append("\n".join(f"- **{label}**: {text}" for label, text in self._facts()))
        for heading, points in self._warnings():
            parts += [f"{mark}# {heading}", "\n".join(f"- {point}" for point in points)]
        return "\n\n".join(parts) + "\n"

    def _facts(self) -> list[tuple[str, str]]:
        shown = self.features if len(self.features) <= LONGEST else self.features[:3]
        left = len(self.features) - len(shown)
        more = f" and {left} more (all are in card.features)" if left else ""
        return [
            ("Source", self.source),
            ("Licence", self.licence),
            ("Cite", self.citation),
            ("Size", f"{self.rows:,} rows x {self.columns} columns"),
            ("A row", self.row),
            ("Sensitive", f"{self.attribute} = {self.sensitive}"),
            ("Arms", self.arms),
            ("Reward", self.reward),
            ("Features", f"{len(self.features)}: {', '.join(shown)}{more}"),
            ("Chosen by", self.choice),
        ]

    def _warnings(self) -> list[tuple[str, tuple[str, ...]]]:
        return [("What is wrong with it", self.problems), ("Traps", self.traps)]


def card(name: str) -> Card:
    """The data card of a set.

    Args:
        name: One of `names()`.

    Example:
        >>> import evenhand as eh
        >>> eh.datasets.card("compas").rows
        18316
    """
    return _read(_checks.one_of("name", name, NAMES))


@cache
def _read(name: str) -> Card:
    path = files("evenhand") / "datasets" / "descriptions" / f"{name}.toml"
    described: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    features = tuple(described.pop("features"))  # names of columns, as they are
    return Card(name=name, features=features, **{key: _clean(described[key]) for key in described})


def _clean(value: Any) -> Any:
    """Texts without the line breaks and indents of the file."""
    if isinstance(value, list):
        return tuple(_clean(part) for part in value)
    return " ".join(value.split()) if isinstance(value, str) else value


def _wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    wrapper = TextWrapper(
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    lines = wrapper.wrap(text.replace(" %", "\u00a0%"))  # a number keeps its unit
    return [line.replace("\u00a0", " ") for line in lines]
