"""An audit from its first look to its report: all stages in order."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime

import pandas as pd

from evenhand.audit._inference.bias_by_window import Windows
from evenhand.audit._inference.cluster_reward_means import of_groups
from evenhand.audit._inference.decomposition import decomposition, unadjusted_by
from evenhand.audit._inference.group_averages import averages, dependent_averages
from evenhand.audit._inference.leakage import giveaways
from evenhand.audit._inference.logistic_groups import LogisticFit
from evenhand.audit._inference.logistic_parts import by_logistic
from evenhand.audit._input.sources import Source
from evenhand.audit._report.logistic import LOGISTIC
from evenhand.audit._report.result import Audit, Facts
from evenhand.audit._stages.blend import blend
from evenhand.audit._stages.comparisons import (
    against_truth,
    beside_logistic,
    objection_of,
    over_time,
)
from evenhand.audit._stages.fitting import AuditRun, Fitted
from evenhand.audit._stages.intersections import intersect
from evenhand.audit._sums import missing as missing_values
from evenhand.audit._sums.aggregate import (
    by_arm,
    extra_sums,
    group_sums,
)
from evenhand.audit._sums.checks import (
    effective_rows,
    whole_weights,
)
from evenhand.audit._sums.error_rates import known_truth
from evenhand.audit._sums.selection import count_selected, impact_of
from evenhand.bias._findings import same_findings
from evenhand.bias._fit import ARMS
from evenhand.bias.report import BiasReport
from evenhand.events.columns import Columns
from evenhand.fairness import FairnessReport, fairness_report
from evenhand.fairness._clusters import ClusterSums


def audit_log(run: AuditRun, begin: float) -> Audit:
    """Run all stages; `begin` is when the audit began, by `time.perf_counter`."""
    fitted = run.fit()
    cells, centre, columns = fitted.cells, fitted.design.reward_centre, run.look.columns
    timed = over_time(run, fitted)
    bias, logistic, chances = beside_logistic(
        run, fitted, fitted.centred, fitted.stats, fitted.rows, fitted.errors
    )
    within, inside = timed.within, None
    if within is not None:
        inside, *_ = beside_logistic(
            run, fitted, within.report, within.stats, within.rows, within.errors, spare=True
        )
    of_clusters = None
    if columns.cluster is not None:
        of_clusters = of_groups(run.source, fitted.rows, cells.groups())
    sums = group_sums(cells, fitted.gaps, centre, fitted.binary)
    metrics = _metrics(run, sums, of_clusters)
    # As in the summary: what changes over time must not count as bias.
    believed = fitted.centred
    if within is not None and inside is not None and not same_findings(bias, inside):
        believed = within.report
    used = metrics
    if fitted.gaps.sums is not None:  # the decomposition is of complete rows
        complete = group_sums(cells, missing_values.NONE, centre, fitted.binary)
        used = _metrics(run, complete, of_clusters)
    follows = logistic is not None and logistic.fits == LOGISTIC
    explained = _explained(run, fitted, believed, used, chances if follows else None)
    selected = count_selected(
        run.source, fitted.rows, cells, sums, run.settings, columns.group, run.crossing
    )
    clustered = columns.cluster is not None
    impact = impact_of(selected, columns.group, run.settings, run.crossing, clustered)
    against = objection_of(run, cells, centre)
    return Audit(
        bias=bias,
        within=inside,
        logistic=logistic,
        against_truth=None if against else against_truth(run, cells, fitted.centred.reference),
        blend=blend(run, fitted, against),
        decomposition=explained,
        truth=known_truth(cells, centre, run.settings.level),
        metrics=metrics,
        groups=sums,
        impact=impact,
        intersections=intersect(run, fitted, sums, impact, against),
        extras=extra_sums(cells),
        arms=by_arm(cells, centre),
        drift=timed.drift,
        changes=timed.changes,
        missing=fitted.gaps.table,
        facts=_facts(run, fitted, timed.windows, against, begin),
    )


def _metrics(run: AuditRun, sums: pd.DataFrame, of_clusters: ClusterSums | None) -> FairnessReport:
    return fairness_report(
        sums,
        level=run.settings.level,
        unfavourable=run.settings.unfavourable and "positives" in sums,
        clusters=of_clusters,
    )


def _explained(
    run: AuditRun,
    fitted: Fitted,
    believed: BiasReport,
    metrics: FairnessReport,
    chances: LogisticFit | None,
) -> pd.DataFrame:
    """The unadjusted gap of every group, what features account for, and what is left.

    Args:
        run: the audit.
        fitted: the regressions of the whole log.
        believed: the report that the summary believes, about the centres.
        metrics: of the rows that the regressions use.
        chances: the logistic models, where their form is the one that holds.
    """
    centred, rows = fitted.centred, fitted.rows
    dependent = {"w", "c"} & set(rows.columns)
    means = (
        dependent_averages(run.source, rows, fitted.stats) if dependent else averages(fitted.stats)
    )
    unadjusted = unadjusted_by(metrics, centred.groups, means, weighted=run.weighted)
    explained = decomposition(
        believed, means, centred._columns, unadjusted, within=believed is not centred
    )
    if chances is None or believed is not centred or centred.weighting == ARMS:
        return explained
    return by_logistic(explained, centred, chances, means, centred._columns, unadjusted)


def _facts(
    run: AuditRun, fitted: Fitted, windows: Windows | None, against: str, begin: float
) -> Facts:
    """The facts on which the words, the method and the limits of the report depend."""
    cells, design, gaps, errors = fitted.cells, fitted.design, fitted.gaps, fitted.errors
    look, columns = run.look, run.look.columns
    return Facts(
        settings=run.settings,
        columns=columns,
        label=run.source.label,
        engine=run.source.kind,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        left_out=_left_out(run.source, columns, run.settings.attributes),
        rows=gaps.rows or int(cells.n.sum()),
        used=int(cells.n.sum()),
        filled=gaps.filled,
        merged={name: many for name, many in look.merged.items() if many},
        rare={name: few for name, few in look.rare.items() if few},
        baselines={name: kept[0] for name, kept in design.kept.items()},
        arms=look.arms,
        by_arm=look.by_arm,
        binary=fitted.binary,
        errors=errors.kind,
        classical=errors.classical,
        clusters=errors.clusters,
        crossing=errors.crossing,
        constant=design.constant,
        objection=against,
        windows=None if windows is None else (windows.weighting, windows.errors),
        common=() if windows is None else windows.common,
        effective=effective_rows(cells, fitted.centred.groups),
        whole_weights=columns.weight is not None and whole_weights(cells),
        giveaways=giveaways(fitted.stats, design),
        seconds=time.perf_counter() - begin,
    )


def _left_out(source: Source, columns: Columns, attributes: Sequence[str]) -> tuple[str, ...]:
    """The columns of the log that have no role and are no feature."""
    named = [value for value in vars(columns).values() if isinstance(value, str)]
    used = {*columns.features, *named, *attributes}
    return tuple(name for name in source.table.columns if name not in used)
