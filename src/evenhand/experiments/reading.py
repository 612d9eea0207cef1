"""Reading an experiment from its TOML file. Errors name the file, the line and the key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd

from evenhand import _checks, datasets
from evenhand.conventions import BY_NAME, Conventions
from evenhand.experiments.experiment import (
    FORMATS,
    HORIZON,
    TABLES,
    Experiment,
    Output,
    Own,
    Point,
    Published,
    Swept,
    policy_from,
    settings_of,
    values_of,
)
from evenhand.experiments.places import (
    LIST,
    NUMBER,
    NUMBERS_BY_NAME,
    SECTION,
    SOURCES,
    SYNTHETIC,
    TABLE,
    TEXT,
    TEXTS,
    WHOLE,
    Kind,
)
from evenhand.policies.base import POLICIES, Policy
from evenhand.simulation.run import PolicyMaker

CHARTS = ("share and regret", "rate")
AXES = {
    "horizon": "number of rounds T",
    "delta": "delta",
    "n_arms": "number of arms n",
    "n_features": "number of features d",
}
VALUES = Kind(
    "a list of different numbers, or { from = 20, to = 400, step = 20 }",
    lambda value: bool(values_of(value)),
)
TOP = {
    "title": TEXT,
    "policies": LIST,
    "replications": WHOLE,
    "seed": WHOLE,
    "conventions": TEXTS,
    "axis": TEXT,
    "chart": TEXT,
    "in_paper": TEXT,
    "note": TEXT,
    "order": WHOLE,
    "sweep": SECTION,
    "panels": SECTION,
    "world": SECTION,
    "data": SECTION,
    "run": SECTION,
    "under": SECTION,
    "output": SECTION,
    "published": SECTION,
}
OVERLAY = ("experiment", "x", "policy", "metric", "value")


class _File:
    """A TOML file, and errors that say where in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.text = path.read_text(encoding="utf-8-sig")  # some editors begin with a mark
        except UnicodeDecodeError as error:
            raise ValueError(f"{path.name} is not a text in UTF-8: {error}") from error
        try:
            self.data = tomllib.loads(self.text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path.name}: {error}") from error

    def refuse(self, key: str, what: str, about: str = "") -> NoReturn:
        """`about` is a word of a value that may go over several lines."""
        first, last = _lines_of(self.text, key)
        word = re.compile(rf"(?<![\w-]){re.escape(about)}(?![\w-])")
        lines = enumerate(self.text.split("\n")[first - 1 : last], start=first)
        line = next((number for number, text in lines if about and word.search(text)), first)
        place = f"{self.path.name}, line {line}" if line else self.path.name
        raise ValueError(f"{place}: {key}{'' if what.startswith((':', '[')) else ' '}{what}")

    def table(self, key: str, kinds: Mapping[str, Kind]) -> dict[str, Any]:
        """A table of the file, by its name."""
        found: dict[str, Any] = self.data.get(key, {})
        return self.checked(f"{key}.", found, kinds)

    def checked(
        self, prefix: str, table: dict[str, Any], kinds: Mapping[str, Kind]
    ) -> dict[str, Any]:
        """`table` itself, whose keys are all known and hold what they may."""
        for name, value in table.items():
            self.known(prefix + name, name, kinds)
            if not kinds[name].fits(value):
                self.refuse(prefix + name, f"is {value!r}; allowed is {kinds[name].words}")
        return table

    def known(self, key: str, name: str, allowed: Iterable[str], of: str = "") -> None:
        """Refuse a name that is not allowed, whether it is the key or stands in its value."""
        names = sorted(allowed)
        if name in names:
            return
        is_key = f".{key}".endswith(f".{name}")
        near = get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        if is_key and TOP.get(name, SECTION) is not SECTION:
            hint = "it belongs above the first [table]; "
        what = "is unknown" if is_key else f"has {name!r}{of}, which is unknown"
        self.refuse(key, f"{what}; {hint}allowed are {', '.join(names)}", about=name)

    def check(self, key: str, function: Callable[..., Any], *values: Any) -> Any:
        """`function(key, *values)`, whose ValueError gets the line."""
        try:
            return function(key, *values)
        except ValueError as error:
            self.refuse(key, str(error).removeprefix(f"{key} "))


def line_of(text: str, key: str) -> int:
    """The line on which a key such as "data.arms" begins; of its table if it is not there, or 0.

    The first lines of a file are TOML themselves wherever a statement ends, so a parser tells where
    a key comes in.

    Example:
        >>> from evenhand.experiments.reading import line_of
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
    """What a dotted key holds; names may have dots themselves."""
    if key in data:
        return data[key]
    inside = (
        _value(value, key.removeprefix(f"{name}."))
        for name, value in data.items()
        if isinstance(value, dict) and key.startswith(f"{name}.")
    )
    return next((found for found in inside if found is not None), None)


def read_experiment(path: Path) -> Experiment:
    """Read an experiment from its file and check all that can be checked without running it.

    Worlds are made and policies tried at every point, so a mistake is told before anything runs.
    """
    file = _File(path)
    file.checked("", file.data, TOP)
    home = "data" if "data" in file.data else "world"
    place = _place(file, home)
    policies = _policies(file, path.parent)
    run = _run(file, "run.", file.data.get("run", {}), policies)
    parameters = _parameters(home, policies)
    sweep = _sweep(file, run, parameters)
    conventions = tuple(file.data.get("conventions", ("PAPER",)))
    for name in conventions:
        file.known("conventions", name, BY_NAME)
    if len(set(conventions)) < max(1, len(conventions)):
        file.refuse("conventions", f"is {list(conventions)}; allowed is each once, at least one")
    experiment = Experiment(
        name=path.stem,
        title=file.data.get("title", path.stem),
        folder=path.parent,
        policies=policies,
        replications=file.check("replications", _checks.whole, file.data.get("replications", 80)),
        seed=file.check("seed", _checks.whole, file.data.get("seed", 1), 0),
        sweep=sweep,
        multiples=_multiples(file, home),
        panels=_panels(file, sweep, parameters),
        place=place,
        run=run,
        under=_under(file, home, policies),
        conventions=conventions,
        axis=file.data.get("axis", AXES.get(sweep.parameter, sweep.parameter.replace("_", " "))),
        chart=file.check("chart", _checks.one_of, file.data.get("chart", CHARTS[0]), CHARTS),
        output=_output(file),
        published=_published(file),
        in_paper=file.data.get("in_paper", ""),
        note=file.data.get("note", ""),
        order=int(file.data.get("order", 0)),
    )
    if experiment.chart == "rate":
        known = home == "world" or "true_reward" in place
        if not known or sweep.parameter != HORIZON or "panels" in file.data:
            file.refuse("chart", "is 'rate', which needs true rewards and a sweep of the horizon")
    for reading in experiment.readings().values():
        _try(file, experiment, reading, home)
    return experiment


def _place(file: _File, home: str) -> dict[str, Any]:
    if home == "world":
        return file.table("world", SYNTHETIC)
    if "world" in file.data:
        file.refuse("data", "and [world] are both there; keep one of them")
    data = file.table("data", {**TABLE, **SOURCES})
    if len(set(data) & set(SOURCES)) != 1:
        file.refuse("data", 'needs either file = "people.csv" or dataset = "compas"')
    for name in ("group", "reward"):
        if name not in data:
            file.refuse("data", f"lacks {name}, the name of a column")
    for name, value in data.items():
        if value == "?" or (isinstance(value, dict) and "?" in value):
            file.refuse(f"data.{name}", "is still a question mark; fill in the name of a column")
    if "dataset" in data:
        file.known("data.dataset", data["dataset"], datasets.names())
    elif not (file.path.parent / data["file"]).is_file():
        folder = file.path.parent.resolve()
        file.refuse("data.file", f"is {data['file']!r}, but there is no such file in {folder}")
    return data


def _policies(file: _File, folder: Path) -> dict[str, PolicyMaker]:
    """By label: a class, or one with settings of its own."""
    makers: dict[str, PolicyMaker] = {}
    for entry in file.data.get("policies", ["TopInterval", "GroupFairTopInterval"]):
        settings = dict(entry) if isinstance(entry, dict) else {"policy": entry}
        name = settings.pop("policy", None)
        if not isinstance(name, str):
            file.refuse("policies", f"has {entry!r}; allowed is a name or a table with `policy`")
        kind = _policy(file, name, folder)
        label = settings.pop("label", kind.__name__)
        if not isinstance(label, str) or not label.strip():
            file.refuse("policies", f"has the label {label!r}; allowed is a text", about="label")
        if label in makers:
            file.refuse("policies", f"has {label!r} twice; give one of them a label of its own")
        for setting in settings:
            file.known("policies", setting, settings_of(kind), of=f" for {label}")
        makers[label] = Own(kind, **settings) if settings else kind
    if not makers:
        file.refuse("policies", "are none; name at least one")
    return makers


def _policy(file: _File, name: str, folder: Path) -> type[Policy]:
    """A policy by its name, or a class of the user's as "file.py:Class"."""
    source, _, own = name.rpartition(":")
    if not source and not name.endswith(".py"):
        file.known("policies", name, POLICIES)
        return POLICIES[name]
    if not source or not own or Path(source).suffix != ".py":
        file.refuse("policies", f'has {name!r}; allowed is "file.py:Class"', about=name)
    try:
        return policy_from(folder / source, own)
    except ValueError as error:
        file.refuse("policies", f"has {name!r}, but {error}", about=name)


def _settings(make: PolicyMaker) -> set[str]:
    return settings_of(getattr(make, "func", make))  # type: ignore[arg-type]


def _run(
    file: _File, prefix: str, table: dict[str, Any], policies: Mapping[str, PolicyMaker]
) -> dict[str, Any]:
    """Settings that every policy has, and the horizon."""
    known = {label: _settings(make) for label, make in policies.items()}
    for name in table:
        lacking = [label for label, settings in known.items() if name not in settings]
        if name == HORIZON:
            file.check(prefix + name, _checks.whole, table[name])
        elif lacking and len(lacking) < len(known):
            file.refuse(
                prefix + name,
                f"is no setting of {', '.join(lacking)}; give it to the policy that has it: "
                f'policies = [{{ policy = "...", {name} = ... }}]',
            )
        elif lacking:
            file.known(prefix + name, name, {HORIZON, *set.intersection(*known.values())})
    return dict(table)


def _parameters(home: str, policies: Mapping[str, PolicyMaker]) -> set[str]:
    """What can be swept: the horizon, settings of all policies, numbers of the world."""
    settings = set.intersection(*(_settings(make) for make in policies.values()))
    kinds = TABLE if home == "data" else SYNTHETIC
    numbers = {name for name, kind in kinds.items() if kind in (NUMBER, WHOLE)}
    both = {f"{where}.{name}" for name in settings & numbers for where in ("run", home)}
    return settings | numbers | both | {HORIZON}


def _swept(file: _File, key: str, kinds: dict[str, Kind], parameters: set[str]) -> Swept:
    table = file.table(key, {"parameter": TEXT, "values": VALUES, **kinds})
    for name in ("parameter", "values"):
        if name not in table:
            file.refuse(key, f"lacks {name}")
    file.known(f"{key}.parameter", table["parameter"], parameters)
    return Swept(table["parameter"], values_of(table["values"]))


def _sweep(file: _File, run: dict[str, Any], parameters: set[str]) -> Swept:
    """What is on the horizontal axis; the horizon alone where nothing is swept."""
    if "sweep" in file.data:
        sweep = _swept(file, "sweep", {"multiples": NUMBERS_BY_NAME}, parameters)
        in_panels = file.data.get("panels", {}).get("parameter") == HORIZON
        if HORIZON not in run and sweep.parameter != HORIZON and not in_panels:
            file.refuse("run", "lacks horizon, the number of rounds")
        return sweep
    if HORIZON not in run:
        file.refuse("run", "lacks horizon, the number of rounds; or sweep it with [sweep]")
    return Swept(HORIZON, (run[HORIZON],))


def _multiples(file: _File, home: str) -> dict[str, float]:
    """Whole numbers of a made-up world that go with the swept value."""
    found: dict[str, float] = file.data.get("sweep", {}).get("multiples", {})
    kinds = SYNTHETIC if home == "world" else {}
    for name in found:
        whole = [one for one, kind in kinds.items() if kind is WHOLE]
        file.known(f"sweep.multiples.{name}", name, whole)
    return found


def _panels(file: _File, sweep: Swept, parameters: set[str]) -> Swept | None:
    if "panels" not in file.data:
        return None
    panels = _swept(file, "panels", {}, parameters)
    if panels.parameter == sweep.parameter:
        file.refuse("panels.parameter", f"is {panels.parameter!r}, which is swept already")
    return panels


def _under(file: _File, home: str, policies: Mapping[str, PolicyMaker]) -> dict[str, Any]:
    """What differs by convention."""
    found = {}
    for name, tables in file.table("under", dict.fromkeys(BY_NAME, SECTION)).items():
        prefix = f"under.{name}."
        file.checked(prefix, tables, {home: SECTION, "run": SECTION})
        kinds = TABLE if home == "data" else SYNTHETIC
        place = file.checked(f"{prefix}{home}.", tables.get(home, {}), kinds)
        run = _run(file, f"{prefix}run.", tables.get("run", {}), policies)
        found[name] = {"place": place, "run": run}
    return found


def _output(file: _File) -> Output:
    table = file.table("output", {"folder": TEXT, "figures": TEXTS, "tables": TEXTS})
    figures = tuple(table.get("figures", FORMATS))
    tables = tuple(table.get("tables", TABLES))
    for key, given, allowed in (("figures", figures, FORMATS), ("tables", tables, TABLES)):
        for one in given:
            file.known(f"output.{key}", one, allowed)
    return Output(table.get("folder", ""), figures, tables)


def _published(file: _File) -> Published | None:
    table = file.table("published", {"file": TEXT, "under": TEXT})
    if "published" not in file.data:
        return None
    path = file.path.parent / table.get("file", "")
    if set(table) != {"file", "under"} or not path.is_file():
        file.refuse("published", "needs `file`, a CSV file that is there, and `under`, a reading")
    file.known("published.under", table["under"], BY_NAME)
    try:
        columns = set(pd.read_csv(path, comment="#", nrows=0).columns)
    except ValueError as error:
        file.refuse("published.file", f"cannot be read: {error}")
    if not columns >= set(OVERLAY):
        file.refuse("published.file", f"needs the columns {', '.join(OVERLAY)}")
    return Published(table["file"], table["under"])


def _try(file: _File, experiment: Experiment, reading: Conventions, home: str) -> None:
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
    file: _File,
    experiment: Experiment,
    reading: Conventions,
    home: str,
    error: Exception,
    label: str = "",
) -> NoReturn:
    """Refuse the key that an error is about: by the word it begins with, or the column it names."""
    text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
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
        named = re.match(r"(?:\w+: )?column '(.+?)'", text)
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
