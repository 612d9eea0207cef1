"""An experiment: which parameter runs over which values, in which world, with which policies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from evenhand import _checks
from evenhand.conventions import Conventions
from evenhand.experiments._worlds import (
    NUMBERS,
    NUMBERS_BY_NAME,
    TABLE,
    TEXTS,
    WORLD,
    make_world,
)
from evenhand.simulation._replications import PolicyMaker
from evenhand.simulation.floor import FLOOR
from evenhand.worlds import World

HORIZON = "horizon"
FORMATS = ("pdf", "svg", "png")
TABLES = ("csv", "parquet")
MOST_VALUES = 10_000  # of a range: if there are more, the step was mistyped


class Point(NamedTuple):
    """One point of a figure: a world, the number of rounds, and the policies' settings.

    Example:
        >>> import evenhand as eh
        >>> from evenhand.experiments.bundled import paper_experiments
        >>> point = next(paper_experiments()["T"].points(eh.PAPER))
        >>> point.x, point.horizon, point.world.n_arms, point.settings["delta"]
        (20.0, 20, 10, 0.1)
    """

    x: float
    panel: str
    world: World
    horizon: int
    settings: dict[str, Any]


class Swept(NamedTuple):
    """A parameter and the values it takes.

    Example:
        >>> from evenhand.experiments.model import Swept
        >>> Swept("run.noise", (0.1, 1.0)).own_name
        'noise'
    """

    parameter: str
    values: tuple[float, ...]

    @property
    def own_name(self) -> str:
        """The parameter without its table: "noise" of "run.noise"."""
        return self.parameter.rpartition(".")[2]


class Panels(NamedTuple):
    """A parameter and the numbers or strings that it takes, each in a panel of its own.

    Example:
        >>> from evenhand.experiments.model import Panels
        >>> Panels("world.contexts", ("own", "shared")).own_name
        'contexts'
    """

    parameter: str
    values: tuple[float | str, ...]

    @property
    def own_name(self) -> str:
        """The parameter without its table: "contexts" of "world.contexts"."""
        return self.parameter.rpartition(".")[2]


class Output(NamedTuple):
    """Where the results go, and in which formats.

    Example:
        >>> from evenhand.experiments.model import Output
        >>> Output("my-report").figures
        ('pdf', 'svg', 'png')
    """

    folder: str = ""
    figures: tuple[str, ...] = FORMATS
    tables: tuple[str, ...] = TABLES


class Published(NamedTuple):
    """Published values to draw in the figures of one reading of the paper.

    Example:
        >>> from evenhand.experiments.bundled import paper_experiments
        >>> paper_experiments()["T"].published
        Published(file='published.csv', under='AUTHORS_CODE')
    """

    file: str
    under: str


@dataclass(frozen=True)
class Experiment:
    """An experiment as its file describes it.

    `place` says where contexts and rewards come from: the parameters of a SyntheticWorld, or those
    of a TableWorld with its `file` or `dataset`. `under` holds what differs by convention. With
    `floor`, the identification floor is shown next to the policies. With `beside`, so are the runs
    of the experiment of that name.

    Example:
        >>> import evenhand as eh
        >>> from evenhand.experiments.bundled import paper_experiments
        >>> experiment = paper_experiments()["T"].with_(seeds=10)
        >>> experiment.is_table, experiment.rounds(eh.PAPER)
        (False, 1020000)
        >>> list(experiment.readings())
        ['AUTHORS_CODE', 'PAPER']
        >>> [point.horizon for point in experiment.points(eh.PAPER)][:3]
        [20, 40, 60]
        >>> from dataclasses import replace
        >>> replace(experiment, panels=experiment.sweep).panel_name(20.0)
        'horizon = 20'
    """

    name: str
    title: str
    folder: Path
    policies: dict[str, PolicyMaker]
    replications: int
    seed: int
    sweep: Swept
    panels: Panels | None
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
    floor: bool = False
    beside: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of the figures: the policies and, if asked for, the floor."""
        return (*self.policies, FLOOR) if self.floor else tuple(self.policies)

    @property
    def is_table(self) -> bool:
        """Whether its world is a table; true rewards are seldom known there."""
        return "file" in self.place or "dataset" in self.place

    def points(self, conventions: Conventions) -> Iterator[Point]:
        """The points of the figures under one reading of the paper."""
        special = self.under.get(conventions.name, {})
        for panel in self.panels.values if self.panels else (None,):
            for value in self.sweep.values:
                place = {**self.place, **special.get("place", {})}
                run = {**self.run, **special.get("run", {})}
                if self.panels and panel is not None:
                    _set_parameter(place, run, self.panels.parameter, panel)
                _set_parameter(place, run, self.sweep.parameter, value)
                place |= {
                    name: int(factor * value + 1e-9)  # 0.29 of 100 is 29, and not 28
                    for name, factor in self.multiples.items()
                }
                world = make_world(place, self.folder, conventions)
                horizon = _checks.whole(HORIZON, run.pop(HORIZON))
                settings = {**run, "conventions": conventions}
                yield Point(float(value), self.panel_name(panel), world, horizon, settings)

    def panel_name(self, value: float | str | None) -> str:
        """The heading of a panel, such as "delta = 0.1"; empty if there are no panels."""
        if self.panels is None or value is None:
            return ""
        words = value if isinstance(value, str) else f"{value:.12g}"
        return f"{self.panels.own_name} = {words}"

    def readings(self) -> dict[str, Conventions]:
        """The readings of the paper under which it is run."""
        from evenhand.conventions import BY_NAME

        return {name: BY_NAME[name] for name in self.conventions}

    def rounds(self, conventions: Conventions) -> int:
        """The number of rounds to play."""
        runs_per_point = len(self.lines) * self.replications
        return runs_per_point * sum(point.horizon for point in self.points(conventions))

    def with_(self, seeds: int | None = None, seed: int | None = None) -> Experiment:
        """The same with another number of replications, or another seed."""
        return replace(
            self,
            replications=self.replications if seeds is None else seeds,
            seed=self.seed if seed is None else seed,
        )


def values_of(given: Any) -> tuple[float, ...]:
    """The values of a list or of a range; none if it is neither.

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


def panel_values_of(given: Any) -> tuple[float | str, ...]:
    """The values of panels, which are those of a sweep or different texts; none if neither.

    Example:
        >>> from evenhand.experiments.model import panel_values_of
        >>> panel_values_of(["own", "shared"])
        ('own', 'shared')
    """
    if TEXTS.fits(given) and len(set(given)) == len(given):
        return tuple(given)
    return values_of(given)


def _set_parameter(
    place: dict[str, Any], run: dict[str, Any], name: str, value: float | str
) -> None:
    """Set a parameter of the world or of the run; "run.noise" says which where both have it."""
    where, _, own = name.rpartition(".")
    of_world = own in WORLD or own in TABLE
    if where in ("world", "data") or (not where and of_world and own not in run):
        place[own] = value
    else:
        run[own] = value
