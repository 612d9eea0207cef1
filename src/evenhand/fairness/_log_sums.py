"""From a log with a row per decision to sums per group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand._checks import Array, numbers, whole_numbers
from evenhand.errors import DataError, InputError, setting
from evenhand.events._decisions import GROUP, chances_of, decided, log_labels
from evenhand.events.columns import ROLES
from evenhand.fairness.sums import GroupSums
from evenhand.groups import Groups

OPTIONAL = ("true_reward", "perceived_regret", "true_regret")


def group_sums(
    log: pd.DataFrame,
    group: str = "group",
    reward: str = "reward",
    *,
    groups: Groups | Sequence[object] | None = None,
    arm: str | None = None,
    true_reward: str | None = None,
    perceived_regret: str | None = None,
    true_regret: str | None = None,
    explored: str | None = None,
    position: str | None = None,
    first_position: int = 1,
    exposure: str | None = None,
    arms: Mapping[str, int] | None = None,
    chances: Mapping[str, str | int] | None = None,
) -> GroupSums:
    """Sum up a log with a row per decision, such as the trace of a simulation.

    A log in the log format, as `read_log` gives it, also has rows that are not decisions. They are
    recognised by its columns `round`, `propensity_score` and `override`. The sums are about what
    was done in the end, since that is what people got: if a human chose another arm, the row of
    that arm is counted instead of the policy's, with its group and its reward, as a decision that
    did not explore. Rows of history are not counted. `evenhand.offpolicy.evaluate` estimates
    what the policy alone would have done. Such a log also has the groups of arms that were
    never chosen and, if it keeps candidates, how often each could have been chosen.

    Args:
        log: a row per decision, or a log in the log format. A missing reward is NaN.
        group: the column with the group of each row. Without such a column the group is that of the
            row's `arm`.
        reward: the column of the observed reward. If all are 0 or 1, positives are counted.
        groups: the groups of the arms, or the names of all groups. Then a group without a decision
            also has a row.
        arm: the column with the number of the arm, from which the group is looked up: item_id, arm
            or action unless given.
        true_reward: the column of that name unless given, as for the next three.
        perceived_regret: how much more the best arm by observed reward would have given.
        true_regret: how much more the best arm by true reward would have given.
        explored: true where the decision explored.
        position: the column with the position at which a choice was shown. The exposure of the
            first is 1, of the k-th 1 / log2(1 + k), the discount of DCG.
        first_position: the number of the first position: 1, or 0 in logs that count from 0, as
            those of evenhand do.
        exposure: a column with the exposure itself.
        arms: the number of arms of each group, if it is not known from `groups`.
        chances: for each group, how often one of its arms could have been chosen, as a number or
            as the column with the number of its arms available in each round.

    Example:
        >>> import evenhand as eh
        >>> world = eh.SyntheticWorld(n_arms=4, n_sensitive=2)
        >>> runs = eh.simulate([eh.UniformRandom], world, horizon=50, seed=1, trace=True)
        >>> sums = eh.fairness.group_sums(runs.trace, groups=["F", "F", "M", "M"])
        >>> sums.table[["n", "arms"]].to_dict("index")
        {'F': {'n': 2038.0, 'arms': 2.0}, 'M': {'n': 1962.0, 'arms': 2.0}}
    """
    if not isinstance(log, pd.DataFrame):
        raise InputError(
            f"{setting('log')} is a {type(log).__name__}; allowed is a pandas frame of decisions"
        )
    if groups is None and group == GROUP and (labels_of_arms := log_labels(log)) is not None:
        groups = Groups(labels_of_arms)
        chances = chances_of(log) if chances is None and arms is None else chances
    log, arm = decided(log), arm_column(log, arm)
    known = _groups(log, group, arm, groups)
    labels, names = _labels(log, group, arm, known, groups)
    codes = pd.Categorical(labels, categories=names).codes.astype(np.int64)
    n = np.bincount(codes, minlength=len(names))
    out: dict[str, Array] = {"n": n.astype(np.float64)}

    def add(name: str, values: Array) -> None:
        has_value = ~np.isnan(values)
        of, known = codes[has_value], values[has_value]
        out[f"n_{name}"] = np.bincount(of, minlength=len(names)).astype(np.float64)
        out[f"sum_{name}"] = np.bincount(of, known, len(names)).astype(np.float64)
        out[f"square_{name}"] = np.bincount(of, known**2, len(names)).astype(np.float64)

    rewards = _column(log, reward, "reward")
    add("reward", rewards)
    known_rewards = rewards[~np.isnan(rewards)]
    if known_rewards.size and np.isin(known_rewards, (0.0, 1.0)).all():
        out["positives"] = out["sum_reward"]
    given = {
        "true_reward": true_reward,
        "perceived_regret": perceived_regret,
        "true_regret": true_regret,
    }
    for name in OPTIONAL:
        if given[name] is not None or name in log.columns:
            add(name, _column(log, given[name] or name, name))
    if explored is not None or "explored" in log.columns:
        tried = _flags(log, explored or "explored")
        out["explored"] = np.bincount(codes, tried, len(names)).astype(np.float64)
        add("explored_reward", np.where(tried, rewards, np.nan))
    if position is not None or exposure is not None:
        first = _checks.whole("first_position", first_position, least=0)
        add("exposure", _exposure(log, position, first, exposure))
    counted = _arms(known, arms, names)
    if counted is not None:
        out["arms"] = counted
    if chances is not None:
        out["chances"] = _chances(log, chances, names)
    return GroupSums(pd.DataFrame({"group": list(names), **out}))


def _groups(
    log: pd.DataFrame, group: str, arm: str, given: Groups | Sequence[object] | None
) -> Groups | None:
    """The groups of the arms: as given, or a label for each arm if there is no column."""
    if given is None or isinstance(given, Groups):
        return given
    return Groups(given) if group not in log.columns and arm in log.columns else None


def _labels(
    log: pd.DataFrame,
    group: str,
    arm: str,
    known: Groups | None,
    given: Groups | Sequence[object] | None,
) -> tuple[list[str], tuple[str, ...]]:
    """The group of each row, and the names of all groups."""
    if group not in log.columns:
        if known is None or arm not in log.columns:
            raise InputError(
                f"{setting('group')} is {group!r}, which is not a column; give {setting('groups')} "
                f"with the group of every arm and the column {setting('arm')}, or one of "
                f"{', '.join(map(str, log.columns))}",
                value=group,
            )
        of = known.of[whole_numbers(arm, log[arm], len(log), known.n_arms)]
        return [known.names[g] for g in of], known.names
    column = log[group]
    if column.isna().any():
        row = int(np.argmax(column.isna().to_numpy()))
        raise DataError(f"{group} has no value in row {row}; give every row a group")
    labels = [str(label) for label in column]
    if isinstance(given, Groups):
        names = given.names
    else:
        names = tuple(dict.fromkeys(labels if given is None else (str(name) for name in given)))
    allowed = set(names)
    unknown = [label for label in labels if label not in allowed]
    if unknown:
        raise DataError(f"{group} has {unknown[0]!r}; allowed by groups is {', '.join(names)}")
    return labels, names


def _column(log: pd.DataFrame, name: str, role: str) -> Array:
    if name not in log.columns:
        column_names = ", ".join(map(str, log.columns))
        raise InputError(
            f"{setting(role)} is {name!r}, which is not a column; the log has {column_names}",
            value=name,
        )
    values = pd.to_numeric(log[name], errors="coerce").astype("Float64").astype("float64")
    spoiled = values.isna() & log[name].notna()
    if spoiled.any():
        raise DataError(f"{name} has {log[name][spoiled].iloc[0]!r}; allowed are numbers")
    return numbers(name, values.to_numpy(), missing=True)


def _flags(log: pd.DataFrame, name: str) -> Array:
    values = _column(log, name, "explored")
    wrong = ~np.isin(values, (0.0, 1.0))
    if wrong.any():
        value = values[wrong][0]
        shown = "no value" if np.isnan(value) else f"{value:g}"
        raise DataError(
            f"{name} has {shown} in row {int(np.argmax(wrong))}; allowed are true and false"
        )
    return values


def arm_column(log: pd.DataFrame, given: str | None) -> str:
    """The column of the arm: as given, or the first of its usual names in the log."""
    names = ROLES["arm"] if given is None else (given,)
    return next((name for name in names if name in log.columns), names[0])


def _exposure(log: pd.DataFrame, position: str | None, first: int, exposure: str | None) -> Array:
    if position is not None and exposure is not None:
        raise InputError(
            f"{setting('position')} and exposure are both given; allowed is one of them"
        )
    if exposure is not None:
        weights = numbers(exposure, _column(log, exposure, "exposure"))
        if (weights < 0.0).any():
            raise DataError(f"{exposure} has {weights.min():g}; allowed are numbers of at least 0")
        return weights
    places = numbers(str(position), _column(log, str(position), "position"))
    if (places < first).any():
        hint = (
            f": give {setting('first_position', 0)} if the log counts from 0" if first == 1 else ""
        )
        raise DataError(
            f"{position} has {places.min():g}; allowed are positions from {first}{hint}"
        )
    return np.asarray(1.0 / np.log2(2.0 + places - first))


def _arms(
    known: Groups | None, given: Mapping[str, int] | None, names: tuple[str, ...]
) -> Array | None:
    if given is None:
        return None if known is None else known.sizes.astype(np.float64)
    return np.array([_of(given, name, "arms") for name in names], dtype=np.float64)


def _chances(log: pd.DataFrame, given: Mapping[str, str | int], names: tuple[str, ...]) -> Array:
    chances = []
    for name in names:
        value = _of(given, name, "chances")
        if isinstance(value, str):
            value = float(numbers(value, _column(log, value, f"chances of {name}")).sum())
        chances.append(float(value))
    return np.array(chances)


def _of(given: Mapping[str, str | int], name: str, parameter: str) -> str | int | float:
    if name not in given:
        raise InputError(
            f"{setting(parameter)} has no entry for group {name}; give one for every group"
        )
    return given[name]
