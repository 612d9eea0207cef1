"""A trial of all points of an experiment file before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

from evenhand._setting_names import KEYS
from evenhand._toml import TomlFile
from evenhand.conventions import Conventions
from evenhand.errors import EvenhandError, InputError, is_outside
from evenhand.experiments._user_policies import is_own
from evenhand.experiments._worlds import SOURCES
from evenhand.experiments.model import Experiment, Point


def try_all(file: TomlFile, experiment: Experiment, reading: Conventions, home: str) -> None:
    """Make the worlds and policies of all points; if one fails, refuse the key that it is about."""

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
    """An error in the words of the file. One that is not the author's mistake is raised as it is.

    Args:
        error: what stopped a world or a policy from being made.
        own: whether the author wrote the code that failed.
    """
    if isinstance(error, InputError):
        return InputError(error.told("file"), parameter=error.parameter)
    outside = isinstance(error, OSError) and is_outside(error)
    if own or outside or isinstance(error, (EvenhandError, MemoryError)):
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
                about = rest.startswith((" is ", " are ", " has ", " names ", ":"))
                column = named[1] if named else ""
                file.refuse(f"{key}.{name}", rest.strip() if about else f": {text}", column)
            if home == "data" and named and named[1] in columns and word not in table:
                file.refuse(f"{key}.{name}", f": {text}", about=named[1])
    if label:
        file.refuse("policies", f"has {label!r}, which cannot be made: {text}", about=label)
    if home == "data" and not text.startswith(f"{word} is missing"):  # it is about the table
        source = next(name for name in SOURCES if name in file.data[home])
        file.refuse(f"data.{source}", f": {text}")
    file.refuse(home, f"cannot be made: {text}")
