"""The bias in the feedback of each row, from a bias report or given, and its uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from evenhand._checks import Array, numbers
from evenhand.errors import InputError, setting
from evenhand.offpolicy.logged import Logged
from evenhand.policies.pooled_group_fair._reporting import Reported


@dataclass(frozen=True, eq=False)
class Correction:
    """The bias of each row; NaN in rows of the groups in `unknown`, which says why."""

    bias: Array
    unknown: dict[int, str]
    _report: Any = None
    _rows: Mapping[str, str] | None = None  # of groups in the report of PooledGroupFair

    def half_width(self, group: int, name: str, context: Array | None, level: float) -> float:
        """Half of the interval of a group's bias at a context, in units of reward.

        The bias is linear in the context. So its error in a weighted sum over rows is its error at
        the weighted sum of their contexts: one call of the report, not one for each row.
        """
        if self._report is None or context is None or group in self.unknown:
            return 0.0
        if self._rows is not None:
            if name not in self._rows:  # it has no rows in the log
                return 0.0
            features = context[: len(self._report.features)]
            table = replace(self._report, level=level).at(features).set_index("group")
            row = table.loc[self._rows[name]]
            return float(row["high"] - row["low"]) / 2.0
        row = self._report.at(context[None], [name]).iloc[0]
        error, freedom = float(row["standard_error"]), float(row["freedom"])
        if np.isnan(error):
            return np.nan
        return error * float(stdtrit(freedom, 0.5 + level / 2.0)) if error > 0.0 else 0.0


def correction(bias: Any, log: Logged) -> Correction:
    """From a report of a bias, or from a vector or number for each group."""
    if isinstance(bias, Reported):
        return _from_pooled(bias, log)
    if hasattr(bias, "at"):
        return _from_report(bias, log)
    if not isinstance(bias, Mapping):
        raise InputError(
            f"{setting('bias')} is a {type(bias).__name__}; allowed is a BiasReport, or a vector "
            "or number for each group, such as {'F': -2.0, 'M': 0.0}"
        )
    return Correction(_given({str(name): given for name, given in bias.items()}, log), {})


def _contexts_for(report: Any, log: Logged, extra: int = 0) -> Array:
    """The contexts of the rows, which a report needs, without the columns after the features."""
    contexts = log.chosen_contexts
    if contexts is None:
        raise InputError(
            f"{setting('bias')} is a report and the log has no contexts; give contexts"
        )
    if contexts.shape[1] != len(report.features) + extra:
        raise InputError(
            f"{setting('contexts')} has {contexts.shape[1]} features; allowed is "
            f"{len(report.features) + extra}, those of the bias report"
        )
    return contexts[:, : len(report.features)]


def _from_pooled(report: Reported, log: Logged) -> Correction:
    """From PooledGroupFair's report on groups, on the levels of an attribute or on intersections.

    It is linear in the context, so it is taken feature by feature.
    """
    groups = getattr(report.beliefs, "groups", None)
    membership = 0 if log.members is None or groups is None else len(groups.columns)
    contexts = _contexts_for(report, log, membership)
    table = report.at(np.eye(contexts.shape[1])).set_index("group")
    attributes: Any = getattr(getattr(report.beliefs, "design", None), "attributes", ())
    level_of = f"{attributes[0].name}: " if len(attributes) == 1 else ""
    bias, unknown, rows_of = np.zeros(log.n), {}, {}
    for g, name in enumerate(log.names):
        rows = np.flatnonzero(log.of == g)
        if not rows.size:
            continue
        row = level_of + name
        if row not in table.index:
            known = ", ".join(dict.fromkeys(map(str, table.index)))
            raise InputError(f"group {name} is not in the bias report; known are {known}")
        own = table.loc[[row]]
        bias[rows] = contexts[rows] @ own["estimate"].to_numpy(dtype=np.float64)
        rows_of[name] = row
        if own["estimate"].isna().any():
            unknown[g] = str(own["why"][own["estimate"].isna()].iloc[0])
    return Correction(bias, unknown, report, rows_of)


def _from_report(report: Any, log: Logged) -> Correction:
    contexts = _contexts_for(report, log)
    bias, unknown = np.zeros(log.n), {}
    for g, name in enumerate(log.names):
        rows = np.flatnonzero(log.of == g)
        if not rows.size:
            continue
        if name not in report.groups:
            raise InputError(
                f"group {name} is not in the bias report; known are {', '.join(report.groups)}"
            )
        # Feature by feature if all are identified, which is quick; else at the rows' contexts.
        by_feature = report.at(np.eye(contexts.shape[1]), name)
        if by_feature["estimate"].notna().all():
            bias[rows] = contexts[rows] @ by_feature["estimate"].to_numpy(dtype=np.float64)
            continue
        at_rows = report.at(contexts[rows], name)
        bias[rows] = at_rows["estimate"].to_numpy(dtype=np.float64)
        if np.isnan(bias[rows]).any():
            unknown[g] = str(at_rows["why"][at_rows["estimate"].isna()].iloc[0])
    return Correction(bias, unknown, report)


def _given(bias: dict[str, ArrayLike], log: Logged) -> Array:
    missing = [name for name in log.names if name not in bias]
    unknown = [name for name in bias if name not in log.names]
    if missing or unknown:
        problem = (
            f"no entry for group {missing[0]}" if missing else f"an unknown group {unknown[0]!r}"
        )
        raise InputError(
            f"{setting('bias')} has {problem}; allowed is one for each of "
            f"{', '.join(log.names)}, 0 if none"
        )
    contexts, out = log.chosen_contexts, np.zeros(log.n)
    for g, name in enumerate(log.names):
        rows, vector = log.of == g, numbers(f"bias of {name}", bias[name])
        if vector.ndim == 0:
            out[rows] = float(vector)
            continue
        if contexts is None or vector.shape != (contexts.shape[1],):
            size = 0 if contexts is None else contexts.shape[1]
            raise InputError(
                f"bias of {name} has shape {vector.shape}; allowed is a number, or ({size},) as "
                "the contexts of the log"
            )
        out[rows] = contexts[rows] @ vector
    return out
