"""Whether an experiment can be made at all, tried before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

from evenhand.conventions import Conventions
from evenhand.errors import InputError
from evenhand.experiments._toml import TomlFile
from evenhand.experiments.model import Experiment, Point


def try_all(file: TomlFile, experiment: Experiment, reading: Conventions, home: str) -> None:
    """Make the worlds and the policies of all points."""

    def points() -> Iterator[Point]:
        try:
            yield from experiment.points(reading)
        except Exception as error:
            _blame(file, experiment, reading, home, error)

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
                _blame(file, experiment, reading, "run", error, label)


def _blame(
    file: TomlFile,
    experiment: Experiment,
    reading: Conventions,
    home: str,
    error: Exception,
    label: str = "",
) -> NoReturn:
    """Refuse the key that an error is about: by the word it begins with, or the column it names."""
    text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    text = error.told("file") if isinstance(error, InputError) else text
    text = re.sub(r"^data is ", "file is ", text)
    text = re.sub(r'("[^"]*"): (?=["\d.])', r"\1 = ", text)  # hints, as this file writes them
    word = re.split(r"[^a-z_]", text, maxsplit=1)[0]
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
                rest = re.match(r"\w+((?: is | are |: | names ).*)", text, re.DOTALL)
                file.refuse(f"{key}.{name}", rest[1].strip() if rest else f": {text}")
            if home == "data" and named and named[1] in columns and word not in table:
                file.refuse(f"{key}.{name}", f": {text}", about=named[1])
    if label:
        file.refuse("policies", f"has {label!r}, which cannot be made: {text}", about=label)
    file.refuse(home, f"cannot be made: {text}")
