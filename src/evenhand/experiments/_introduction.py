"""The introduction of a report: what was run, how to read it, what is not in it, and its worlds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from evenhand._prose import in_digits
from evenhand.conventions import Conventions
from evenhand.experiments._worlds import SYNTHETIC
from evenhand.experiments.bundled import in_paper
from evenhand.experiments.model import HORIZON, Experiment
from evenhand.worlds import CrossedWorld, SyntheticWorld, TableWorld, World
from evenhand.worlds._arrivals import TrueRewards

TRUTH_WORDS = {
    "share": "share of decisions that get a true reward",
    "delay": "rounds until it is known",
    "noise": "noise of true rewards",
    "common": "part of the feedback's noise that is in them",
    "by_context": "log-odds of arriving per unit of a feature",
    "by_outcome": "log-odds of arriving per unit of a true reward's noise",
    "scale": "scale of their units",
    "offset": "offset of their units",
}
TRUTH_USUAL = {
    words: TrueRewards._field_defaults[name]
    for name, words in TRUTH_WORDS.items()
    if name not in ("share", "delay", "noise")
}
READINGS = {
    "AUTHORS_CODE": "as the authors' code does it",
    "PAPER": "as the text and proofs say it",
}


class RunFacts(NamedTuple):
    """About the run itself."""

    title: str
    rounds: int
    seconds: dict[str, float]
    version: str


def introduction(
    experiments: Sequence[Experiment], readings: Sequence[str], facts: RunFacts
) -> dict[str, Any]:
    """How much was run, how to read the figures, and which parts of the paper are missing."""
    counts = sorted({experiment.replications for experiment in experiments}, reverse=True)
    replications = " or ".join(str(count) for count in counts)
    return {
        "rounds": f"{facts.rounds:,}",
        "of_paper": any(experiment.in_paper for experiment in experiments),
        "repeated": f"{replications} replication{'' if counts == [1] else 's'} for every point",
        "readings": [(name, READINGS.get(name, "")) for name in readings],
        "marks": _marks(experiments, counts),
        "not_here": _not_here(experiments),
    }


def _marks(experiments: Sequence[Experiment], replications: Sequence[int]) -> str:
    """The marks of the figures, in words."""
    kinds = sorted({len(experiment.sweep.values) > 1 for experiment in experiments}, reverse=True)
    if max(replications) == 1:
        return "There are no intervals: they need two replications."
    lines = "Lines are means over replications, bands their 95 % intervals."
    dots = "Dots and squares are means over replications, the lines through them 95 % intervals."
    return " ".join(lines if several else dots for several in kinds)


def _not_here(experiments: Sequence[Experiment]) -> list[dict[str, str]]:
    """The parts of the paper that a report about it lacks, and the commands that add them."""
    here = {experiment.name for experiment in experiments if experiment.in_paper}
    if not here:
        return []
    missing = [experiment for experiment in in_paper() if experiment.name not in here]
    kinds = (
        (True, "the paper's experiments on real data", "evenhand paper --real", "adds"),
        (False, "some on synthetic data", "evenhand paper", "runs"),
    )
    return [
        {"words": words, "experiments": "; ".join(mine), "command": command, "does": does}
        for real, words, command, does in kinds
        if (
            mine := [
                f"{experiment.name}, {experiment.where}"
                for experiment in missing
                if experiment.real == real
            ]
        )
    ]


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
OTHER_WORDS = {  # departures from the paper's world, told only where there are any
    "group_sizes": "arms by group",
    "bias_range": "range of the bias",
    "spread": "standard deviation of the coefficients by group",
    "averages": "true averages",
    "advantage": "advantage of the first group",
    "outstanding": "advantage of the first arm",
    "contexts": "contexts",
    "correlation": "correlation of the features",
    "scales": "scales of the features",
    "noise_shape": "noise",
    "rewards": "rewards",
    "drift": "rounds until the bias has its full size",
}
SHOWN = 20  # features that are named


class WorldInWords(NamedTuple):
    """A world in words, and what is known about the bias in it."""

    words: str
    learned: list[str]


def world_in_words(experiment: Experiment) -> WorldInWords:
    """Every number of a synthetic world, whether the file gives it or not, under each reading."""
    texts = {name: _numbers(experiment, reading) for name, reading in experiment.readings().items()}
    if len(set(texts.values())) == 1:
        return WorldInWords(f"The world: {next(iter(texts.values()))}.", [])
    parts = (f"The world under {name}: {text}." for name, text in texts.items())
    return WorldInWords(" ".join(parts), [])


def _numbers(experiment: Experiment, reading: Conventions) -> str:
    values: dict[str, list[Any]] = {name: [] for name in WORDS}
    usual = SyntheticWorld()
    for point in experiment.points(reading):
        for name in SYNTHETIC:
            if hasattr(point.world, name):  # a world with attributes has fewer settings
                values.setdefault(name, []).append(getattr(point.world, name))
        truth = point.world.true_rewards
        for name, told_as in TRUTH_WORDS.items() if truth is not None else ():
            values.setdefault(told_as, []).append(getattr(truth, name))
        values[HORIZON].append(point.horizon)
        for name, value in point.settings.items():
            if name != "conventions":
                values.setdefault(f"{name} of the policies", []).append(value)
    told = {
        name: swept
        for name, swept in values.items()
        if name not in OTHER_WORDS or any(value != getattr(usual, name) for value in swept)
        if name not in TRUTH_USUAL or any(value != TRUTH_USUAL[name] for value in swept)
    }
    told = {name: swept for name, swept in told.items() if swept}
    if set(values.get("rewards", [])) == {"binary"}:
        del told["noise"]  # it is not used
    words = {**WORDS, **OTHER_WORDS}
    numbers = ", ".join(f"{words.get(name, name)} {_span(swept)}" for name, swept in told.items())
    crossed = {_attributes(point.world) for point in experiment.points(reading)} - {""}
    return ", ".join([*sorted(crossed), numbers])


def _attributes(world: World) -> str:
    """The attributes of a world that has some, and how many arms their intersections have."""
    if not isinstance(world, CrossedWorld):
        return ""
    levels = [f"{name} ({', '.join(levels)})" for name, levels in world.attributes.items()]
    sizes = zip(world.groups.names, world.groups.sizes, strict=True)
    arms = ", ".join(f"{name} {size}" for name, size in sizes)
    once = ", candidates who come once" if world.arms == "once" else ""
    interaction = f", an interaction of {world.interaction:g}" if world.interaction else ""
    return f"attributes {' and '.join(levels)}{once}{interaction}, arms {arms}"


def _span(values: list[Any]) -> str:
    """A single value, or the lowest and the highest."""
    if len({str(value) for value in values}) == 1 and not isinstance(values[0], (int, float)):
        several = isinstance(values[0], tuple)
        return " and ".join(map(in_digits, values[0])) if several else str(values[0])
    if isinstance(values[0], str):
        return ", ".join(dict.fromkeys(values))
    low, high = in_digits(min(values)), in_digits(max(values))
    return low if low == high else f"{low} to {high}"


def table_in_words(experiment: Experiment) -> WorldInWords:
    """The rows that were played, and what all their rewards say about bias."""
    reading = next(iter(experiment.readings().values()))
    world = next(iter(experiment.points(reading))).world
    if not isinstance(world, TableWorld):
        return WorldInWords("", [])
    place = experiment.place
    source = place.get("dataset", place.get("file", ""))
    group = " and ".join([place["group"]] if isinstance(place["group"], str) else place["group"])
    sensitive = world.groups.sensitive
    names, left = world.feature_names[:SHOWN], world.n_features - SHOWN
    parts = [
        f"{world!r} of {source}: groups by {group}, "
        f"{'none sensitive' if sensitive is None else f'sensitive {sensitive}'}, reward "
        f"{place['reward']}.",
        f"{_rows(world.dropped_rows, 'was', 'were')} left out for missing values, and "
        f"{_rows(world.filled_rows, 'has', 'have')} values filled in.",
        f"Features: {', '.join(names)}{f' and {left} more' if left > 0 else ''}.",
    ]
    if world.codes:
        coded = [name for name in names if name in world.codes]
        parts.append(f"Categories by code: {', '.join(coded)}.")
    if world.identifiers:
        parts.append(f"Left out as identifiers of rows: {', '.join(world.identifiers)}.")
    return WorldInWords(" ".join(parts), world.bias().to_words().splitlines())


def _rows(number: int, singular: str, several: str) -> str:
    return f"{number:,} {f'row {singular}' if number == 1 else f'rows {several}'}"
