"""From statistics to a report, with all options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from evenhand import _checks
from evenhand._checks import numbers
from evenhand._columns.column import Column
from evenhand._columns.words import meant
from evenhand.bias._contexts import columns_of, describe, units_of
from evenhand.bias._contrasts import contrasts
from evenhand.bias._fit import (
    AUTO,
    PULLS,
    WEIGHTINGS,
    between_weightings,
    by_arms,
    by_pulls,
    settled,
    with_covariances,
)
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Array, Statistics
from evenhand.errors import InputError, setting

if TYPE_CHECKING:
    from evenhand.bias.report import BiasReport


MEAN = "mean"  # of the groups, as a reference


def bias_report(
    statistics: Statistics,
    reference: object = None,
    level: float = 0.95,
    weighting: str = AUTO,
    noise: float | None = None,
    feature_names: Sequence[object] | None = None,
    units: Mapping[str, float] | None = None,
    average: ArrayLike | None = None,
    scales: ArrayLike | None = None,
    covariances: Mapping[str, ArrayLike] | None = None,
    freedom: Mapping[str, float] | None = None,
    between: Mapping[tuple[str, str], ArrayLike] | None = None,
    columns: Sequence[Column] | None = None,
    codes: Mapping[str, Sequence[str]] | None = None,
    blocked: Mapping[str, str] | None = None,
) -> BiasReport:
    """What the feedback adds to or takes from each group, feature by feature, with intervals.

    Args:
        statistics: sums per arm or per group, see `Statistics`.
        reference: the group to compare with, or "mean" for the mean of the groups' vectors, in
            which each group counts the same. Unless given it is the mean; of two groups it is the
            group with more observations, as about their mean each would show half of the gap.
        level: of the intervals.
        weighting: "pulls" for the least squares fit to all data of a group, as in the paper,
            "arms" for the plain average of its arms' own coefficients, or "auto": by arms where
            the observations of every arm suffice, and by pulls with a warning where they do not.
        noise: the standard deviation of rewards, if it is known. Otherwise each group's is
            estimated from the residuals of its own fit.
        feature_names: x1, x2, ... unless given.
        units: the steps of features that words and charts use, such as {"income": 1000}. The
            others get a power of ten near their standard deviation.
        average: the context at which to report totals and contributions, for all or a row per
            group; the average of the data unless given.
        scales: what each feature was divided by beforehand, such as its standard deviation. The
            report, and every context that is given to it, is then in the units before that.
        covariances: the covariance of a group's vector from elsewhere, say robust to clusters.
        freedom: the degrees of freedom of each of these; infinite unless given.
        between: the covariance of two groups' vectors, {("F", "M"): ...}, where the same people
            are in both; with `covariances` only.
        columns: which features are categories of the same column; by default each is by itself.
        codes: features whose numbers stand for categories, with these in the order of the numbers,
            from 0 on. One more of a code means nothing, so `to_words` does not mention it.
        blocked: groups that cannot be compared although they have observations, and why: say a
            group whose rows are all of one person.

    Example:
        >>> import numpy as np
        >>> from evenhand.bias import Statistics, bias_report
        >>> x = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 3.0]] * 2)
        >>> y = [0.1, 0.9, 2.1, 2.9, 1.1, 3.9, 7.1, 9.9]
        >>> sums = Statistics.from_rows(x, y, groups=["F"] * 4 + ["M"] * 4)
        >>> report = bias_report(sums, reference="M", feature_names=["one", "age"])
        >>> report.to_frame()[["feature", "estimate"]].round(2).values[:2].tolist()
        [['one', -1.0], ['age', -2.0]]
    """
    if not isinstance(statistics, Statistics):
        raise InputError(
            f"{setting('statistics')} is a {type(statistics).__name__}; allowed are Statistics, "
            "such as Statistics.from_rows(contexts, rewards, groups)"
        )
    level = _checks.number("level", level, 0.0, 1.0, open_ends=True)
    _checks.one_of("weighting", weighting, WEIGHTINGS)
    if noise is not None:
        noise = _checks.number("noise", noise, 0.0, np.inf, open_ends=True)
    if weighting == "arms" and statistics.arms is None:
        raise InputError(
            f"{setting('weighting')} is 'arms' without arms; allowed is 'pulls', or give arms"
        )
    if scales is not None:
        statistics = statistics.in_units(scales)
    names, features = statistics.groups, _features(feature_names, statistics.n_features)
    against = _reference_of(reference, statistics)
    weighting, instead = settled(statistics, weighting, noise)
    fitted = by_pulls if weighting == PULLS else by_arms
    fit = fitted(statistics, noise)
    if covariances or freedom:
        without = fitted(statistics, 1.0).blocked  # with these, the noise need not be known
        fit = with_covariances(fit, names, covariances or {}, freedom, without, between)
    if blocked:
        reasons = zip(names, fit.blocked, strict=True)
        fit = replace(fit, blocked=tuple(own or blocked.get(name, "") for name, own in reasons))
    apart = None if statistics.arms is None else partial(between_weightings, statistics, noise)
    contexts = describe(statistics)
    own, overall = contexts.means, contexts.overall
    if average is not None:
        own, overall = _average(average, statistics)
    counts = np.bincount(statistics.of, statistics.n, len(names))
    sizes = np.bincount(statistics.of, minlength=len(names))
    return BiasReport(
        groups=names,
        features=features,
        reference=against,
        level=level,
        weighting=weighting,
        units=units_of(
            contexts, features, {**_single_steps(features, codes, columns), **(units or {})}
        ),
        observations=tuple(int(n) for n in counts),
        arms=None if statistics.arms is None else tuple(int(n) for n in sizes),
        average=own,
        overall=overall,
        _fit=fit,
        _weights=contrasts(fit, None if against is None else names.index(against)),
        _contexts=contexts,
        _precision=statistics.precision,
        _apart=apart,
        _instead=instead,
        columns=columns_of(features, contexts) if columns is None else tuple(columns),
        codes={name: tuple(levels) for name, levels in (codes or {}).items()},
    )


def _reference_of(given: object, statistics: Statistics) -> str | None:
    """The group to compare with; None for the mean of the groups."""
    names = statistics.groups
    if given is None and len(names) == 2:
        sizes = np.bincount(statistics.of, statistics.n, 2)
        return names[0] if sizes[0] > sizes[1] else names[1]
    if given is None or (given == MEAN and MEAN not in names):
        return None
    return str(_checks.one_of("reference", meant(given, names) or str(given), names))


def _features(given: Sequence[object] | None, d: int) -> tuple[str, ...]:
    if given is None:
        return tuple(f"x{k + 1}" for k in range(d))
    names = () if isinstance(given, str) else tuple(str(name) for name in given)
    if len(names) != d or len(set(names)) != d:
        raise InputError(
            f"{setting('feature_names')} is {given!r}; allowed are {d} different names", value=given
        )
    return names


def _average(given: ArrayLike, statistics: Statistics) -> tuple[Array, Array]:
    """The context of each group, and of all: weighted by observations if there are several."""
    groups, d = len(statistics.groups), statistics.n_features
    rows = numbers("average", given, None)
    if rows.shape not in ((d,), (groups, d)):
        raise InputError(
            f"{setting('average')} has shape {rows.shape}; allowed is ({d},), or ({groups}, {d}) "
            "with a row per group"
        )
    own = np.broadcast_to(rows, (groups, d)).copy()
    weights = np.bincount(statistics.of, statistics.n, groups)
    return own, np.average(own, axis=0, weights=weights if weights.any() else None)


def _single_steps(
    features: Sequence[str],
    codes: Mapping[str, Sequence[str]] | None,
    columns: Sequence[Column] | None,
) -> dict[str, float]:
    """A step of 1 for features that stand for a category: there are no other steps."""
    nominal = [
        features[k] for column in columns or () if column.categories for k in column.features
    ]
    return dict.fromkeys([*(codes or ()), *nominal], 1.0)
