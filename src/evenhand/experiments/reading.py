"""Reading an experiment from its TOML file. Errors name the file, the line and the key."""

from __future__ import annotations

import inspect
import sys
import tomllib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from evenhand import _checks
from evenhand.conventions import BY_NAME
from evenhand.experiments.experiment import (
    FORMATS,
    HORIZON,
    TABLES,
    Experiment,
    Output,
    Published,
    Swept,
)
from evenhand.experiments.places import SOURCES, SYNTHETIC, TABLE
from evenhand.policies.base import POLICIES, Policy
from evenhand.simulation.run import PolicyMaker

CHARTS = ("share and regret", "rate")
AXES = {
    "horizon": "number of rounds T",
    "delta": "delta",
    "n_arms": "number of arms n",
    "n_features": "number of features d",
}
TOP = {
    "title": str,
    "policies": list,
    "replications": int,
    "seed": int,
    "conventions": list,
    "axis": str,
    "chart": str,
    "in_paper": str,
    "note": str,
    "order": int,
    "sweep": dict,
    "panels": dict,
    "world": dict,
    "data": dict,
    "run": dict,
    "under": dict,
    "output": dict,
    "published": dict,
}
WORDS = {str: "a text", list: "a list", int: "a whole number", dict: "a table", float: "a number"}


class _File:
    """A TOML file, and errors that say where in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path.name} is not a text in UTF-8: {error}") from error
        try:
            self.data = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{path.name}: {error}") from error

    def refuse(self, key: str, what: str) -> NoReturn:
        line = line_of(self.text, key)
        place = f"{self.path.name}, line {line}" if line else self.path.name
        raise ValueError(f"{place}: {key} {what}")

    def table(self, key: str, allowed: Mapping[str, Any] | frozenset[str]) -> dict[str, Any]:
        """A table of the file whose keys are all known."""
        found: dict[str, Any] = self.data.get(key, {})
        for name in found:
            self.known(f"{key}.{name}", name, allowed)
        return found

    def known(self, key: str, name: str, allowed: Any) -> None:
        if name not in allowed:
            near = get_close_matches(name, list(allowed), n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            self.refuse(key, f"is unknown; {hint}allowed are {', '.join(sorted(allowed))}")

    def check(self, key: str, function: Callable[..., Any], *values: Any) -> Any:
        """`function(key, *values)`, whose ValueError gets the line."""
        try:
            return function(key, *values)
        except ValueError as error:
            self.refuse(key, str(error).removeprefix(f"{key} "))


def line_of(text: str, key: str) -> int:
    """The line of a key such as "data.arms"; of its table where it stands in none of its own.

    Example:
        >>> from evenhand.experiments.reading import line_of
        >>> line_of('seed = 1\\n[data]\\ngroup = "sex"', "data.group")
        3
    """
    table, best = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        bare = line.strip()
        if bare.startswith("["):
            table = bare.strip("[]# ").replace('"', "")
            if key == table or (not best and key.startswith(f"{table}.")):
                best = number
        elif "=" in bare and not bare.startswith("#"):
            name = bare.split("=", 1)[0].strip().replace('"', "")
            whole = f"{table}.{name}" if table else name
            if whole == key:
                return number
            if not best and key.startswith(f"{whole}."):
                best = number
    return best


def read_experiment(path: Path) -> Experiment:
    """Read an experiment from its file and check all that can be checked without running it.

    Worlds are made and policies tried, so that a mistake is told before anything runs.
    """
    file = _File(path)
    for name, value in file.data.items():
        file.known(name, name, TOP)
        if not isinstance(value, TOP[name]) or isinstance(value, bool):
            file.refuse(name, f"is {value!r}; allowed is {WORDS[TOP[name]]}")
    place = _place(file)
    run = dict(file.data.get("run", {}))
    sweep, multiples = _sweep(file, run)
    conventions = tuple(file.data.get("conventions", ("PAPER",)))
    for name in conventions:
        file.known("conventions", name, BY_NAME)
    experiment = Experiment(
        name=path.stem,
        title=file.data.get("title", path.stem),
        folder=path.parent,
        policies=_policies(file, path.parent),
        replications=file.check("replications", _checks.whole, file.data.get("replications", 80)),
        seed=file.check("seed", _checks.whole, file.data.get("seed", 1), 0),
        sweep=sweep,
        multiples=multiples,
        panels=_swept(file, "panels") if "panels" in file.data else None,
        place=place,
        run=run,
        under=_under(file),
        conventions=conventions,
        axis=file.data.get("axis", AXES.get(sweep.parameter, sweep.parameter.replace("_", " "))),
        chart=file.check("chart", _checks.one_of, file.data.get("chart", CHARTS[0]), CHARTS),
        output=_output(file),
        published=_published(file),
        in_paper=file.data.get("in_paper", ""),
        note=file.data.get("note", ""),
        order=file.data.get("order", 0),
    )
    _try(file, experiment)
    return experiment


def _place(file: _File) -> dict[str, Any]:
    if "world" in file.data and "data" in file.data:
        file.refuse("data", "and [world] are both there; keep one of them")
    if "data" not in file.data:
        return file.table("world", SYNTHETIC)
    data = file.table("data", TABLE | frozenset(SOURCES))
    given = [name for name in SOURCES if name in data]
    if len(given) != 1:
        file.refuse("data", 'needs either file = "people.csv" or dataset = "compas"')
    for name in ("group", "reward"):
        if name not in data:
            file.refuse("data", f"lacks {name}, the name of a column")
    return data


def _swept(file: _File, key: str) -> Swept:
    table = file.table(key, {"parameter": 1, "values": 1, "multiples": 1})
    for name in ("parameter", "values"):
        if name not in table:
            file.refuse(key, f"lacks {name}")
    values = table["values"]
    if isinstance(values, dict):
        if set(values) != {"from", "to", "step"} or not _rising(values):
            file.refuse(
                f"{key}.values", "is a table; allowed is { from = 20, to = 400, step = 20 }"
            )
        start, stop, step = values["from"], values["to"], values["step"]
        count = int((stop - start) / step + 1e-9) + 1
        values = [start + i * step for i in range(count)]
    numbers = isinstance(values, list) and all(
        isinstance(one, (int, float)) and not isinstance(one, bool) for one in values
    )
    if not numbers or not values or len(set(values)) < len(values):
        file.refuse(f"{key}.values", f"is {values!r}; allowed is a list of different numbers")
    return Swept(str(table["parameter"]), tuple(values))


def _rising(values: dict[str, Any]) -> bool:
    numbers = all(isinstance(one, (int, float)) for one in values.values())
    return numbers and values["step"] > 0 and values["to"] >= values["from"]


def _sweep(file: _File, run: dict[str, Any]) -> tuple[Swept, dict[str, float]]:
    """What is on the horizontal axis; the horizon alone where nothing is swept."""
    if "sweep" in file.data:
        sweep = _swept(file, "sweep")
        if sweep.parameter != HORIZON and HORIZON not in run:
            file.refuse("run", "lacks horizon, the number of rounds")
        return sweep, file.data["sweep"].get("multiples", {})
    if HORIZON not in run:
        file.refuse("run", "lacks horizon, the number of rounds; or sweep it with [sweep]")
    return Swept(HORIZON, (file.check("run.horizon", _checks.whole, run[HORIZON]),)), {}


def _policies(file: _File, folder: Path) -> dict[str, PolicyMaker]:
    """By label: a class, or one with settings of its own."""
    makers: dict[str, PolicyMaker] = {}
    for entry in file.data.get("policies", ["TopInterval", "GroupFairTopInterval"]):
        settings = dict(entry) if isinstance(entry, dict) else {"policy": entry}
        name = settings.pop("policy", None)
        if not isinstance(name, str):
            file.refuse("policies", f"has {entry!r}; allowed is a name or a table with `policy`")
        kind = _policy(file, name, folder)
        label = str(settings.pop("label", kind.__name__))
        if label in makers:
            file.refuse("policies", f"has {label!r} twice; give one of them a label of its own")
        for setting in settings:
            file.known("policies", setting, _settings(kind))
        makers[label] = partial(kind, **settings) if settings else kind
    if not makers:
        file.refuse("policies", "are none; name at least one")
    return makers


def _policy(file: _File, name: str, folder: Path) -> type[Policy]:
    """A policy by its name, or a class of the user's as "file.py:Class"."""
    source, _, own = name.rpartition(":")
    if not source:
        file.known("policies", name, POLICIES)
        return POLICIES[name]
    path = folder / source
    if path.suffix != ".py" or not path.is_file():
        file.refuse(
            "policies", f'has {name!r}, but {path} is no Python file; allowed is "file.py:Class"'
        )
    sys.path.insert(0, str(path.parent.resolve()))
    kind = getattr(import_module(path.stem), own, None)
    if not (isinstance(kind, type) and issubclass(kind, Policy)):
        file.refuse("policies", f"has {name!r}, but {source} has no policy {own!r}")
    return kind


def _settings(kind: type[Policy]) -> set[str]:
    names: set[str] = set()
    for one in kind.__mro__:
        maker = vars(one).get("__init__")
        if maker is not None and one is not object:
            names |= set(inspect.signature(maker).parameters)
    return names - {"self", "common", "groups", "n_features", "horizon", "seed", "conventions"}


def _under(file: _File) -> dict[str, Any]:
    """What differs by convention, with `world` and `data` as one."""
    found = {}
    for name, tables in file.table("under", BY_NAME).items():
        for kind, table in tables.items():
            key = f"under.{name}.{kind}"
            file.known(key, kind, ("world", "data", "run"))
            if kind != "run":
                for one in table:
                    file.known(f"{key}.{one}", one, SYNTHETIC if kind == "world" else TABLE)
        place = tables.get("world", tables.get("data", {}))
        found[name] = {"place": place, "run": tables.get("run", {})}
    return found


def _output(file: _File) -> Output:
    table = file.table("output", {"folder": 1, "figures": 1, "tables": 1})
    figures = tuple(table.get("figures", FORMATS))
    tables = tuple(table.get("tables", TABLES))
    for key, given, allowed in (("figures", figures, FORMATS), ("tables", tables, TABLES)):
        for one in given:
            file.known(f"output.{key}", one, allowed)
    return Output(str(table.get("folder", "")), figures, tables)


def _published(file: _File) -> Published | None:
    table = file.table("published", {"file": 1, "under": 1})
    if not table:
        return None
    if set(table) != {"file", "under"} or not (file.path.parent / table["file"]).is_file():
        file.refuse("published", "needs `file`, a CSV file that is there, and `under`, a reading")
    file.known("published.under", table["under"], BY_NAME)
    return Published(table["file"], table["under"])


def _try(file: _File, experiment: Experiment) -> None:
    """Make the worlds and the policies of the first points."""
    place = "data" if experiment.is_table else "world"
    for reading in experiment.readings().values():
        try:
            point = next(iter(experiment.points(reading)))
        except (ValueError, TypeError) as error:
            file.refuse(place, f"cannot be made: {error}")
        for label, make in experiment.policies.items():
            try:
                make(
                    point.world.groups,
                    point.world.n_features,
                    horizon=point.horizon,
                    seed=0,
                    **point.settings,
                )
            except (ValueError, TypeError) as error:
                file.refuse("policies", f"has {label}, which cannot be made: {error}")
