"""The first words of a report: what was run, how to read it, and what is not in it.

Where the rounds of an experiment come from, in words: for the report.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from evenhand.conventions import Conventions
from evenhand.experiments.bundled import in_paper
from evenhand.experiments.model import HORIZON, Experiment
from evenhand.experiments.worlds import SYNTHETIC
from evenhand.prose import in_digits
from evenhand.worlds import TableWorld

READINGS = {
    "AUTHORS_CODE": "as the authors' code does it",
    "PAPER": "as the text and proofs say it",
}


class Facts(NamedTuple):
    """About the run itself."""

    title: str
    rounds: int
    seconds: dict[str, float]
    version: str


def introduction(experiments: Sequence[Experiment], readings: Sequence[str], facts: Facts) -> str:
    """How much was run, how to read the figures, and what of the paper is not there."""
    counts = sorted({one.replications for one in experiments}, reverse=True)
    replications = " or ".join(str(count) for count in counts)
    told = "; ".join(f"<b>{name}</b>, {READINGS.get(name, '')}" for name in readings)
    source = (
        "of the experiments of Schumann, Lang, Mattei and Dickerson (AAMAS 2022)"
        if any(one.in_paper for one in experiments)
        else ""
    )
    repeated = f"{replications} replication{'' if counts == [1] else 's'} for every point"
    return (
        f"<p>{facts.rounds:,} rounds {source}, {repeated}, under {told}. "
        f"{_marks(experiments, counts)} Regret is per round where an axis does not say otherwise."
        "</p>"
    ).replace(" ,", ",") + _not_here(experiments)


def _marks(experiments: Sequence[Experiment], replications: Sequence[int]) -> str:
    """What the figures are drawn with."""
    kinds = sorted({len(one.sweep.values) > 1 for one in experiments}, reverse=True)
    if max(replications) == 1:
        return "There are no intervals: that takes two replications."
    lines = "Lines are means over replications, bands their 95 % intervals."
    dots = "Dots and squares are means over replications, the strokes through them 95 % intervals."
    return " ".join(lines if several else dots for several in kinds)


def _not_here(experiments: Sequence[Experiment]) -> str:
    """Which parts of the paper a report about it lacks."""
    here = {one.name for one in experiments if one.in_paper}
    if not here:
        return ""
    missing = [one for one in in_paper() if one.name not in here]
    texts = [
        f"{words} ({'; '.join(f'{one.name}, {one.where}' for one in mine)}), {how}"
        for words, how, mine in (
            (
                "the paper's experiments on real data",
                "which <code>evenhand paper --real</code> adds",
                [one for one in missing if one.real],
            ),
            (
                "some on synthetic data",
                "which <code>evenhand paper</code> runs",
                [one for one in missing if not one.real],
            ),
        )
        if mine
    ]
    return f"<p>Not in this report: {'; and '.join(texts)}.</p>" if texts else ""


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
