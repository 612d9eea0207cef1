"""What fairness metrics are computed from: sums per group, which can be added in any order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from evenhand._checks import Array, Bools, numbers
from evenhand.errors import DataError, InputError, setting

# Each is three columns: how many values there are (n_), their sum (sum_) and the sum of their
# squares (square_).
QUANTITIES = (
    "reward",
    "true_reward",
    "perceived_regret",
    "true_regret",
    "explored_reward",
    "exposure",
)
COUNTS = ("positives", "favourable", "explored", "chances")
ADDED = (
    "n",
    *(f"{part}_{name}" for name in QUANTITIES for part in ("n", "sum", "square")),
    *COUNTS,
)
COLUMNS = (*ADDED, "arms")


@dataclass(frozen=True, eq=False)
class GroupSums:
    """A row per group of sums over its decisions. Sums of parts of a log add up with `+`.

    Args:
        table: a frame with a column `group`, or groups as its index, and these columns. Only `n` is
            needed; what is missing is not reported. A group that was never chosen has a row of
            zeros.

    | column | meaning |
    |---|---|
    | `n` | decisions (pulls, or people) |
    | `n_reward`, `sum_reward`, `square_reward` | decisions with an observed reward; the sum of the rewards, and of their squares |
    | `positives` | rewards of 1, if all rewards are 0 or 1 |
    | `favourable` | rewards of 0, if all are 0 or 1 and 1 is the bad outcome |
    | `n_true_reward`, `sum_true_reward`, `square_true_reward` | the same for true rewards |
    | `n_perceived_regret`, ... | the same for perceived regret, and for `true_regret` |
    | `explored` | decisions that explored |
    | `n_explored_reward`, ... | the same for the observed rewards of these |
    | `n_exposure`, `sum_exposure`, `square_exposure` | how much attention the decisions got, such as 1 / log2(1 + position) |
    | `arms` | the number of arms of the group |
    | `chances` | how often an arm of the group could have been chosen; `arms` times all decisions unless given |

    Example:
        >>> import pandas as pd
        >>> from evenhand.fairness import GroupSums
        >>> day = GroupSums(pd.DataFrame({"group": ["F", "M"], "n": [30, 70], "arms": [5, 5]}))
        >>> (day + day).table["n"].to_dict(), (day + day).table["arms"].to_dict()
        ({'F': 60.0, 'M': 140.0}, {'F': 5.0, 'M': 5.0})
        >>> day.has("arms"), day.has("positives"), day.column("n").tolist(), day.chances().tolist()
        (True, False, [30.0, 70.0], [500.0, 500.0])
    """  # noqa: E501

    table: pd.DataFrame

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", _checked(self.table))

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""
        return tuple(str(name) for name in self.table.index)

    def has(self, *columns: str) -> bool:
        """Whether the table has these columns."""
        return all(column in self.table for column in columns)

    def __add__(self, other: GroupSums) -> GroupSums:
        if not isinstance(other, GroupSums):
            return NotImplemented
        # Rewards that are 0 or 1 in one part only are not 0 or 1 in the whole.
        own, others = ({str(c) for c in part.table} - {"positives"} for part in (self, other))
        if own != others:
            raise DataError(
                f"{setting('sums')} have different columns, {', '.join(sorted(own ^ others))} in "
                "one of them only; make both from the same columns"
            )
        names = list(dict.fromkeys((*self.groups, *other.groups)))
        keep = [name for name in COLUMNS if name in self.table and name in other.table]
        parts = [part.table[keep].reindex(names) for part in (self, other)]
        total = parts[0].fillna(0.0) + parts[1].fillna(0.0)
        if "arms" in keep:
            arms = [part["arms"] for part in parts]
            unlike = (arms[0] != arms[1]) & arms[0].notna() & arms[1].notna()
            if unlike.any():
                raise DataError(
                    f"arms of group {unlike.idxmax()} are {arms[0][unlike].iloc[0]:g} and "
                    f"{arms[1][unlike].iloc[0]:g}; allowed is the same number in both sums"
                )
            total["arms"] = arms[0].fillna(arms[1])
        return GroupSums(total)

    def column(self, name: str) -> Array:
        """One column as an array."""
        values: Array = self.table[name].to_numpy(dtype=np.float64)
        return values

    def chances(self) -> Array | None:
        """How often an arm of each group could have been chosen, if that is known."""
        if self.has("chances"):
            return self.column("chances")
        return self.column("arms") * self.column("n").sum() if self.has("arms") else None


def _checked(given: pd.DataFrame) -> pd.DataFrame:
    if not isinstance(given, pd.DataFrame):
        raise InputError(
            f"{setting('sums')} is a {type(given).__name__}; allowed is a frame with a row per "
            "group, such as fairness.group_sums makes from rows"
        )
    frame = given.set_index("group") if "group" in given.columns else given
    names = [str(name) for name in frame.index]
    if frame.index.isna().any() or len(set(names)) != len(names):
        raise DataError("group has a missing or repeated name; allowed is one row per group")
    if not names:
        raise DataError(f"{setting('sums')} has no rows; allowed is a row per group, at least one")
    unknown = [str(name) for name in frame.columns if name not in COLUMNS]
    if unknown or "n" not in frame.columns:
        problem = f"has an unknown column {unknown[0]!r}" if unknown else "has no column 'n'"
        raise DataError(f"{setting('sums')} {problem}; allowed are group, {', '.join(COLUMNS)}")
    table = pd.DataFrame(
        {name: numbers(name, frame[name].to_numpy()) for name in COLUMNS if name in frame},
        index=pd.Index(names, name="group", dtype=object),
    )
    _check_counts(table)
    for name in QUANTITIES:
        _check_moments(table, name)
    if "positives" in table:
        _check_positives(table)
    return table


def _check_counts(table: pd.DataFrame) -> None:
    wholes = ["n", *(f"n_{name}" for name in QUANTITIES), *COUNTS, "arms"]
    for name in [name for name in wholes if name in table]:
        bad = (table[name] < 0) | (table[name] != np.floor(table[name]))
        _refuse(table, name, bad, "whole numbers of at least 0")
    for name in [name for name in wholes if name in table and name not in ("n", "arms", "chances")]:
        _refuse(table, name, table[name] > table["n"], "at most n, the decisions of the group")
    if "chances" in table:
        _refuse(table, "chances", table["chances"] < table["n"], "at least n: each took a chance")
    if "arms" in table:
        _refuse(table, "arms", table["arms"] < 1, "at least one arm in every group")


def _check_moments(table: pd.DataFrame, name: str) -> None:
    parts = [f"{part}_{name}" for part in ("n", "sum", "square")]
    present = [part for part in parts if part in table]
    if not present:
        return
    if len(present) < 3:
        missing = next(part for part in parts if part not in table)
        raise DataError(
            f"{setting('sums')} has {present[0]!r} and no {missing!r}; give all three of {name}"
        )
    n, total, square = (table[part] for part in parts)
    # A sum of squares is never below the squared sum over n (Cauchy and Schwarz).
    low = (n * square < total**2 * (1.0 - 1e-9)) | (square < 0) | ((n == 0) & (square > 0))
    _refuse(table, f"square_{name}", low, f"at least sum_{name} squared over n_{name}")
    if name == "exposure":
        _refuse(table, "sum_exposure", total < 0, "sums of weights of at least 0")


def _check_positives(table: pd.DataFrame) -> None:
    if "n_reward" not in table:
        raise DataError(
            f"{setting('sums')} has 'positives' and no 'n_reward'; give the sums of the rewards"
        )
    for name in ("sum_reward", "square_reward"):
        unlike = (table[name] - table["positives"]).abs() > 1e-6 * (1.0 + table["positives"])
        _refuse(table, name, unlike, "positives, as with rewards of 0 and 1; or leave it out")


def _refuse(table: pd.DataFrame, column: str, bad: pd.Series[bool] | Bools, allowed: str) -> None:
    wrong = np.asarray(bad)
    if wrong.any():
        group = table.index[wrong][0]
        raise DataError(
            f"{column} of group {group} is {table[column][wrong].iloc[0]:g}; allowed is {allowed}"
        )
