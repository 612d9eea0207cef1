"""An audit whose groups are known by probability: the parts of a report that this allows."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from evenhand._columns.column import Column
from evenhand._columns.words import INTERCEPT
from evenhand.audit._inference.by_probability import Mixture, fit_mixture, mixed_rows
from evenhand.audit._inference.leakage import Giveaways
from evenhand.audit._inference.own_units import about_zero
from evenhand.audit._inference.standard_errors import CLUSTERED, ROBUST
from evenhand.audit._input.probabilities import ProbableGroups
from evenhand.audit._report.by_probability import ByProbability
from evenhand.audit._report.result import Audit, Facts
from evenhand.audit._report.terms import terms_of
from evenhand.audit._stages.fitting import AuditRun
from evenhand.audit._sums.aggregate import is_binary, prepared
from evenhand.audit._sums.cells import Cells
from evenhand.audit._sums.design import Design
from evenhand.bias._contrasts import contrasts
from evenhand.bias._fit import PULLS
from evenhand.bias.estimate import bias_report
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Array, Statistics
from evenhand.errors import DataError

NOT_USED = ("arm", "propensity", "timestamp", "true_reward", "override", "position")


def audit_by_probability(run: AuditRun, membership: ProbableGroups, begin: float) -> Audit:
    """Run the whole audit; `begin` is when it began, by `time.perf_counter`."""
    dropped = [role for role in NOT_USED if not (role == "propensity" and run.weighted)]
    unused = tuple(role for role in dropped if getattr(run.look.columns, role) is not None)
    columns = replace(run.look.columns, **dict.fromkeys(dropped))  # type: ignore[arg-type]
    run = replace(
        run, look=replace(run.look, columns=columns, times=None, by_arm=False, middle=None)
    )
    cells, design, gaps, _ = run._sums()
    names = [feature.column for feature in design.features]
    constant = [g for g, name in enumerate(membership.columns) if name not in names]
    if constant:
        raise DataError(
            f"the probability of {membership.groups[constant[0]]} is the same in every row, so "
            "nothing can be said about the groups; give probabilities that differ from row to row"
        )
    chances = [(names.index(name), design.features[names.index(name)].centre)
               for name in membership.columns]  # fmt: skip
    rest = [i for i, name in enumerate(names) if name not in membership.columns]
    rows = prepared(run.source, run.look, run.settings, design, gaps)
    run.tell("fitting groups by probability")
    rest_design = replace(design, features=tuple(design.features[i] for i in rest))
    mixed = mixed_rows(rows, chances, rest)
    fit = fit_mixture(run.source, mixed, len(chances), len(rest) + 1, rest_design.names)
    bias = _report(run, membership, fit, rest_design, cells, rest)
    features = tuple(name for name in columns.features if name not in membership.columns)
    columns = replace(columns, features=features)
    by_probability = ByProbability(
        membership=membership,
        unadjusted=_unadjusted(run, membership, fit, design.reward_centre),
        expected={name: float(n) for name, n in zip(membership.groups, fit.n, strict=True)},
        clusters=fit.clusters,
        not_used=unused,
    )
    counted = {"group": list(membership.groups), "n": fit.n}
    return Audit(
        bias=replace(bias, _terms=terms_of(columns, run.settings.reward_values)),
        within=None,
        against_truth=None,
        blend=None,
        decomposition=pd.DataFrame(),
        truth=None,
        logistic=None,
        metrics=None,
        groups=pd.DataFrame(counted),
        impact=pd.DataFrame(),
        intersections=None,
        extras=pd.DataFrame(),
        arms=None,
        drift=None,
        changes=None,
        missing=gaps.table,
        by_probability=by_probability,
        facts=Facts(
            settings=run.settings,
            columns=columns,
            label=run.source.label,
            engine=run.source.kind,
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            left_out=(),
            rows=gaps.rows or int(cells.n.sum()),
            used=int(cells.n.sum()),
            filled=gaps.filled,
            merged={name: many for name, many in run.look.merged.items() if many},
            rare={},
            baselines={name: kept[0] for name, kept in design.kept.items()},
            arms=0,
            by_arm=False,
            binary=is_binary(cells.frame, design.reward_centre),
            errors=CLUSTERED if fit.clusters else ROBUST,
            classical=(),
            clusters=None,
            crossing=0,
            constant=design.constant,
            objection="",
            windows=None,
            common=(),
            effective=None,
            whole_weights=False,
            giveaways=Giveaways({}, {}),
            seconds=time.perf_counter() - begin,
        ),
    )


def _report(
    run: AuditRun,
    membership: ProbableGroups,
    fit: Mixture,
    design: Design,
    cells: Cells,
    rest: list[int],
) -> BiasReport:
    """The bias by group and feature, in the columns' own units."""
    low, high = _ends(cells, rest, design)
    report = _compared(
        run,
        membership,
        fit,
        fit.gram,
        fit.moment,
        fit.vectors,
        fit.covariances,
        design.names,
        design.columns(low, high),
    )
    return about_zero(report, design.centres, design.reward_centre, run.settings.units)


def _ends(cells: Cells, rest: list[int], design: Design) -> tuple[Array, Array]:
    centres = np.array([feature.centre for feature in design.features])
    at = [cells.kept[i] for i in rest]
    low = cells.frame[[f"least{i}" for i in at]].to_numpy(dtype=np.float64)
    high = cells.frame[[f"most{i}" for i in at]].to_numpy(dtype=np.float64)
    return low.min(axis=0) + centres, high.max(axis=0) + centres


def _unadjusted(
    run: AuditRun, membership: ProbableGroups, fit: Mixture, centre: float
) -> BiasReport:
    """The gap between the groups' mean rewards, with no feature held constant."""
    report = _compared(
        run,
        membership,
        fit,
        fit.gram[:, :1, :1],
        fit.moment[:, :1],
        fit.plain[:, None],
        fit.plain_covariance[:, :, None, None],
        (INTERCEPT,),
        None,
    )
    report = about_zero(report, np.zeros(1), centre)
    columns = replace(run.look.columns, features=())
    return replace(report, _terms=terms_of(columns, run.settings.reward_values))


def _compared(
    run: AuditRun,
    membership: ProbableGroups,
    fit: Mixture,
    gram: Array,
    moment: Array,
    vectors: Array,
    covariances: Array,
    names: tuple[str, ...],
    columns: tuple[Column, ...] | None,
) -> BiasReport:
    m = len(membership.groups)
    stats = Statistics(
        groups=membership.groups,
        of=np.arange(m),
        n=fit.n,
        gram=0.5 * (gram + gram.transpose(0, 2, 1)),
        moment=moment,
        square=fit.square * fit.n / fit.n.sum(),
        means=gram[:, 0] / gram[:, :1, 0],
        weights=gram[:, 0, 0] if run.weighted else None,
    )
    reference = run.settings.reference or membership.groups[int(np.argmax(fit.n))]
    report = bias_report(
        stats,
        reference=reference,
        level=run.settings.level,
        weighting=PULLS,
        feature_names=names,
        columns=columns,
    )
    diagonal = np.arange(m)
    own = covariances[diagonal, diagonal]
    apart = covariances.copy()
    apart[diagonal, diagonal] = 0.0
    # Where all probabilities are 0 or 1, only clusters make the estimates of groups dependent.
    between = covariances if apart.any() else None
    solved = replace(
        report._fit,
        vectors=vectors,
        covariances=0.5 * (own + own.transpose(0, 2, 1)),
        between=between,
        freedom=fit.freedom,
        blocked=("",) * m,
    )
    against = None if report.reference is None else membership.groups.index(report.reference)
    observations = tuple(round(float(n)) for n in fit.n)
    return replace(
        report,
        observations=observations,
        _fit=solved,
        _weights=contrasts(solved, against),
        _apart=None,
        _instead="",
    )
