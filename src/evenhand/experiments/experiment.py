"""An experiment: which parameter runs over which values, in which world, with which policies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from evenhand.conventions import Conventions
from evenhand.experiments.places import WORLD_PARAMETERS, make_world
from evenhand.simulation.run import PolicyMaker
from evenhand.worlds import World

HORIZON = "horizon"
FORMATS = ("pdf", "svg", "png")
TABLES = ("csv", "parquet")


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
                place |= {name: int(factor * value) for name, factor in self.multiples.items()}
                world = make_world(place, self.folder, conventions)
                horizon = int(run.pop(HORIZON))
                settings = {**run, "conventions": conventions}
                yield Point(float(value), self.panel_name(panel), world, horizon, settings)

    def panel_name(self, value: float | None) -> str:
        """What tells the panels of a figure apart: "delta = 0.1"; nothing where there are none."""
        if self.panels is None or value is None:
            return ""
        return f"{self.panels.parameter.split('.')[-1]} = {value:g}"

    def readings(self) -> dict[str, Conventions]:
        """The readings of the paper that it is run under."""
        from evenhand.conventions import BY_NAME

        return {name: BY_NAME[name] for name in self.conventions}

    def rounds(self, conventions: Conventions) -> int:
        """How many rounds there are to play."""
        each = len(self.policies) * self.replications
        return each * sum(point.horizon for point in self.points(conventions))

    def with_(self, seeds: int | None, seed: int | None) -> Experiment:
        """The same with another number of replications, or another seed."""
        return replace(
            self,
            replications=self.replications if seeds is None else seeds,
            seed=self.seed if seed is None else seed,
        )


def set_parameter(place: dict[str, Any], run: dict[str, Any], name: str, value: float) -> None:
    """Set a parameter of the world or of the run; "run.noise" says which where both have it."""
    where, _, own = name.rpartition(".")
    if where == "world" or (not where and own in WORLD_PARAMETERS and own not in run):
        place[own] = value
    else:
        run[own] = value
