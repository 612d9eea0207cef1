"""Reading an experiment from its TOML file. Errors name the file, the line and the key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand import _checks, datasets
from evenhand._toml import Kind, TomlFile
from evenhand.conventions import BY_NAME
from evenhand.errors import InputError, setting
from evenhand.experiments._dry_run import try_all
from evenhand.experiments._user_policies import Own, policy_from, settings_of
from evenhand.experiments._worlds import (
    LIST,
    NUMBER,
    NUMBER_OR_NUMBERS,
    NUMBERS_BY_NAME,
    SECTION,
    SOURCES,
    SWITCH,
    TABLE,
    TEXT,
    TEXTS,
    WHOLE,
    WORLD,
)
from evenhand.experiments.model import (
    FORMATS,
    HORIZON,
    TABLES,
    Experiment,
    Output,
    Panels,
    Published,
    Swept,
    panel_values_of,
    values_of,
)
from evenhand.policies import POLICIES
from evenhand.policies.base import Policy
from evenhand.simulation._replications import PolicyMaker
from evenhand.simulation.floor import FLOOR

CHARTS = ("share and regret", "share and true regret", "rate")
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
PANEL_VALUES = Kind(
    "a list of different numbers or strings, or { from = 20, to = 400, step = 20 }",
    lambda value: bool(panel_values_of(value)),
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
    "floor": SWITCH,
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


def read_experiment(path: Path, allow_code: bool = False) -> Experiment:
    """Read an experiment from its file and check all that can be checked without running it.

    Worlds and policies are made at every point, so mistakes are reported before anything runs.

    Args:
        path: the TOML file.
        allow_code: whether Python files that it names as policies may be run. Such a file can do
            whatever you can, so allow it only if you trust its author.

    Example:
        >>> from evenhand.experiments.bundled import path_of
        >>> from evenhand.experiments.file import read_experiment
        >>> experiment = read_experiment(path_of("T"))
        >>> experiment.title, len(experiment.sweep.values), experiment.replications
        ('Increasing the number of rounds T', 50, 80)
    """
    file = TomlFile(path, [name for name, kind in TOP.items() if kind is not SECTION])
    file.checked("", file.data, TOP)
    home = "data" if "data" in file.data else "world"
    place = _place(file, home)
    policies = _policies(file, path.parent, allow_code)
    run = _run(file, "run.", file.data.get("run", {}), policies)
    parameters = _parameters(home, policies)
    sweep = _sweep(file, run, parameters)
    conventions = tuple(file.data.get("conventions", ("PAPER",)))
    for name in conventions:
        file.known("conventions", name, BY_NAME)
    if len(set(conventions)) < max(1, len(conventions)):
        file.refuse("conventions", f"is {list(conventions)}; name at least one, and each once")
    experiment = Experiment(
        name=path.stem,
        title=file.data.get("title", path.stem),
        folder=path.parent,
        policies=policies,
        replications=file.check("replications", _checks.whole, file.data.get("replications", 80)),
        seed=file.check("seed", _checks.whole, file.data.get("seed", 1), 0, _checks.LARGEST_SEED),
        sweep=sweep,
        multiples=_multiples(file, home),
        panels=_panels(file, home, sweep, parameters),
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
        floor=file.data.get("floor", False),
    )
    if experiment.floor and home == "data":
        file.refuse("floor", "is true, but the true coefficients of a table are not known")
    if experiment.floor and FLOOR in policies:
        file.refuse("policies", f"has the label {FLOOR!r}, which is the floor's own", about=FLOOR)
    known = home == "world" or "true_reward" in place
    if experiment.chart == "rate" and not (known and sweep.parameter == HORIZON):
        file.refuse("chart", "is 'rate', which needs true rewards and a sweep of the horizon")
    if experiment.chart == "share and true regret" and not known:
        file.refuse("chart", f"is {experiment.chart!r}, which needs true rewards")
    for reading in experiment.readings().values():
        try_all(file, experiment, reading, home)
    return experiment


def _place(file: TomlFile, home: str) -> dict[str, Any]:
    if home == "world":
        return file.table("world", WORLD)
    if "world" in file.data:
        file.refuse("data", "and [world] are both given; keep one of them")
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


def _policies(file: TomlFile, folder: Path, allow_code: bool) -> dict[str, PolicyMaker]:
    """By label: a class, or one with settings of its own."""
    makers: dict[str, PolicyMaker] = {}
    for entry in file.data.get("policies", ["TopInterval", "GroupFairTopInterval"]):
        settings = dict(entry) if isinstance(entry, dict) else {"policy": entry}
        name = settings.pop("policy", None)
        if not isinstance(name, str):
            file.refuse("policies", f"has {entry!r}; allowed is a name or a table with `policy`")
        kind = _policy(file, name, folder, allow_code)
        label = settings.pop("label", kind.__name__)
        if not isinstance(label, str) or not label.strip():
            file.refuse("policies", f"has the label {label!r}; allowed is a string", about="label")
        if label in makers:
            file.refuse("policies", f"has {label!r} twice; give one of them a label of its own")
        for own in settings:
            file.known("policies", own, settings_of(kind), of=f" for {label}")
        makers[label] = Own(kind, **settings) if settings else kind
    if not makers:
        file.refuse("policies", "is empty; name at least one")
    return makers


def _policy(file: TomlFile, name: str, folder: Path, allow_code: bool) -> type[Policy]:
    """A policy by its name, or a user's class as "file.py:Class"."""
    source, _, own = name.rpartition(":")
    if not source and not name.endswith(".py"):
        file.known("policies", name, POLICIES)
        return POLICIES[name]
    if not source or not own or Path(source).suffix != ".py":
        file.refuse("policies", f'has {name!r}; allowed is "file.py:Class"', about=name)
    path = (folder / source).resolve()
    if path.is_file() and not allow_code:
        file.refuse(
            "policies",
            f"has {name!r}, which would run the Python code in {path}; if you trust it, allow it "
            f"with {setting('allow_code', True)}",
            about=name,
        )
    try:
        return policy_from(path, own)
    except InputError as error:
        file.refuse("policies", f"has {name!r}, but {error.told('file')}", about=name)


def _settings(make: PolicyMaker) -> set[str]:
    return settings_of(getattr(make, "func", make))  # type: ignore[arg-type]


def _run(
    file: TomlFile, prefix: str, table: dict[str, Any], policies: Mapping[str, PolicyMaker]
) -> dict[str, Any]:
    """The settings of all policies, and the horizon."""
    known = {label: _settings(make) for label, make in policies.items()}
    for name in table:
        lacking = [label for label, settings in known.items() if name not in settings]
        if name == HORIZON:
            file.check(prefix + name, _checks.whole, table[name])
        elif lacking and len(lacking) < len(known):
            file.refuse(
                prefix + name,
                f"is not a setting of {', '.join(lacking)}; give it to the policy that has it: "
                f'policies = [{{ policy = "...", {name} = ... }}]',
            )
        elif lacking:
            file.known(prefix + name, name, {HORIZON, *set.intersection(*known.values())})
    return dict(table)


def _parameters(home: str, policies: Mapping[str, PolicyMaker]) -> set[str]:
    """The parameters to sweep: the horizon, settings of all policies, numbers of the world."""
    settings = set.intersection(*(_settings(make) for make in policies.values()))
    kinds = TABLE if home == "data" else WORLD
    numeric = (NUMBER, NUMBER_OR_NUMBERS, WHOLE)
    numbers = {name for name, kind in kinds.items() if kind in numeric}
    ambiguous = {f"{where}.{name}" for name in settings & numbers for where in ("run", home)}
    return settings | numbers | ambiguous | {HORIZON}


def _swept(
    file: TomlFile, key: str, kinds: dict[str, Kind], parameters: set[str]
) -> dict[str, Any]:
    table = file.table(key, {"parameter": TEXT, **kinds})
    for name in ("parameter", "values"):
        if name not in table:
            file.refuse(key, f"lacks {name}")
    file.known(f"{key}.parameter", table["parameter"], parameters)
    return table


def _sweep(file: TomlFile, run: dict[str, Any], parameters: set[str]) -> Swept:
    """The horizontal axis; the horizon alone if nothing is swept."""
    if "sweep" in file.data:
        kinds = {"values": VALUES, "multiples": NUMBERS_BY_NAME}
        table = _swept(file, "sweep", kinds, parameters)
        sweep = Swept(table["parameter"], values_of(table["values"]))
        in_panels = file.data.get("panels", {}).get("parameter") == HORIZON
        if HORIZON not in run and sweep.parameter != HORIZON and not in_panels:
            file.refuse("run", "lacks horizon, the number of rounds")
        return sweep
    if HORIZON not in run:
        file.refuse("run", "lacks horizon, the number of rounds; or sweep it with [sweep]")
    return Swept(HORIZON, (run[HORIZON],))


def _multiples(file: TomlFile, home: str) -> dict[str, float]:
    """Whole numbers of a synthetic world that are multiples of the swept value."""
    multiples: dict[str, float] = file.data.get("sweep", {}).get("multiples", {})
    kinds = WORLD if home == "world" else {}
    for name in multiples:
        whole = [key for key, kind in kinds.items() if kind is WHOLE]
        file.known(f"sweep.multiples.{name}", name, whole)
    return multiples


def _panels(file: TomlFile, home: str, sweep: Swept, parameters: set[str]) -> Panels | None:
    if "panels" not in file.data:
        return None
    kinds = TABLE if home == "data" else WORLD
    texts = {name for name, kind in kinds.items() if kind is TEXT}
    table = _swept(file, "panels", {"values": PANEL_VALUES}, parameters | texts)
    panels = Panels(table["parameter"], panel_values_of(table["values"]))
    if any(isinstance(value, str) != (panels.own_name in texts) for value in panels.values):
        words = "strings" if panels.own_name in texts else "numbers"
        file.refuse("panels.values", f"are not {words}, which {panels.own_name} needs")
    if panels.parameter == sweep.parameter:
        file.refuse("panels.parameter", f"is {panels.parameter!r}, which is swept already")
    return panels


def _under(file: TomlFile, home: str, policies: Mapping[str, PolicyMaker]) -> dict[str, Any]:
    """The settings that differ by convention."""
    differences = {}
    for name, tables in file.table("under", dict.fromkeys(BY_NAME, SECTION)).items():
        prefix = f"under.{name}."
        file.checked(prefix, tables, {home: SECTION, "run": SECTION})
        kinds = TABLE if home == "data" else WORLD
        place = file.checked(f"{prefix}{home}.", tables.get(home, {}), kinds)
        run = _run(file, f"{prefix}run.", tables.get("run", {}), policies)
        differences[name] = {"place": place, "run": run}
    return differences


def _output(file: TomlFile) -> Output:
    table = file.table("output", {"folder": TEXT, "figures": TEXTS, "tables": TEXTS})
    figures = tuple(table.get("figures", FORMATS))
    tables = tuple(table.get("tables", TABLES))
    for key, given, allowed in (("figures", figures, FORMATS), ("tables", tables, TABLES)):
        for form in given:
            file.known(f"output.{key}", form, allowed)
    return Output(table.get("folder", ""), figures, tables)


def _published(file: TomlFile) -> Published | None:
    table = file.table("published", {"file": TEXT, "under": TEXT})
    if "published" not in file.data:
        return None
    path = file.path.parent / table.get("file", "")
    if set(table) != {"file", "under"} or not path.is_file():
        file.refuse("published", "needs `file`, an existing CSV file, and `under`, a reading")
    file.known("published.under", table["under"], BY_NAME)
    try:
        columns = set(pd.read_csv(path, comment="#").columns)
    except ValueError:  # as all errors of pandas are
        file.refuse("published.file", f"is not a CSV file with the columns {', '.join(OVERLAY)}")
    if not columns >= set(OVERLAY):
        file.refuse("published.file", f"needs the columns {', '.join(OVERLAY)}")
    return Published(table["file"], table["under"])
