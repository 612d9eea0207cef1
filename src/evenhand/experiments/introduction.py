"""The first words of a report: what was run, how to read it, and what is not in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evenhand.experiments.bundled import in_paper
from evenhand.experiments.experiment import Experiment

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
