"""Where the rounds of an experiment come from, in words: for the report."""

from __future__ import annotations

from html import escape
from typing import Any

from evenhand.conventions import Conventions
from evenhand.experiments.experiment import HORIZON, Experiment
from evenhand.experiments.places import SYNTHETIC
from evenhand.plain import in_digits
from evenhand.worlds import TableWorld

WORDS = {
    "n_arms": "arms",
    "n_sensitive": "sensitive arms",
    "n_features": "features",
    "bias_mean": "mean of the bias",
    "coefficient_range": "range of the coefficients",
    "lowest_coefficient": "lowest coefficient",
    "noise": "standard deviation of the noise",
    HORIZON: "rounds T",
}
SHOWN = 20  # features that are named


def world_in_words(experiment: Experiment) -> str:
    """Every number of a made-up world, whether the file gives it or not, under each reading."""
    told = {name: _numbers(experiment, one) for name, one in experiment.readings().items()}
    if len(set(told.values())) == 1:
        return f"<p class='note'>The world: {escape(next(iter(told.values())))}.</p>"
    texts = (f"The world under {escape(name)}: {escape(text)}." for name, text in told.items())
    return f"<p class='note'>{' '.join(texts)}</p>"


def _numbers(experiment: Experiment, reading: Conventions) -> str:
    found: dict[str, list[Any]] = {name: [] for name in WORDS}
    for point in experiment.points(reading):
        for name in SYNTHETIC:
            found[name].append(getattr(point.world, name))
        found[HORIZON].append(point.horizon)
        for name, value in point.settings.items():
            if name != "conventions":
                found.setdefault(f"{name} of the policies", []).append(value)
    return ", ".join(f"{WORDS.get(name, name)} {_span(all_)}" for name, all_ in found.items())


def _span(values: list[Any]) -> str:
    """One value, or from the lowest to the highest."""
    if len({str(one) for one in values}) == 1 and not isinstance(values[0], (int, float)):
        return str(values[0])
    low, high = in_digits(min(values)), in_digits(max(values))
    return low if low == high else f"{low} to {high}"


def table_in_words(experiment: Experiment) -> str:
    """Which rows were played, and what their rewards say about bias, whatever the policies do."""
    reading = next(iter(experiment.readings().values()))
    world = next(iter(experiment.points(reading))).world
    if not isinstance(world, TableWorld):
        return ""
    place = experiment.place
    source = place.get("dataset", place.get("file", ""))
    group = " and ".join([place["group"]] if isinstance(place["group"], str) else place["group"])
    sensitive = world.groups.sensitive
    names, left = world.feature_names[:SHOWN], world.n_features - SHOWN
    told = [
        f"{world!r} of {source}: groups by {group}, "
        f"{'none sensitive' if sensitive is None else f'sensitive {sensitive}'}, reward "
        f"{place['reward']}.",
        f"{_rows(world.dropped_rows, 'was', 'were')} left out for missing values, and "
        f"{_rows(world.filled_rows, 'has', 'have')} values filled in.",
        f"Features: {', '.join(names)}{f' and {left} more' if left > 0 else ''}.",
    ]
    if world.codes:
        coded = [name for name in names if name in world.codes]
        told.append(f"Categories by code: {', '.join(coded)}.")
    if world.identifiers:
        told.append(f"Left out, as they only tell rows apart: {', '.join(world.identifiers)}.")
    learned = "".join(f"<li>{escape(line)}</li>" for line in world.bias().to_words().splitlines())
    return (
        f"<p class='note'>{escape(' '.join(told))}</p><details><summary>what the rewards in the "
        f"table say about bias, every row once</summary><ul>{learned}</ul></details>"
    )


def _rows(number: int, one: str, several: str) -> str:
    return f"{number:,} {f'row {one}' if number == 1 else f'rows {several}'}"
