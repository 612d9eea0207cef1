"""An experiment: which parameter runs over which values, in which world, with which policies."""

from __future__ import annotations

import hashlib
import inspect
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module, invalidate_caches
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from evenhand import _checks
from evenhand.conventions import Conventions
from evenhand.errors import InputError
from evenhand.experiments._worlds import (
    NUMBERS,
    NUMBERS_BY_NAME,
    SYNTHETIC,
    TABLE,
    make_world,
)
from evenhand.policies.base import Policy
from evenhand.simulation._pieces import PolicyMaker
from evenhand.worlds import World

HORIZON = "horizon"
FORMATS = ("pdf", "svg", "png")
TABLES = ("csv", "parquet")
MOST_VALUES = 10_000  # of a range: beyond, a step was mistyped


class Point(NamedTuple):
    """One point of a figure: a world, how long to play in it, and the policies' settings."""

    x: float
    panel: str
    world: World
    horizon: int
    settings: dict[str, Any]


class Swept(NamedTuple):
    """A parameter and the values it takes."""

    parameter: str
    values: tuple[float, ...]

    @property
    def own_name(self) -> str:
        """The parameter without where it belongs: "noise" of "run.noise"."""
        return self.parameter.rpartition(".")[2]


class Output(NamedTuple):
    """Where the results go, and in which forms."""

    folder: str = ""
    figures: tuple[str, ...] = FORMATS
    tables: tuple[str, ...] = TABLES


class Published(NamedTuple):
    """Values to draw over the figures of one reading of the paper."""

    file: str
    under: str


@dataclass(frozen=True)
class Experiment:
    """An experiment as its file describes it.

    `place` says where contexts and rewards come from: the parameters of a SyntheticWorld, or those
    of a TableWorld with its `file` or `dataset`. `under` holds what differs by convention.
    """

    name: str
    title: str
    folder: Path
    policies: dict[str, PolicyMaker]
    replications: int
    seed: int
    sweep: Swept
    panels: Swept | None
    place: dict[str, Any]
    run: dict[str, Any]
    conventions: tuple[str, ...]
    axis: str
    multiples: dict[str, float] = field(default_factory=dict)
    under: dict[str, Any] = field(default_factory=dict)
    output: Output = field(default_factory=Output)
    published: Published | None = None
    chart: str = "share and regret"
    in_paper: str = ""
    note: str = ""
    order: int = 0

    @property
    def is_table(self) -> bool:
        """Whether its world is a table, in which true rewards are seldom known."""
        return "file" in self.place or "dataset" in self.place

    def points(self, conventions: Conventions) -> Iterator[Point]:
        """The points of the figures, as one reading of the paper has them."""
        special = self.under.get(conventions.name, {})
        for panel in self.panels.values if self.panels else (None,):
            for value in self.sweep.values:
                place = {**self.place, **special.get("place", {})}
                run = {**self.run, **special.get("run", {})}
                if self.panels and panel is not None:
                    set_parameter(place, run, self.panels.parameter, panel)
                set_parameter(place, run, self.sweep.parameter, value)
                place |= {
                    name: int(factor * value + 1e-9)  # 0.29 of 100 is 29, and not 28
                    for name, factor in self.multiples.items()
                }
                world = make_world(place, self.folder, conventions)
                horizon = _checks.whole(HORIZON, run.pop(HORIZON))
                settings = {**run, "conventions": conventions}
                yield Point(float(value), self.panel_name(panel), world, horizon, settings)

    def panel_name(self, value: float | None) -> str:
        """What tells the panels of a figure apart: "delta = 0.1"; nothing where there are none."""
        if self.panels is None or value is None:
            return ""
        return f"{self.panels.own_name} = {value:.12g}"

    def readings(self) -> dict[str, Conventions]:
        """The readings of the paper that it is run under."""
        from evenhand.conventions import BY_NAME

        return {name: BY_NAME[name] for name in self.conventions}

    def rounds(self, conventions: Conventions) -> int:
        """How many rounds there are to play."""
        each = len(self.policies) * self.replications
        return each * sum(point.horizon for point in self.points(conventions))

    def with_(self, seeds: int | None = None, seed: int | None = None) -> Experiment:
        """The same with another number of replications, or another seed."""
        return replace(
            self,
            replications=self.replications if seeds is None else seeds,
            seed=self.seed if seed is None else seed,
        )


def values_of(given: Any) -> tuple[float, ...]:
    """The values of a list or of a range; none where it is neither.

    Example:
        >>> from evenhand.experiments.model import values_of
        >>> values_of({"from": 0.1, "to": 0.5, "step": 0.2})
        (0.1, 0.3, 0.5)
    """
    try:
        if isinstance(given, dict):
            if set(given) != {"from", "to", "step"} or not NUMBERS_BY_NAME.fits(given):
                return ()
            start, step = given["from"], given["step"]
            steps = (given["to"] - start) / step
            if not (step > 0 and 0 <= steps < MOST_VALUES):
                return ()
            given = [round(start + i * step, 12) for i in range(int(steps + 1e-9) + 1)]
        good = NUMBERS.fits(given) and all(math.isfinite(number) for number in given)
    except ArithmeticError:
        return ()
    return tuple(given) if good and len(set(given)) == len(given) else ()


class Own(partial[Policy]):
    """A policy with settings of its own, which win over those of [run]."""

    def __call__(self, *args: Any, **settings: Any) -> Policy:
        """Make the policy."""
        return self.func(*args, **{**settings, **self.keywords})


def set_parameter(place: dict[str, Any], run: dict[str, Any], name: str, value: float) -> None:
    """Set a parameter of the world or of the run; "run.noise" says which where both have it."""
    where, _, own = name.rpartition(".")
    of_world = own in SYNTHETIC or own in TABLE
    if where in ("world", "data") or (not where and of_world and own not in run):
        place[own] = value
    else:
        run[own] = value


IMPORTED: dict[Path, str] = {}  # files of users that hold policies, and what was in them


def policy_from(path: Path, name: str) -> type[Policy]:
    """The class `name` of a Python file, which is imported as a module from its folder."""
    path = path.resolve()
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    code = hashlib.sha256(path.read_bytes()).hexdigest()
    if IMPORTED.get(path, code) != code:
        raise InputError(f"{path.name} has changed since it was imported; start Python anew")
    module = _module(path)
    IMPORTED[path] = code
    known = {
        label: kind
        for label, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, Policy) and kind is not Policy
    }
    if name not in known:
        raise InputError(
            f"{path.name} has no policy {name!r}; it has {', '.join(sorted(known)) or 'none'}"
        )
    kind = known[name]
    if kind.rule is Policy.rule and kind.score is Policy.score:
        raise InputError(f"{name} has neither a rule nor a score; write one of them")
    return kind


def is_own(make: PolicyMaker) -> bool:
    """Whether a policy is a user's own, from a file."""
    module = sys.modules.get(getattr(make, "func", make).__module__)
    return Path(getattr(module, "__file__", None) or "").resolve() in IMPORTED


def _module(path: Path) -> ModuleType:
    """The module of a file, by its plain name: the processes of a run import it by that too."""
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    invalidate_caches()
    try:
        spec = find_spec(path.stem)
        if spec is not None and spec.origin and Path(spec.origin).resolve() == path:
            return import_module(path.stem)
    except (Exception, SystemExit) as error:  # whatever the user's file does
        raise InputError(
            f"{path.name} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    raise InputError(f"{path.stem} is the name of another module as well; rename {path.name}")


def settings_of(kind: type[Policy]) -> set[str]:
    """The settings that a file can give to a policy."""
    names: set[str] = set()
    for base in kind.__mro__[:-1]:
        maker = vars(base).get("__init__")
        if maker is not None:
            names |= {
                parameter.name
                for parameter in inspect.signature(maker).parameters.values()
                if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            }
    return names - {"self", "groups", "n_features", "horizon", "seed", "conventions"}
