"""The bias by attribute and by intersection, with intervals and in words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.policies.pooled_group_fair._reporting import Reported, digits, single
from evenhand.policies.pooled_group_fair.general._design import INTERSECTION, LEVEL, ReportRow
from evenhand.policies.pooled_group_fair.general.beliefs import GeneralBeliefs


@dataclass(frozen=True, eq=False, repr=False)
class GeneralBias(Reported):
    """How the feedback is distorted by the levels of attributes, and by their intersections.

    Made by `PooledGroupFair.bias` where there are several attributes, where membership comes with
    the round, or where arms come once.

    Attributes:
        beliefs: the posterior behind it.
        level: of the intervals.
        features: the names of the features.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> table = {"sex": ["F", "F", "M", "M"] * 2, "age": ["old", "young"] * 4}
        >>> groups = eh.Groups.of_attributes(table)
        >>> policy = eh.PooledGroupFair(groups, n_features=1, reference={"sex": "M"}, seed=1)
        >>> policy.absorb(np.tile(np.arange(8), 5), np.ones((40, 1)), [1, 2, 6, 7, 1, 2, 6, 7] * 5)
        >>> frame = policy.bias().to_frame()
        >>> frame[frame.kind == "level"][["group", "estimate"]].round(1).values.tolist()
        [['sex: F', -5.0], ['sex: M', 0.0], ['age: old', -0.5], ['age: young', 0.5]]
        >>> print(policy.bias().to_words().split(" (")[0])
        Per unit of x1, the feedback for sex F falls by 5 relative to that for sex M
        >>> policy.bias().at([[2.0]])["estimate"].round(1).tolist()[:2]
        [-10.0, 0.0]
        >>> policy.bias().chart("Loans").to_dict()["title"]["text"]
        'Loans'
    """

    beliefs: GeneralBeliefs

    def to_frame(self) -> pd.DataFrame:
        """A row per level or intersection, and feature: the bias with one more of the feature.

        That of a level (`kind` "level") is against the reference's levels of the same attribute, on
        average over the intersections. That of an intersection is against the reference as a whole;
        `beyond` is by how much it differs from the best sum of levels, and `own` how far that rests
        on its own data: where it is below one half, the intersection borrows from its levels.
        Intervals are as in `PooledBias.to_frame`; that of `beyond` holds for all rows at once.
        """
        return super().to_frame()

    @property
    def spread(self) -> float:
        """How far arms are from the sum of their effects, for a feature of its usual size."""
        return self.beliefs.spread

    def __repr__(self) -> str:
        names = ", ".join(attribute.name for attribute in self.beliefs.design.attributes)
        number = self.beliefs.number
        return f"GeneralBias(attributes={names}, features={len(self.features)}, rewards={number})"

    # Inside -------------------------------------------------------------------------------------

    _title = "Bias by feature, level and intersection"

    @cached_property
    def _rows(self) -> list[ReportRow]:
        return self.beliefs.design.rows(self.beliefs.weights)

    @property
    def _count(self) -> int:
        return len(self._rows)

    @cached_property
    def _attribute_of(self) -> dict[str, int]:
        """The number of the attribute that a level is of, by the name of its row."""
        attributes = enumerate(self.beliefs.design.attributes)
        return {f"{item.name}: {level}": a for a, item in attributes for level in item.levels}

    def _table(self, at: NDArray[np.float64], which: NDArray[np.int64]) -> pd.DataFrame:
        weights = np.array([row.contrast for row in self._rows])[which]
        columns = self._estimates(at, which, weights)
        why = columns.pop("why")
        kinds = np.array([row.kind for row in self._rows], dtype=object)[which]
        shown = (kinds == INTERSECTION) & np.isfinite(columns["low"].astype(np.float64))
        extra, width = self._beyond(at, which, self._for_all(weights))
        design = self.beliefs.design
        own = np.concatenate([np.full(design.n_levels, np.nan), self.beliefs.own_share()])
        return pd.DataFrame(
            {
                "kind": kinds,
                "group": np.array([row.name for row in self._rows], dtype=object)[which],
                **columns,
                "beyond": np.where(shown, extra, np.nan),
                "beyond_width": np.where(shown, width, np.nan),
                "own": own[which],
                "why": why,
            }
        )

    def _beyond(
        self, at: NDArray[np.float64], which: NDArray[np.int64], level: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """By how much intersections differ from the best sum of levels, and the width of that."""
        design, truth = self.beliefs.design, self.measured
        beyond = np.zeros((len(self._rows), design.kinds.size))
        beyond[design.n_levels :, 1 + design.n_levels :] = design.beyond
        if truth is not None and truth.usable:
            parts = np.zeros(len(which), dtype=bool)
            return truth.of_contrasts(at, beyond[which], parts, level)
        return self.beliefs.of_contrasts(at, beyond[which], level)[:2]

    @cached_property
    def _reference(self) -> str:
        """The reference, in words."""
        parts = [
            self._against(attribute) for attribute in range(len(self.beliefs.design.attributes))
        ]
        return " and ".join(parts)

    def _against(self, number: int) -> str:
        """The levels of an attribute in the reference, in words."""
        design = self.beliefs.design
        attribute, first = design.attributes[number], 1 + design.first_of(number)
        weights = self.beliefs.weights[first : first + len(attribute.levels)]
        named = [name for name, weight in zip(attribute.levels, weights, strict=True) if weight > 0]
        if len(named) == 1:
            return f"{attribute.name} {named[0]}"
        return f"the mean of {attribute.name} {', '.join(named)}"

    @cached_property
    def _sentences(self) -> list[str]:
        if not self.beliefs.number:
            return ["Nothing has been learned yet."]
        table = self.to_frame()
        table = table[table.why != "the reference"]
        levels = table[table.kind == LEVEL]
        cells = table[table.kind == INTERSECTION]
        sentences = self._of_levels(levels)
        if len(cells):
            sentences += self._of_cells(cells)
        return sentences + self._of_single_arms()

    def _of_levels(self, table: pd.DataFrame) -> list[str]:
        """A sentence for every bias of a level that is clearly not zero; then the others."""
        lows, highs = table.simultaneous_low, table.simultaneous_high
        clear = table[(table.why == "") & ((lows > 0.0) | (highs < 0.0))]
        sentences = [self._of_level(row) for row in clear.to_dict("records")]
        rest = int((table.why == "").sum()) - len(clear)
        if rest:
            noun = "bias of a level" if rest == 1 else "biases of levels"
            sentences.append(f"{rest} {noun} cannot be told apart from zero.")
        unknown = list(dict.fromkeys(table[table.why != ""].group))
        if unknown:
            sentences.append(
                f"For {', '.join(unknown)} there is not enough feedback yet to say anything about "
                "some features."
            )
        return sentences

    def _of_single_arms(self) -> list[str]:
        """On levels with one arm; groups that come with the round, or arms once, have none."""
        beliefs = self.beliefs
        if beliefs.groups.changes or not beliefs.recurs:
            return []
        arms, sentences, first = beliefs.design.levels.sum(axis=0), [], 0
        for attribute in beliefs.design.attributes:
            counts = arms[first : first + len(attribute.levels)]
            alone = [
                f"{attribute.name} {level}"
                for level, number in zip(attribute.levels, counts, strict=True)
                if number == 1
            ]
            sentences += single(alone, int((counts > 0).sum()), f"level of {attribute.name}")
            first += len(attribute.levels)
        return sentences

    def _of_level(self, row: dict[Any, Any]) -> str:
        number = self._attribute_of[row["group"]]
        name = row["group"].replace(": ", " ", 1)
        turn = "rises" if row["estimate"] > 0.0 else "falls"
        low, high = digits(row["simultaneous_low"]), digits(row["simultaneous_high"])
        return (
            f"Per unit of {row['feature']}, the feedback for {name} {turn} by "
            f"{digits(abs(row['estimate']))} relative to that for {self._against(number)} "
            f"({100 * self.level:g} % interval {low} to {high})."
        )

    def _of_cells(self, table: pd.DataFrame) -> list[str]:
        """Sentences on what intersections add to their levels, and on those that borrow."""
        known = table[table.why == ""]
        clear = known[known.own.notna() & (known.beyond.abs() > known.beyond_width)]
        sentences = [
            f"Per unit of {row['feature']}, the feedback for {row['group']} "
            f"{'rises' if row['beyond'] > 0.0 else 'falls'} by {digits(abs(row['beyond']))} "
            "relative to the sum of its levels."
            for row in clear.to_dict("records")
        ]
        if not len(clear) and len(known):
            sentences.append("No intersection can be distinguished from the sum of its levels.")
        borrows = list(dict.fromkeys(known[known.own < 0.5].group))
        if borrows and len(borrows) == known[known.own.notna()].group.nunique() > 1:
            sentences.append("All intersections borrow from their levels.")
        elif borrows:
            is_single = len(borrows) == 1
            verb, pronoun = (
                ("borrows from its", "it") if is_single else ("borrow from their", "them")
            )
            sentences.append(
                f"{', '.join(borrows)} {verb} levels: there is too little feedback to tell "
                f"{pronoun} from these."
            )
        return sentences
