"""The bias by attribute and by intersection, with intervals and in words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from evenhand._checks import numbers
from evenhand._prose import in_digits
from evenhand.errors import InputError, setting
from evenhand.policies.pooled._basis import ASSUMPTION
from evenhand.policies.pooled.mixed.beliefs import MixedBeliefs

if TYPE_CHECKING:
    import altair as alt

LEVEL, INTERSECTION = "level", "intersection"


@dataclass(frozen=True, eq=False, repr=False)
class MixedBias:
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
    """

    beliefs: MixedBeliefs
    level: float
    features: tuple[str, ...]

    def to_frame(self) -> pd.DataFrame:
        """A row per level or intersection, and feature: the bias with one more of the feature.

        That of a level (`kind` "level") is against the reference's levels of the same attribute, on
        average over the intersections. That of an intersection is against the reference as a whole;
        `beyond` is by how much it differs from the best sum of levels, and `own` how far that rests
        on its own data: where it is below one half, the intersection borrows from its levels.
        Intervals are as in `PooledBias.to_frame`; that of `beyond` holds for all rows at once.
        """
        d = len(self.features)
        table = self._table(np.tile(np.eye(d), (len(self._rows), 1)), self._each(d))
        table.insert(2, "feature", np.tile(self.features, len(self._rows)).astype(object))
        return table

    def at(self, contexts: ArrayLike) -> pd.DataFrame:
        """The bias of every level and intersection at one or more contexts, in units of reward."""
        rows = np.atleast_2d(numbers("contexts", contexts, None))
        if rows.ndim != 2 or rows.shape[1] != len(self.features):
            raise InputError(
                f"{setting('contexts')} has shape {rows.shape}; allowed is (rows, "
                f"{len(self.features)})"
            )
        many = len(self._rows)
        table = self._table(np.repeat(rows, many, axis=0), np.tile(np.arange(many), len(rows)))
        table.insert(2, "context", np.repeat(np.arange(len(rows)), many))
        return table

    def chart(self, title: str = "Bias by feature, level and intersection") -> alt.TopLevelMixin:
        """The bias of every row and feature, with both intervals. Needs the extra `charts`."""
        from evenhand.charts import bias_chart

        axis = f"change of the gap to {self._whole}, in units of reward"
        return bias_chart(self.to_frame(), None, axis, title, self.level)

    @property
    def noise(self) -> float:
        """The standard deviation of rewards around their mean, as estimated."""
        return self.beliefs.noise

    @property
    def spread(self) -> float:
        """How far arms are from the sum of their effects, for a feature of its usual size."""
        return self.beliefs.spread

    def to_words(self) -> str:
        """What was learned, in sentences; what they rest on comes last."""
        return "\n".join([*self._sentences, ASSUMPTION])

    def __str__(self) -> str:
        return self.to_words()

    def __repr__(self) -> str:
        names = ", ".join(attribute.name for attribute in self.beliefs.design.attributes)
        number = self.beliefs.number
        return f"MixedBias(attributes={names}, features={len(self.features)}, rewards={number})"

    # Inside -------------------------------------------------------------------------------------

    @cached_property
    def _rows(self) -> list[tuple[str, str, NDArray[np.float64]]]:
        """Kind, name and contrast of every row."""
        design, reference = self.beliefs.design, self.beliefs.weights
        eye, rows, column = np.eye(design.kinds.size), [], 1
        for number, attribute in enumerate(design.attributes):
            mine = design.kinds == number + 1
            for level in attribute.levels:
                contrast = eye[column] - reference * mine
                contrast[1 + design.n_levels :] = contrast[1 : 1 + design.n_levels] @ design.summed
                rows.append((LEVEL, f"{attribute.name}: {level}", contrast))
                column += 1
        for name, cell in zip(design.names, design.cells, strict=True):
            levels = np.zeros((1, design.n_levels))
            levels[0, cell] = 1.0
            rows.append((INTERSECTION, name, design.weights(levels)[0] - reference))
        return rows

    @cached_property
    def _attribute_of(self) -> dict[str, int]:
        """The number of the attribute that a level is of, by the name of its row."""
        attributes = enumerate(self.beliefs.design.attributes)
        return {f"{item.name}: {level}": a for a, item in attributes for level in item.levels}

    def _each(self, times: int) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self._rows)), times)

    def _table(self, at: NDArray[np.float64], which: NDArray[np.int64]) -> pd.DataFrame:
        beliefs = self.beliefs
        weights = np.array([row[2] for row in self._rows])[which]
        is_reference = ~weights.any(axis=1)
        estimate, width, floor = beliefs.of_contrasts(at, weights, self.level)
        several = max(int((~is_reference).sum()), 1)
        wider = beliefs.of_contrasts(at, weights, 1.0 - (1.0 - self.level) / several)[1]
        known = np.isfinite(width)
        estimate = np.where(known, estimate, np.nan)
        kinds = np.array([row[0] for row in self._rows], dtype=object)[which]
        design = beliefs.design
        beyond = np.zeros((len(self._rows), design.kinds.size))
        beyond[design.n_levels :, 1 + design.n_levels :] = design.beyond
        extra, extra_width, _ = beliefs.of_contrasts(
            at, beyond[which], 1.0 - (1.0 - self.level) / several
        )
        own = np.concatenate([np.full(design.n_levels, np.nan), beliefs.own_share()])
        of_cells = kinds == INTERSECTION
        why = np.where(known, "", "not enough feedback yet")
        return pd.DataFrame(
            {
                "kind": kinds,
                "group": np.array([row[1] for row in self._rows], dtype=object)[which],
                "estimate": estimate,
                "low": np.where(known, estimate - width, -np.inf),
                "high": np.where(known, estimate + width, np.inf),
                "simultaneous_low": np.where(known, estimate - wider, -np.inf),
                "simultaneous_high": np.where(known, estimate + wider, np.inf),
                "floor": floor,
                "beyond": np.where(of_cells & known, extra, np.nan),
                "beyond_width": np.where(of_cells & known, extra_width, np.nan),
                "own": own[which],
                "why": np.where(is_reference, "the reference", why).astype(object),
            }
        )

    @cached_property
    def _whole(self) -> str:
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
        return sentences

    def _of_levels(self, table: pd.DataFrame) -> list[str]:
        """A sentence for every bias of a level that can be told from zero; then the others."""
        lows, highs = table.simultaneous_low, table.simultaneous_high
        clear = table[(table.why == "") & ((lows > 0.0) | (highs < 0.0))]
        sentences = [self._of_level(row) for row in clear.to_dict("records")]
        rest = int((table.why == "").sum()) - len(clear)
        if rest:
            what = "bias of a level" if rest == 1 else "biases of levels"
            sentences.append(f"{rest} {what} cannot be told from zero.")
        unknown = list(dict.fromkeys(table[table.why != ""].group))
        if unknown:
            sentences.append(
                f"For {', '.join(unknown)} there is not enough feedback yet to say anything of "
                "some features."
            )
        return sentences

    def _of_level(self, row: dict[Any, Any]) -> str:
        number = self._attribute_of[row["group"]]
        name = row["group"].replace(": ", " ", 1)
        direction = "higher" if row["estimate"] > 0.0 else "lower"
        low, high = _digits(row["simultaneous_low"]), _digits(row["simultaneous_high"])
        return (
            f"With one more of {row['feature']}, the feedback for {name} is {direction} by "
            f"{_digits(abs(row['estimate']))} than that for {self._against(number)} "
            f"({100 * self.level:g} % interval {low} to {high})."
        )

    def _of_cells(self, table: pd.DataFrame) -> list[str]:
        """What intersections add to their levels, and which of them borrow."""
        known = table[table.why == ""]
        clear = known[known.own.notna() & (known.beyond.abs() > known.beyond_width)]
        sentences = [
            f"With one more of {row['feature']}, the feedback for {row['group']} is "
            f"{'higher' if row['beyond'] > 0.0 else 'lower'} by {_digits(abs(row['beyond']))} than "
            "its levels add up to."
            for row in clear.to_dict("records")
        ]
        if not len(clear) and len(known):
            sentences.append("No intersection can be told from what its levels add up to.")
        borrows = list(dict.fromkeys(known[known.own < 0.5].group))
        if borrows and len(borrows) == known[known.own.notna()].group.nunique() > 1:
            sentences.append("All intersections borrow from their levels.")
        elif borrows:
            one = len(borrows) == 1
            verb, it = ("borrows from its", "it") if one else ("borrow from their", "them")
            sentences.append(
                f"{', '.join(borrows)} {verb} levels: there is too little feedback to tell {it} "
                "from these."
            )
        return sentences


def _digits(number: float) -> str:
    """Three digits, as people write them."""
    return in_digits(float(f"{number:.3g}"))
