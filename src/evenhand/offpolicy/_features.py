"""The context of logged decisions, from columns of a table as in a world from a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand._columns.buckets import is_nominal, plain
from evenhand._columns.features import Encoding, features_of, matrix, told_of_constants
from evenhand._columns.missing import Choice, Missing
from evenhand._columns.missing_marks import Marks
from evenhand._columns.words import shown
from evenhand.errors import InputError, lacking, setting
from evenhand.events.columns import reward_as_feature


def with_contexts(
    frame: pd.DataFrame,
    roles: Sequence[str],
    reward: str,
    features: Sequence[str],
    nominal_columns: Collection[str],
    categories: int,
    missing: Choice,
    marks: Marks,
    decimal: str = ".",
) -> tuple[pd.DataFrame, list[str]]:
    """The rows that lack nothing, with columns of numbers for the context, and their names.

    Numbers stay as they are, so a second call changes nothing. Where there are categories, an
    intercept comes first, as in `TableWorld`.

    Args:
        frame: a row per decision.
        roles: the columns that every decision must have.
        reward: the column of the reward, which may still be to come.
        features: the columns of the context.
        nominal_columns: columns of numbers that are really categories.
        categories: how many categories of a column have a feature of their own.
        missing: what to do about missing values.
        marks: those that are known, to be repeated in errors.
        decimal: what its text has in place of a decimal point.
    """
    listed = {"features": list(features), "nominal_columns": list(nominal_columns)}
    for parameter, names in listed.items():
        absent = [name for name in names if name not in frame]
        if absent:
            raise InputError(
                f"{setting(parameter)} is {absent[0]!r}, which is not a column; the log has "
                f"{shown(map(str, frame))}",
                value=absent[0],
            )
    features, nominal_columns = listed.values()
    categories = _checks.whole("categories", categories, least=2)
    if reward in features:
        raise reward_as_feature(reward)
    aside = [name for name in nominal_columns if name not in features]
    if aside:
        raise InputError(
            f"{setting('nominal_columns')} has {aside[0]!r}, which is not a feature; name it with "
            f"{setting('features', [aside[0]])} as well, or leave it out",
            value=aside[0],
        )
    if features:
        frame = frame.copy(deep=False)
        for name in features:
            frame[name] = plain(frame[name])
    used = list(dict.fromkeys([*roles, *features]))
    with lacking("leave_out"):  # features are named one by one here
        frame = Missing(frame, used, missing, unfillable=roles).settle(frame)
        if not features:
            return frame, []
        intercept = any(name in nominal_columns or is_nominal(frame[name]) for name in features)
        encoded = features_of(
            frame,
            features,
            nominal_columns,
            Encoding(True, categories, intercept),
            marks,
            decimal,
        )
        if intercept:
            encoded = told_of_constants(encoded, intercept, scaled=False)
        contexts, scales = matrix(encoded, np.arange(len(frame)), intercept, standardise=False)
    names = [str(name) for name in scales["feature"]]
    taken = sorted({*names} & {*roles, reward} - {*features})
    if taken:
        raise InputError(
            f"{setting('features')} make a feature called {taken[0]!r}, and the log has a column "
            "of this name with another role; rename the column"
        )
    others = frame[[name for name in frame if str(name) not in names]]
    return pd.concat([others, pd.DataFrame(contexts, frame.index, names)], axis=1), names
