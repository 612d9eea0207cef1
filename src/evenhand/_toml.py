"""A TOML file, and errors that name its lines."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from evenhand.errors import InputError, as_given, in_language


class Kind(NamedTuple):
    """The values that a key of a file may hold, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]


class TomlFile:
    """A TOML file, and errors that name its lines."""

    def __init__(self, path: Path, above: Collection[str]) -> None:
        """`above` lists the keys that belong above the first table."""
        self.path, self.above = path, above
        try:
            self.text = path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            raise InputError(
                f"{path.name} is not text in UTF-8 (line {line:,}); save it in UTF-8"
            ) from error
        try:
            self.data = tomllib.loads(self.text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path.name}: {error}") from error

    def refuse(self, key: str, problem: str, about: str = "") -> NoReturn:
        """Raise an error that names the line; `about` is a word to look for in a long value."""
        first, last = _lines_of(self.text, key)
        word = re.compile(rf"(?<![\w-]){re.escape(about)}(?![\w-])")
        lines = enumerate(self.text.split("\n")[first - 1 : last], start=first)
        line = next((number for number, text in lines if about and word.search(text)), first)
        place = f"{self.path.name}, line {line}" if line else self.path.name
        raise InputError(f"{place}: {key}{'' if problem.startswith((':', '[')) else ' '}{problem}")

    def table(self, key: str, kinds: Mapping[str, Kind]) -> dict[str, Any]:
        """A table of the file, by its name."""
        content: dict[str, Any] = self.data.get(key, {})
        return self.checked(f"{key}.", content, kinds)

    def checked(
        self, prefix: str, table: dict[str, Any], kinds: Mapping[str, Kind]
    ) -> dict[str, Any]:
        """`table` itself, if all its keys are known and hold values of the right kind."""
        for name, value in table.items():
            self.known(prefix + name, name, kinds)
            if not kinds[name].fits(value):
                said = in_language(as_given(value), "file")
                self.refuse(prefix + name, f"is {said}; allowed is {kinds[name].words}")
        return table

    def known(self, key: str, name: str, allowed: Iterable[str], of: str = "") -> None:
        """Refuse a name that is not allowed, whether it is the key or in its value."""
        names = sorted(allowed)
        if name in names:
            return
        is_key = f".{key}".endswith(f".{name}")
        near = get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        if is_key and name in self.above:
            hint = "it belongs above the first [table]; "
        problem = "is unknown" if is_key else f"has {name!r}{of}, which is unknown"
        self.refuse(key, f"{problem}; {hint}allowed are {', '.join(names)}", about=name)

    def check(self, key: str, function: Callable[..., Any], *values: Any) -> Any:
        """`function(key, *values)`; an InputError that it raises gets the line."""
        try:
            return function(key, *values)
        except InputError as error:
            self.refuse(key, error.told("file").removeprefix(f"{key} "))


def line_of(text: str, key: str) -> int:
    """The first line of a key such as "data.arms"; of its table if there is no such key; or 0.

    The lines up to the end of any statement are valid TOML themselves. So the parser shows where a
    key first appears.

    Example:
        >>> from evenhand._toml import line_of
        >>> line_of('seed = 1\\n[data]  # people\\ngroup = "sex"', "data.group")
        3
    """
    return _lines_of(text, key)[0]


def _lines_of(text: str, key: str) -> tuple[int, int]:
    """The first and the last line of a key and its value."""
    lines, statements, first = text.split("\n"), [], 1
    for last in range(1, len(lines) + 1):
        try:
            statements.append((first, last, tomllib.loads("\n".join(lines[:last]))))
        except (ValueError, RecursionError):
            continue  # in the middle of a statement
        first = last + 1
    while key:
        begin, end, seen = 0, 0, None
        for first, last, data in statements:
            value = _value(data, key)
            if value is not None and value != seen:
                begin, end, seen = begin or first, last, value
        if begin:
            return begin, end
        key = key.rpartition(".")[0]
    return 0, 0


def _value(data: dict[str, Any], key: str) -> Any:
    """The value of a dotted key; names may have dots themselves."""
    if key in data:
        return data[key]
    inside = (
        _value(value, key.removeprefix(f"{name}."))
        for name, value in data.items()
        if isinstance(value, dict) and key.startswith(f"{name}.")
    )
    return next((value for value in inside if value is not None), None)
