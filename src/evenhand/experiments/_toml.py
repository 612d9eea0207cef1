"""A TOML file, errors that name its lines, and a trial of all its points before anything runs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from evenhand.conventions import Conventions
from evenhand.errors import KEYS, EvenhandError, InputError
from evenhand.experiments._policies import is_own
from evenhand.experiments._worlds import Kind
from evenhand.experiments.model import Experiment, Point


class TomlFile:
    """A TOML file, and errors that name its lines."""

    def __init__(self, path: Path, above: Collection[str]) -> None:
        """`above` are the keys that belong above the first table."""
        self.path, self.above = path, above
        try:
            self.text = path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
        except UnicodeDecodeError as error:
            raise InputError(f"{path.name} is not text in UTF-8: {error}") from error
        try:
            self.data = tomllib.loads(self.text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path.name}: {error}") from error

    def refuse(self, key: str, what: str, about: str = "") -> NoReturn:
        """Raise an error with the line; `about` is a word in a value of several lines."""
        first, last = _lines_of(self.text, key)
        word = re.compile(rf"(?<![\w-]){re.escape(about)}(?![\w-])")
        lines = enumerate(self.text.split("\n")[first - 1 : last], start=first)
        line = next((number for number, text in lines if about and word.search(text)), first)
        place = f"{self.path.name}, line {line}" if line else self.path.name
        raise InputError(f"{place}: {key}{'' if what.startswith((':', '[')) else ' '}{what}")

    def table(self, key: str, kinds: Mapping[str, Kind]) -> dict[str, Any]:
        """A table of the file, by its name."""
        content: dict[str, Any] = self.data.get(key, {})
        return self.checked(f"{key}.", content, kinds)

    def checked(
        self, prefix: str, table: dict[str, Any], kinds: Mapping[str, Kind]
    ) -> dict[str, Any]:
        """`table` itself, once all its keys are known and hold values of the right kind."""
        for name, value in table.items():
            self.known(prefix + name, name, kinds)
            if not kinds[name].fits(value):
                self.refuse(prefix + name, f"is {value!r}; allowed is {kinds[name].words}")
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
        what = "is unknown" if is_key else f"has {name!r}{of}, which is unknown"
        self.refuse(key, f"{what}; {hint}allowed are {', '.join(names)}", about=name)

    def check(self, key: str, function: Callable[..., Any], *values: Any) -> Any:
        """`function(key, *values)`, whose InputError gets the line."""
        try:
            return function(key, *values)
        except InputError as error:
            self.refuse(key, error.told("file").removeprefix(f"{key} "))


def line_of(text: str, key: str) -> int:
    """The first line of a key such as "data.arms"; of its table if there is no such key; or 0.

    Up to the end of any statement, the first lines of a file are TOML themselves. So the parser
    shows where a key first appears.

    Example:
        >>> from evenhand.experiments._toml import line_of
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


def try_all(file: TomlFile, experiment: Experiment, reading: Conventions, home: str) -> None:
    """Make the worlds and policies of all points, and refuse the key of what fails."""

    def points() -> Iterator[Point]:
        try:
            yield from experiment.points(reading)
        except Exception as error:
            _blame(file, experiment, reading, home, _told(error))

    for point in points():
        for label, make in experiment.policies.items():
            try:
                make(
                    point.world.groups,
                    point.world.n_features,
                    horizon=point.horizon,
                    seed=0,
                    **point.settings,
                )
            except Exception as error:
                _blame(file, experiment, reading, "run", _told(error, is_own(make)), label)


def _told(error: Exception, own: bool = False) -> InputError:
    """An error in the words of the file. What is not the author's mistake is raised as it is.

    Args:
        error: what stopped a world or a policy from being made.
        own: whether the author wrote the code that failed.
    """
    if isinstance(error, InputError):
        return InputError(error.told("file"), parameter=error.parameter)
    if own or isinstance(error, (EvenhandError, OSError, ArithmeticError, MemoryError)):
        return InputError(f"{type(error).__name__}: {error}")
    raise error


def _blame(
    file: TomlFile,
    experiment: Experiment,
    reading: Conventions,
    home: str,
    error: InputError,
    label: str = "",
) -> NoReturn:
    """Refuse the key that an error is about: its parameter, or the column that it names."""
    text = error.message
    word = KEYS.get(error.parameter or "", error.parameter or "").partition("[")[0]
    own = getattr(experiment.policies.get(label), "keywords", {})
    for swept, key in ((experiment.sweep, "sweep"), (experiment.panels, "panels")):
        if swept and key in file.data and swept.own_name == word not in own:
            file.refuse(f"{key}.values", f": {text}")
    if word in experiment.multiples:
        file.refuse("sweep.multiples", f": {text}")
    special = file.data.get("under", {}).get(reading.name, {}).get(home, {})
    for key, table in ((f"under.{reading.name}.{home}", special), (home, file.data.get(home, {}))):
        named = re.match(r"(?:\w+: )?(?:column|feature) '(.+?)'", text)
        for name, value in table.items() if word not in own else ():
            columns = value if isinstance(value, (list, dict)) else [value]
            if name == word:
                rest = text.removeprefix(name)
                about = rest.startswith((" is ", " are ", " names ", ":"))
                file.refuse(f"{key}.{name}", rest.strip() if about else f": {text}")
            if home == "data" and named and named[1] in columns and word not in table:
                file.refuse(f"{key}.{name}", f": {text}", about=named[1])
    if label:
        file.refuse("policies", f"has {label!r}, which cannot be made: {text}", about=label)
    file.refuse(home, f"cannot be made: {text}")
