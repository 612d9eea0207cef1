"""Equal averages and pairs together: the estimator of `evenhand.bias.measured` for audits.

Feedback estimates theta_g of every group, pairs estimate gamma_g, and the estimates are dependent
(`true_reward_pairs`). By the model, with m_g the mean of theta_g,

    gamma_g - gamma_h = (m_g - eta_g) - (m_h - eta_h) + noise     eta_g ~ N(0, kappa^2 I)

eta_g - eta_h is how much better group g truly is than h. What pairs add to the feedback is the
residual of their differences after the regression on theta, which is independent of theta.

Units matter only for kappa^2. Features are about their averages and in standard deviations, and so
are rewards: then it does not depend on where the zero of a feature is. A policy takes its features
as they come, over their root mean square; for features with the mean 0 that is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from evenhand._prose import records
from evenhand.audit._report.terms import terms_against_truth
from evenhand.audit._stages.fitting import AuditRun, Fitted
from evenhand.audit._stages.true_reward_pairs import Pairs, find_pairs
from evenhand.bias._contrasts import contrasts
from evenhand.bias._evidence import Evidence
from evenhand.bias._rests_on import depends
from evenhand.bias._terms import SecondModel
from evenhand.bias.measured import Measured, p_of_arrival
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Array, Whole

FEWEST = 2  # degrees of freedom that the pairs of a group must have
FLOOR = 1e-8  # of the variance of feedback: pairs without noise are exact up to that
TINY = 1e-14  # of the variance of rewards: so is feedback without noise


@dataclass(frozen=True, eq=False)
class Blended:
    """What feedback and true rewards say together.

    Attributes:
        groups: all groups of the log.
        level: of intervals.
        known: the rows of each that have a true reward.
        rest: the rows of each that have none.
        later: by how much feedback was higher in rows with a true reward, at the same features; NaN
            where that is not known.
        later_error: the standard errors of these.
        p_arrival: the p-value of the test that all of them are 0; NaN if none is known.
        measured: the estimator; None where there can be none.
        why: why there is none.
        bias: the blend as a bias report; None without it.
    """

    groups: tuple[str, ...]
    level: float
    known: Array
    rest: Array
    later: Array
    later_error: Array
    p_arrival: float
    measured: Measured | None = None
    why: str = ""
    bias: BiasReport | None = None

    @property
    def arrival(self) -> pd.DataFrame:
        """By group: rows with and without a true reward, and how feedback differs between them.

        `difference` is at the same features, by straight lines, with the interval of its row alone.
        """
        half_width = float(stdtrit(np.inf, 0.5 + self.level / 2.0)) * self.later_error
        return pd.DataFrame(
            {
                "group": list(self.groups),
                "known": self.known.astype(np.int64),
                "unknown": self.rest.astype(np.int64),
                "difference": self.later,
                "low": self.later - half_width,
                "high": self.later + half_width,
            }
        )

    @property
    def depends(self) -> bool | None:
        """Whether arrival seems to depend on the outcome; None where that is not known."""
        return depends(self.p_arrival)

    def to_dict(self) -> dict[str, Any]:
        """As plain data. None stands for what is not known."""
        measured = self.measured
        return {
            "bias": None if self.bias is None else self.bias.to_dict(),
            "why": self.why,
            "equal_averages": None if measured is None else measured.equal,
            "p_equal": None if measured is None else _or_none(measured.p_equal),
            "kappa": None if measured is None else float(np.sqrt(measured.kappa2)),
            "arrival": records(self.arrival),
            "p_arrival": _or_none(self.p_arrival),
            "arrival_depends": self.depends,
        }


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value


def blend(run: AuditRun, fitted: Fitted, objection: str = "") -> Blended | None:
    """Blend feedback and true rewards; None where no row has a true reward.

    Args:
        run: the audit.
        fitted: its regressions.
        objection: why feedback and true reward cannot be compared; empty if they can.
    """
    if run.look.columns.true_reward is None or not fitted.cells.frame["r_n"].sum() > 0.0:
        return None
    run.tell("blending with true rewards")
    pairs = find_pairs(run, fitted)
    testable = np.flatnonzero(np.isfinite(pairs.later) & (np.diag(pairs.later_covariance) > 0.0))
    later = np.where(np.isin(np.arange(len(pairs.later)), testable), pairs.later, np.nan)
    arrivals = Blended(
        groups=fitted.stats.groups,
        level=run.settings.level,
        known=pairs.n,
        rest=pairs.rest,
        later=later,
        later_error=np.where(np.isnan(later), np.nan, np.sqrt(np.diag(pairs.later_covariance))),
        p_arrival=_p_arrival(pairs, testable),
    )
    usable, why = _usable(fitted, pairs)
    if objection or why:
        return replace(arrivals, why=objection or why)
    move, unit, rho = _units(fitted)
    start = _start(fitted, pairs, usable, move, unit, rho)
    number, feedback = int(pairs.n[usable].sum()), int(fitted.stats.n.sum())
    measured = Measured(number, feedback, lambda: start)
    if not np.isfinite(measured.bias).all():
        return replace(arrivals, why="their variances cannot be estimated from these rows")
    return replace(arrivals, measured=measured, bias=_report(run, fitted, pairs, usable, measured))


def _p_arrival(pairs: Pairs, testable: Whole) -> float:
    if not len(testable):
        return float("nan")
    return p_of_arrival(pairs.later[testable], pairs.later_covariance[np.ix_(testable, testable)])


def _usable(fitted: Fitted, pairs: Pairs) -> tuple[Whole, str]:
    """The groups with feedback and pairs in all directions; or why they are too few."""
    report, designs = fitted.centred, fitted.centred._fit.designs
    d = len(report.features)
    # By arms, a group is short of a direction if any of its arms is.
    short = np.zeros(len(report.groups), dtype=np.bool_)
    np.logical_or.at(short, report._fit.of, designs.rank < d)
    ok = pairs.full & ~short & report._fit.usable & (pairs.freedom >= FEWEST)
    usable = np.flatnonzero(ok)
    if report.reference is not None and not ok[report.groups.index(report.reference)]:
        return usable, f"too few rows of group {report.reference} have it"
    if len(usable) < 2:
        return usable, "too few rows have it in all groups but one"
    return usable, ""


def _units(fitted: Fitted) -> tuple[Array, Array, float]:
    """The matrix that moves coefficients to the average context; units of features and rewards."""
    stats = fitted.stats
    gram, moment = stats.gram.sum(axis=0), stats.moment.sum(axis=0)
    total = gram[0, 0]
    mean = gram[0] / total
    variance = np.maximum(np.diag(gram) / total - mean**2, 0.0)
    variance[0] = 1.0
    move = np.eye(len(mean))
    move[0, 1:] = mean[1:]
    of_rewards = max(stats.square.sum() / total - (moment[0] / total) ** 2, 0.0)
    unit = np.where(variance > 0.0, np.sqrt(variance), 1.0)
    return move, unit, float(np.sqrt(of_rewards)) or 1.0


def _flat(blocks: Array, groups: Whole, map_: Array) -> Array:
    """Covariances of the vectors of these groups as one matrix, in the units of a map."""
    picked = map_ @ blocks[np.ix_(groups, groups)] @ map_.T
    m, d = len(groups), len(map_)
    flat: Array = picked.transpose(0, 2, 1, 3).reshape(m * d, m * d)
    return flat


def _start(
    fitted: Fitted, pairs: Pairs, usable: Whole, move: Array, unit: Array, rho: float
) -> Evidence:
    """What the estimator starts from.

    With A, B and C the covariances of theta, of gamma and of theta with gamma, and D the
    differences from the first group,

        D gamma - D C' A^-1 theta  =  (D - D C' A^-1) m - D eta + noise

    has noise that is independent of theta, with the covariance L = D B D' - D C' A^-1 C D'. Its
    inverse, `weight`, is the information of the pairs.

    L is a difference. Where feedback explains all of the noise of pairs, rounding of either sign
    is left. So L has a floor: a small part of the variance that feedback has for the same numbers.
    These differ by many powers of ten. Divided by the roots of their floors, all have the floor 1,
    and so has every combination of them if eigenvalues below 1 are set to 1.
    """
    fit, m, d = fitted.centred._fit, len(usable), len(unit)
    # Coefficients of features in standard deviations about their averages, for rewards in standard
    # deviations.
    map_ = unit[:, None] / rho * move
    theta, gamma = fit.vectors[usable] @ map_.T, pairs.vectors[usable] @ map_.T
    A, B, C = (_flat(table, usable, map_) for table in (pairs.feedback, pairs.own, pairs.cross))
    floor = FLOOR * np.diag(A) + TINY
    # So that A can be inverted where feedback has no noise.
    A = A + np.diag(floor)
    differences = np.kron(np.eye(m)[1:] - np.eye(m)[:1], np.eye(d))
    precision = np.linalg.inv(A)
    # The regression of D gamma on theta: what is left of it is independent of the feedback.
    by_theta = differences @ C.T @ precision
    left = differences @ B @ differences.T - by_theta @ C @ differences.T
    floor = np.abs(differences) @ floor
    roots = np.sqrt(floor)
    left = 0.5 * (left + left.T) / (roots[:, None] * roots)
    values, vectors = np.linalg.eigh(left)
    weight = (vectors / np.maximum(values, 1.0)) @ vectors.T / (roots[:, None] * roots)
    of_m = differences - by_theta
    value = weight @ (differences @ gamma.ravel() - by_theta @ theta.ravel())
    # Half of the smallest eigenvalue of A^-1: a bound that rounding does not break.
    least = 0.5 / float(np.linalg.eigvalsh(A)[-1])

    def blended(kappa2: float) -> Any:
        from evenhand.leastsquares._blend import Information, blend_said  # loads Numba

        information = Information(
            of_m.T @ weight @ of_m,
            -of_m.T @ weight @ differences,
            differences.T @ weight @ differences,
            of_m.T @ value,
            -differences.T @ value,
        )
        return blend_said(information, precision, theta.ravel(), d, least, kappa2)

    robust = pairs.robust[usable]
    freedom = pairs.freedom[usable]
    return Evidence(
        unit=unit,
        rho=rho,
        flat=np.inf,
        freedom=float(freedom.min()),
        means=theta,
        basis=np.eye(m),
        seen=np.ones(m, dtype=np.bool_),
        first=0,
        contrasts=_against(fitted, usable),
        whole=np.zeros(m, dtype=np.bool_),
        scale=1.0,
        offset=0.0,
        blended=blended,
        arrival=None,
        of_covariance=float(freedom[robust].min()) if robust.any() else np.inf,
    )


def _against(fitted: Fitted, usable: Whole) -> Array:
    """Each group less what it is compared with: a group, or the mean of the usable ones."""
    own, reference = np.eye(len(usable)), fitted.centred.reference
    if reference is None:
        mean: Array = own - own.mean(axis=0)
        return mean
    at = int(np.flatnonzero(usable == fitted.centred.groups.index(reference))[0])
    against: Array = own - own[at]
    return against


def _report(
    run: AuditRun, fitted: Fitted, pairs: Pairs, usable: Whole, measured: Measured
) -> BiasReport:
    """The blend as a report in the columns' own units."""
    report, (m, d) = fitted.centred, (len(fitted.stats.groups), len(fitted.centred.features))
    move = _units(fitted)[0]
    back = np.linalg.inv(move)
    vectors, covariances = measured.of_groups()
    every, between = np.zeros((m, d)), np.zeros((m, m, d, d))
    every[usable] = vectors @ back.T
    between[np.ix_(usable, usable)] = back @ covariances @ back.T
    blocked = tuple(
        own or ("" if g in usable else f"too few rows of group {name} have a true reward")
        for g, (own, name) in enumerate(zip(report._fit.blocked, report.groups, strict=True))
    )
    fit = replace(
        report._fit,
        vectors=every,
        covariances=between[np.arange(m), np.arange(m)],
        between=between,
        freedom=np.full(m, float(pairs.freedom[usable].min())),
        blocked=blocked,
    )
    reference = None if report.reference is None else report.groups.index(report.reference)
    centred = replace(
        report,
        _fit=fit,
        _weights=contrasts(fit, reference),
        _apart=None,
        _instead="",
        _second=SecondModel(),
        _terms=terms_against_truth(run.look.columns),
    )
    return fitted.in_units(centred, run.settings)
