"""A sweep, read from its TOML file: which parameter runs over which values, all else held."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from evenhand.conventions import BY_NAME, Conventions
from evenhand.policies.base import POLICIES, Policy
from evenhand.worlds import SyntheticWorld, World

PAPER_FOLDER = Path(str(files("evenhand") / "experiments" / "paper"))


class Point(NamedTuple):
    """One value of the swept parameter: a world and how long to play in it."""

    x: float
    world: World
    horizon: int
    settings: dict[str, Any]


@dataclass(frozen=True)
class Sweep:
    """A sweep as its file describes it. `under` holds what differs by convention."""

    name: str
    title: str
    axis: str
    in_paper: str
    order: int
    policies: tuple[str, ...]
    replications: int
    seed: int
    parameter: str
    values: tuple[float, ...]
    multiples: dict[str, float] = field(default_factory=dict)
    world: dict[str, Any] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)
    under: dict[str, Any] = field(default_factory=dict)
    conventions: tuple[str, ...] = ("AUTHORS_CODE", "PAPER")
    note: str = ""

    def points(self, conventions: Conventions) -> Iterator[Point]:
        """The points of the sweep, as one reading of the paper has them."""
        special = self.under.get(conventions.name, {})
        for value in self.values:
            world = {**self.world, **special.get("world", {})}
            run = {**self.run, **special.get("run", {})}
            target = run if self.parameter in ("horizon", "delta") else world
            target[self.parameter] = value
            world |= {name: int(factor * value) for name, factor in self.multiples.items()}
            yield Point(
                float(value),
                SyntheticWorld(**world, conventions=conventions),
                int(run.pop("horizon")),
                {**run, "conventions": conventions},
            )

    def makers(self) -> dict[str, type[Policy]]:
        """The classes of its policies, by name."""
        return {name: POLICIES[name] for name in self.policies}

    def rounds(self, conventions: Conventions) -> int:
        """How many rounds there are to play."""
        each = len(self.policies) * self.replications
        return each * sum(point.horizon for point in self.points(conventions))

    def with_(self, seeds: int | None, seed: int | None) -> Sweep:
        """The same with another number of replications, or another seed."""
        return replace(
            self,
            replications=self.replications if seeds is None else seeds,
            seed=self.seed if seed is None else seed,
        )


def read_sweep(path: Path) -> Sweep:
    """Read a sweep from its file; errors name the file and the key."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        sweep = data.pop("sweep")
        found = Sweep(
            name=path.stem,
            policies=tuple(data.pop("policies")),
            parameter=sweep["parameter"],
            values=tuple(sweep["values"]),
            multiples=sweep.get("multiples", {}),
            conventions=tuple(data.pop("conventions", ("AUTHORS_CODE", "PAPER"))),
            **data,
        )
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path.name}: {error}") from error
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path.name}: a key is missing or unknown: {error}") from error
    for name in found.policies:
        if name not in POLICIES:
            raise ValueError(
                f"{path.name}: policy {name!r} is unknown; known are {', '.join(sorted(POLICIES))}"
            )
    for name in (*found.under, *found.conventions):
        if name not in BY_NAME:
            known = ", ".join(BY_NAME)
            raise ValueError(f"{path.name}: conventions {name!r} are unknown; known are {known}")
    return found


def paper_sweeps() -> dict[str, Sweep]:
    """The seven sweeps of the paper, in its order, and one for the rate of its theorem.

    Example:
        >>> from evenhand.experiments.sweep import paper_sweeps
        >>> list(paper_sweeps())
        ['T', 'arms', 'error', 'ratio', 'c', 'd', 'delta', 'rate']
    """
    sweeps = [read_sweep(path) for path in PAPER_FOLDER.glob("*.toml")]
    return {sweep.name: sweep for sweep in sorted(sweeps, key=lambda sweep: sweep.order)}
