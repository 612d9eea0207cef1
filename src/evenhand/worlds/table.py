"""TableWorld: real people in a table, one drawn per arm and round."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand import _checks
from evenhand.groups import Groups
from evenhand.worlds import features as encoding
from evenhand.worlds.arms import grouped, sensitive_label, sorted_by_arm
from evenhand.worlds.base import World, receive, world_kernel
from evenhand.worlds.buckets import AS_IS, Buckets, group_labels
from evenhand.worlds.features import INTERCEPT, Feature, is_nominal
from evenhand.worlds.frames import read_table
from evenhand.worlds.missing import ERROR, Choice, Missing, filled
from evenhand.worlds.rewards import rewards_of

FEW_ROWS = 30  # an arm with fewer is drawn from the same few people over and over


class TableInstance(NamedTuple):
    """The rows, sorted by arm. Shared by all replications: nothing is drawn once."""

    contexts: NDArray[np.float64]  # (rows, features)
    rewards: NDArray[np.float64]
    true_rewards: NDArray[np.float64]  # empty where they are not known
    first: NDArray[np.int64]  # the first row of every arm and, last, the number of rows
    noise: float
    absolute: bool


@world_kernel(TableInstance)
def _draw_round(instance, generator, contexts, observed, true):  # type: ignore[no-untyped-def]
    """One row per arm, each as likely as any other of the arm."""
    n, d = contexts.shape
    for i in range(n):
        start, stop = instance.first[i], instance.first[i + 1]
        row = min(start + int(generator.random() * (stop - start)), stop - 1)
        for k in range(d):
            contexts[i, k] = instance.contexts[row, k]
        observed[i] = instance.rewards[row]
        true[i] = instance.true_rewards[row] if instance.true_rewards.size else np.nan


@world_kernel(TableInstance, receive)
def _receive(instance, mean, noise):  # type: ignore[no-untyped-def]
    return abs(mean + noise) if instance.absolute else mean + noise


class TableWorld(World):
    """A world from a table of people and outcomes: every round draws one row for each arm.

    An arm is a combination of a group with the values, or buckets, of the `arms` columns, such as
    women between 27 and 45. Its rows are drawn with replacement; the context is the row's features
    and the reward the row's reward.

    What every row would have earned without bias is not in a table, so true regret is missing in
    the results, unless a column with the true rewards is named.

    Args:
        data: a data frame, a mapping of columns, or the path of a CSV or Parquet file.
        group: the column that says to which group a row belongs, or several for intersections.
        reward: the column with the observed reward: numbers, or True and False.
        arms: the columns that make the arms together with the group: a name, a list of names, or a
            mapping from names to how they are cut: "as is", a number of buckets of equal width,
            edges, or {"quantiles": k}.
        sensitive: the value of `group` whose feedback may be distorted.
        others: "apart", every value of `group` is a group; or "together", all but the sensitive
            one are a single group, as policies for two groups need it.
        features: the columns of the context; without it all that have no other part.
        leave_out: columns that are no features.
        nominal: categories become integer "codes" (the paper), or "one-hot" features.
        nominal_columns: columns of numbers that are categories in truth.
        scale: features as they are ("none", the paper), or "standardise": mean 0, deviation 1.
        intercept: whether a feature that is always 1 comes first. Without it, only where features
            are standardised: their mean says nothing of the reward's any more.
        missing: "error", "drop" rows, or "fill" (median and a flag; a category of its own); or a
            mapping from columns to these, with "others" for the rest.
        missing_marks: texts that stand for a missing value in a CSV file; only the empty one.
        reward_values: numbers for the categories of a nominal reward, {"paid": 1, "default": 0}.
        true_reward: the column with the true reward, where it is known.
        noise: the standard deviation of normal noise to add to rewards.
        absolute_rewards: take the absolute value of the noisy reward, as the authors' code does.
        separator: between the columns of a CSV file; found by itself without one.

    Example:
        >>> import numpy as np, pandas as pd, evenhand as eh
        >>> draw = np.random.default_rng(1)
        >>> table = pd.DataFrame({"sex": draw.choice(["F", "M"], 400), "paid": draw.random(400),
        ...                       "age": draw.integers(18, 80, 400), "debt": draw.random(400)})
        >>> world = eh.TableWorld(table, group="sex", sensitive="F", arms={"age": 2}, reward="paid")
        >>> world.n_arms, world.feature_names
        (4, ('debt',))
        >>> world.arms["arm"].tolist()[:2]
        ['(17.939, 48.5] & F', '(17.939, 48.5] & M']
    """

    def __init__(
        self,
        data: Any,
        *,
        group: str | Sequence[str],
        reward: str,
        arms: str | Sequence[str] | Mapping[str, Buckets] = (),
        sensitive: object = None,
        others: str = "apart",
        features: Sequence[str] | None = None,
        leave_out: Sequence[str] = (),
        nominal: str = "codes",
        nominal_columns: Collection[str] = (),
        scale: str = "none",
        intercept: bool | None = None,
        missing: Choice = ERROR,
        missing_marks: Collection[str] = ("",),
        reward_values: Mapping[str, float] | None = None,
        true_reward: str | None = None,
        noise: float = 0.0,
        absolute_rewards: bool = False,
        separator: str | None = None,
    ) -> None:
        _checks.one_of("nominal", nominal, ("codes", "one-hot"))
        _checks.one_of("scale", scale, ("none", "standardise"))
        _checks.one_of("others", others, ("apart", "together"))
        self.noise = _checks.number("noise", noise, 0.0, np.inf)
        self.absolute_rewards = bool(absolute_rewards)
        group_columns = _names("group", group)
        cuts = arms if isinstance(arms, Mapping) else dict.fromkeys(_names("arms", arms), AS_IS)
        rewards = [reward, *([true_reward] if true_reward else [])]
        parts = [*group_columns, *cuts, *rewards]
        asked = None if features is None else {*parts, *_names("features", features)}
        frame = read_table(data, missing_marks, separator, asked)
        listed = (
            [name for name in frame.columns if name not in {*parts, *leave_out}]
            if features is None
            else _names("features", features)
        )
        used = list(dict.fromkeys([*parts, *listed]))
        _check_columns(frame, used, leave_out, nominal_columns)
        if set(listed) & set(rewards):
            raise ValueError(f"features: {reward!r} is the reward; a reward cannot be a feature")
        missing_values = Missing(frame, used, missing, unfillable=rewards)
        frame = missing_values.settle(frame[used])
        self.missing = missing_values.table()
        """A row per column that lacks values: how many, and what was done."""
        self.dropped_rows = missing_values.dropped_rows

        labels = grouped(group_labels(frame, group_columns), sensitive, others, group_columns)
        order, first, self.arms = sorted_by_arm(frame, labels, cuts)
        """A row per arm: its name, its group, the columns it is made of, its rows and rewards."""
        self.groups = Groups(
            list(self.arms["group"]), sensitive_label(sensitive, group_columns, labels)
        )
        values = rewards_of(frame[reward], reward_values)[order]
        true = rewards_of(frame[true_reward], reward_values)[order] if true_reward else np.empty(0)
        self.arms["mean_reward"] = np.add.reduceat(values, first[:-1]) / np.diff(first)
        encoding.numbers_in_text(frame, listed, nominal_columns)
        constant = (scale == "standardise") if intercept is None else bool(intercept)
        columns = _features(frame, listed, nominal_columns, nominal == "one-hot", constant)
        columns = encoding.told_of_constants(columns, constant, scale == "standardise")
        if not columns and not constant:
            raise ValueError("features are none; name at least one column, or ask for an intercept")
        contexts, self.scales = _matrix(columns, order, constant, scale == "standardise")
        """A row per feature: the mean and the deviation that it was standardised by."""
        self.feature_names: tuple[str, ...] = tuple(self.scales["feature"])
        self.n_features = len(self.feature_names)
        self._instance = TableInstance(
            contexts, values, true, first, self.noise, self.absolute_rewards
        )
        self._tell_of_few_rows()

    @property
    def n_rows(self) -> int:
        """How many rows there are to draw from."""
        return int(self._instance.first[-1])

    def begin(self, generator: np.random.Generator) -> TableInstance:
        """The same rows in every replication; no copy is made."""
        return self._instance

    def fingerprint(self) -> str:
        """A hash of the rows, and the rest of the description."""
        parts = (self.feature_names, self.groups, self.noise, self.absolute_rewards)
        return f"{self._digest} {parts!r}"

    @cached_property
    def _digest(self) -> str:
        whole = hashlib.sha256()
        for part in self._instance[:4]:
            whole.update(np.ascontiguousarray(part).view(np.uint8).data)
        return whole.hexdigest()

    def __repr__(self) -> str:
        sizes = ", ".join(
            f"{name} {size}"
            for name, size in zip(self.groups.names, self.groups.sizes, strict=True)
        )
        return (
            f"TableWorld({self.n_rows:,} rows, {self.n_arms} arms ({sizes}), "
            f"{self.n_features} features)"
        )

    def _tell_of_few_rows(self) -> None:
        few = self.arms[self.arms["rows"] < FEW_ROWS]
        if len(few):
            named = ", ".join(f"{row.arm} {row.rows}" for row in few.head(5).itertuples())
            more = f" and {len(few) - 5} more" if len(few) > 5 else ""
            warnings.warn(
                f"arms: fewer than {FEW_ROWS} rows in {named}{more}: the same people are drawn "
                "over and over; use fewer or wider buckets",
                UserWarning,
                stacklevel=3,
            )
        single = self.arms.groupby("group")["rows"].agg(["size", "sum"]).query("size == 1")
        if len(single):
            named = ", ".join(f"{row.Index} ({row.sum:,} rows)" for row in single.itertuples())
            warnings.warn(
                f"group: a single arm in {named}: its bias cannot be told from the worth of that "
                "arm; cut the arms columns more finely, or merge groups",
                UserWarning,
                stacklevel=3,
            )


def _names(what: str, given: str | Sequence[str]) -> list[str]:
    names = [given] if isinstance(given, str) else list(given)
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong or (what == "group" and not names):
        raise ValueError(f"{what} is {given!r}; allowed are names of columns")
    return names


def _check_columns(
    frame: pd.DataFrame, used: Sequence[str], leave_out: Sequence[str], nominal: Collection[str]
) -> None:
    for name in [*used, *leave_out, *nominal]:
        if name not in frame.columns:
            near = get_close_matches(str(name), [str(column) for column in frame.columns], n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ValueError(
                f"column {name!r} is not in the table; {hint}it has "
                f"{', '.join(str(column) for column in frame.columns)}"
            )
    if frame.empty:
        raise ValueError("data has no rows; give a table with some")


def _features(
    frame: pd.DataFrame,
    listed: Sequence[str],
    nominal_columns: Collection[str],
    one_hot: bool,
    intercept: bool,
) -> list[Feature]:
    found: list[Feature] = []
    for name in listed:
        nominal = name in nominal_columns or is_nominal(frame[name])
        column, flag = filled(frame[name], nominal)
        found += encoding.encode(column, nominal, one_hot, leave_first_out=intercept)
        if flag is not None:
            found.append(Feature(str(flag.name), flag.to_numpy(dtype=np.float64)))
    return found


def _matrix(
    columns: Sequence[Feature], order: NDArray[np.int64], intercept: bool, standardise: bool
) -> tuple[NDArray[np.float64], pd.DataFrame]:
    """The contexts, filled in one room column by column, and what they were scaled by."""
    extra = int(intercept)
    contexts = np.empty((order.size, extra + len(columns)))
    scales = [(INTERCEPT, 0.0, 1.0)] * extra
    if intercept:
        contexts[:, 0] = 1.0
    for k, feature in enumerate(columns):
        mean, deviation = 0.0, 1.0
        if standardise:
            mean, deviation = float(feature.values.mean()), float(feature.values.std())
        contexts[:, extra + k] = (feature.values[order] - mean) / deviation
        scales.append((feature.name, mean, deviation))
    return contexts, pd.DataFrame(scales, columns=["feature", "mean", "deviation"])
