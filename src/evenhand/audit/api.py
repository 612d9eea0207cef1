"""`evenhand.audit`: check the settings, open the log, take a first look, and run the stages."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

from evenhand import _checks
from evenhand._columns.features import CATEGORIES
from evenhand._columns.file_formats import Reading
from evenhand._columns.missing import DEFAULT, Choice
from evenhand._columns.missing_marks import Given
from evenhand._columns.words import meant
from evenhand.audit._input.attributes import (
    as_labels,
    crossed,
    split_groups,
    with_attributes,
)
from evenhand.audit._input.checksums import checksum_of
from evenhand.audit._input.counts import one_row_each
from evenhand.audit._input.engines import Progress, told
from evenhand.audit._input.first_look import Look, check_rows, look
from evenhand.audit._input.group_names import with_group_names
from evenhand.audit._input.marks_and_words import cleaned
from evenhand.audit._input.nominal import spelled, with_categoricals
from evenhand.audit._input.opening import as_log, open_log
from evenhand.audit._input.probabilities import with_group_column, with_probabilities
from evenhand.audit._input.references import as_text
from evenhand.audit._input.roles import columns_of, with_guesses
from evenhand.audit._input.round_groups import with_round_groups
from evenhand.audit._input.sources import Source
from evenhand.audit._pipeline import audit_log
from evenhand.audit._report.provenance import provenance
from evenhand.audit._report.result import Audit
from evenhand.audit._settings import AuditSettings
from evenhand.audit._stages.by_probability import audit_by_probability
from evenhand.audit._stages.fitting import AuditRun, Tell
from evenhand.audit._threads import one_thread
from evenhand.bias.estimate import MEAN
from evenhand.errors import DataError, InputError, blank, setting
from evenhand.events.columns import named_roles


def audit(
    log: Any,
    *,
    columns: Mapping[str, Any] | None = None,
    features: Sequence[str] | None = None,
    nominal_columns: Sequence[str] = (),
    leave_out: Sequence[str] = (),
    reference: object = None,
    level: float = 0.95,
    weighting: str = "auto",
    missing: Choice = DEFAULT,
    missing_marks: Given = (),
    reward_values: Mapping[Any, float] | None = None,
    group_probability: Mapping[str, str] | None = None,
    errors: str = "auto",
    weigh_by_propensity: bool = False,
    windows: int | None = None,
    categories: int = CATEGORIES,
    unfavourable: bool = False,
    units: Mapping[str, float] | None = None,
    logistic: bool = True,
    engine: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    title: str = "Audit",
    tell: Tell | None = None,
    progress: Progress | None = None,
    **roles: str | Sequence[str] | None,
) -> Audit:
    """Audit a log: the bias of the feedback by group and feature, metrics, and drift over time.

    The rows stay where they are and are summed up there, in bounded memory.

    Args:
        log: a Parquet, CSV, JSON (lines, or an array of objects) or Excel file, a folder, a glob,
            `duckdb:///FILE::TABLE`, `postgresql://USER@HOST/DATABASE::TABLE`, `spark::TABLE`, a
            frame, a mapping of columns or an Ibis table.
        columns: columns by role, {"group": "sex"}; the same as `group="sex"`. Several group
            columns, `group=["sex", "race"]`, are compared one by one and at their intersections.
        features: the columns of the context; all that have no role unless given.
        nominal_columns: columns of numbers that are really categories. Columns of text always
            are.
        leave_out: columns that are neither roles nor features.
        reference: the group to compare with, or "mean" for the mean of the groups; the largest
            unless given. The group "black=1", of a column of numbers, may also be called 1. With
            several group columns, a category by column, {"sex": "M"}.
        level: of all intervals.
        weighting: "pulls", "arms" for the plain average over arms, or "auto": by arms if there
            are arms and each has enough rows.
        missing: "error", "drop" (rows) or "fill" (features, with the mean and a column that says
            where, or a category of their own; rows without a reward, group, arm, weight or
            cluster are left out); or one of them by column, {"age": "fill", "others": "drop"}.
        missing_marks: what stands for a missing value besides nulls and empty text, such as
            ("?", "NA", -9), in every column; or such lists by column, {"age": [-1], "*": ["?"]}
            with "*" for every column. Text that is numbers apart from these becomes numbers.
        reward_values: numbers for a reward in words, {"approved": 1, "denied": 0}. They hold for a
            true reward in the same words as well.
        group_probability: a column of probabilities for every group, {"black": "p_black", "white":
            "p_white"}, where groups are not known, as from BISG. They are used as they are: no row
            is assigned to its likeliest group. A row without any is "not stated".
        errors: "classical" (equal noise within a group), "robust", or "auto": robust in groups
            that have 20 rows for every coefficient, and with weights. A column in the role
            `cluster` makes them cluster-robust.
        weigh_by_propensity: whether rows count by the inverse of their propensity.
        windows: how many time windows; as many as the rows are enough for, up to 8, unless given.
        categories: how many categories of a feature have their own coefficient; the others are
            merged into "other".
        unfavourable: whether a higher reward is worse for people (denied, arrested). Where rewards
            are 0 and 1, the selection rate and its screen then count rewards of 0.
        units: the steps of features that the report uses, such as {"income": 1000}.
        logistic: whether to fit logistic models beside the straight lines if rewards are 0 and 1.
            A bias is then claimed where both find it. They take some six to ten more passes over
            the rows.
        engine: "duckdb" or "spark", for files.
        encoding: of CSV files, such as "latin-1", "windows-1252" or "utf-16"; UTF-8 unless given.
        decimal: "," for CSV files that write 1,5 for one and a half.
        delimiter: between the columns of CSV files; detected unless given.
        sheet: of an Excel file; the only one that holds anything unless given.
        title: of the report.
        tell: called with a few words when a step begins.
        progress: called with the percentage of a query that is done, if the engine reports it.
        **roles: columns by role: group, reward, arm, propensity, timestamp, true_reward, weight,
            cluster, override, position.

    Example:
        >>> import pandas as pd, evenhand as eh
        >>> log = pd.DataFrame({"sex": ["F", "M"] * 20, "age": [20, 30, 40, 50] * 10})
        >>> log["paid"] = log["age"] / 10 - (log["sex"] == "F") + [0.1, 0.1, -0.1, -0.1, 0.0] * 8
        >>> report = eh.audit(log, group="sex", reward="paid", reference="M")
        >>> report.bias.by_group["estimate"].round(2).to_dict()
        {'F': -1.0, 'M': 0.0}
    """
    begin = time.perf_counter()
    reading = Reading(encoding, decimal, delimiter, sheet)
    log = as_log(log)
    one_each, attributes = split_groups(named_roles(columns, roles))
    settings = AuditSettings(
        columns=one_each,
        attributes=attributes,
        features=features,
        nominal_columns=nominal_columns,
        leave_out=leave_out,
        reference=as_text(reference),
        level=level,
        weighting=weighting,
        missing=missing,
        missing_marks=missing_marks,
        reward_values=reward_values,
        group_probability=group_probability,
        errors=errors,
        weigh_by_propensity=weigh_by_propensity,
        windows=windows,
        categories=categories,
        unfavourable=unfavourable,
        units=units,
        logistic=logistic,
        title=title,
    )
    # Rows that do not fit into memory are written to a folder that nobody else can read.
    with TemporaryDirectory(prefix="evenhand-", ignore_cleanup_errors=True) as spill:
        listener = tell or (lambda _: None)
        return _audit(log, engine, reading, settings, spill, listener, progress, begin)


def _audit(
    log: Any,
    engine: str | None,
    reading: Reading,
    settings: AuditSettings,
    spill: str,
    tell: Tell,
    progress: Progress | None,
    begin: float,
) -> Audit:
    tell("opening the log")
    opened = open_log(log, engine, settings.marks, spill, reading)
    source = replace(opened, progress=progress)
    given = engine, reading, settings
    try:
        with one_thread(), checksum_of(log, source) as checksum:
            report = _audit_source(source, settings, tell, begin)
            tell("checksum of the log")
            repeat = provenance(log, source, checksum.result(), opened.table.columns, given)
        return replace(report, facts=replace(report.facts, provenance=repeat))
    except (RecursionError, MemoryError) as error:
        raise told(source.label, error) from error
    finally:
        source.close()


def _audit_source(source: Source, settings: AuditSettings, tell: Tell, begin: float) -> Audit:
    """Audit a log that is open."""
    tell("looking at its columns")
    check_rows(source)
    settings = with_categoricals(source, with_attributes(source, settings))
    source, settings = with_group_column(source, settings)
    source = with_group_names(cleaned(source, as_labels(settings)), settings)
    source = spelled(source, settings)
    source, settings = with_round_groups(source, settings)
    source, settings, membership = with_probabilities(source, settings)
    if membership is not None:
        source = one_row_each(source, columns_of(source, settings).count)
        seen = look(source, settings, by_probability=True)
        return audit_by_probability(AuditRun(source, settings, seen, tell), membership, begin)
    source, settings, crossing = crossed(source, settings)
    source = with_guesses(source, settings)
    source = one_row_each(source, columns_of(source, settings).count)
    seen = look(source, settings)
    settings = _with_reference(seen, settings)
    _check_roles(seen, settings)
    report = audit_log(AuditRun(source, settings, seen, tell, crossing), begin)
    _check_groups(report)
    return report


def _with_reference(seen: Look, settings: AuditSettings) -> AuditSettings:
    """The settings with the reference as the log spells it: 0 is group "black=0"."""
    if settings.reference in (None, MEAN) or seen.labels is None:
        return settings
    groups = sorted({str(group) for group, *_ in seen.labels if group is not None})
    reference = meant(settings.reference, groups, seen.columns.group)
    if reference is None and "=" in str(settings.reference):
        _checks.one_of("reference", settings.reference, groups)
    return replace(settings, reference=reference or settings.reference)


def _check_roles(seen: Look, settings: AuditSettings) -> None:
    if settings.weigh_by_propensity and seen.columns.propensity is None:
        raise InputError(
            f"{setting('weigh_by_propensity')} is set, and no column is the propensity; name it, "
            f"such as {setting('propensity', blank('COLUMN'))}"
        )
    if settings.weighting == "arms":
        if seen.columns.arm is None:
            raise InputError(
                f"{setting('weighting')} is 'arms', and no column is the arm; name it, such as "
                f"{setting('arm', blank('COLUMN'))}"
            )
        if not seen.by_arm:
            raise InputError(
                f"{setting('weighting')} is 'arms', and there are about {seen.arms:,} arms; "
                f"allowed are up to 200: merge some, or choose {setting('weighting', 'pulls')}"
            )
    if settings.windows and seen.columns.timestamp is None:
        raise InputError(
            f"{setting('windows')} is {settings.windows}, and no column is the timestamp; name it, "
            f"such as {setting('timestamp', blank('COLUMN'))}, or leave {setting('windows')} out"
        )


def _check_groups(report: Audit) -> None:
    """Raise if only one group has rows that lack nothing."""
    if len(report.bias.groups) < 2:
        raise DataError(
            f"group is {report.facts.columns.group!r}, and only {report.bias.groups[0]!r} has rows "
            "that lack nothing; an audit compares at least two groups: choose "
            f"{setting('missing', 'fill')}, or leave out columns that lack values"
        )
