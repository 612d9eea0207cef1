"""Errors that show in the sums, and what the sums say about weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from evenhand.audit._input.diagnosis import check_propensities
from evenhand.audit._input.expressions import as_number
from evenhand.audit._input.sources import Source
from evenhand.audit._settings import AuditSettings
from evenhand.audit._sums.cells import Cells
from evenhand.audit._sums.design import Design
from evenhand.bias.statistics import Bools
from evenhand.errors import DataError, setting
from evenhand.events.columns import Columns


def check_chances(
    source: Source, frame: pd.DataFrame, column: str | None, settings: AuditSettings
) -> None:
    """Raise if propensities are outside 0 to 1; their inverse is then below 1.

    Only then are they queried themselves: the sums have the least inverse anyway.
    """
    if column is None or not (frame["surest"] < 1.0 - 1e-5).any():
        return
    chance = as_number(source.table[column])
    ends = source.table.aggregate(low=chance.min(), high=chance.max())
    low, high = source.fetch(ends).iloc[0]
    check_propensities(column, low, high, settings.columns)


def check_weights(frame: pd.DataFrame, columns: Columns, settings: AuditSettings) -> None:
    """Raise if weights or propensities are outside what is allowed."""
    if settings.weigh_by_propensity and not (frame["surest"] >= 1.0 - 1e-5).all():
        raise DataError(
            f"{setting('propensity')} is {columns.propensity!r}, which has values outside 0 to 1; "
            "allowed are numbers above 0 and up to 1",
            value=columns.propensity,
        )
    if columns.weight is not None and not (frame["least"] > 0.0).all():
        raise DataError(
            f"{setting('weight')} is {columns.weight!r}, which has values of 0 or below; allowed "
            f"are numbers above 0: name a column that counts people in {setting('count')}, where 0 "
            "is allowed",
            value=columns.weight,
        )


def not_finite(
    frame: pd.DataFrame, design: Design, columns: Columns, settings: AuditSettings
) -> DataError:
    """The error for sums that are not finite although nothing is missing."""
    if settings.weigh_by_propensity and (frame["weighed"] != frame["n"]).any():
        return DataError(
            f"{setting('propensity')} is {columns.propensity!r}, which has values of 0; allowed "
            "are numbers above 0 and up to 1",
            value=columns.propensity,
        )
    too_large = [
        feature.column
        for i, feature in enumerate(design.features)
        if not np.isfinite(frame[f"z{i}_{i}"].to_numpy(dtype=np.float64)).all()
    ]
    name = too_large[0] if too_large else columns.reward
    other = f"leave it out with {setting('leave_out', [name])}" if too_large else "name another"
    return DataError(
        f"column {name!r} has an infinity or numbers too large to be squared; allowed are "
        f"finite numbers: correct them, or {other}",
        parameter="features" if too_large else "reward",
        value=name,
    )


def recentred(design: Design, cells: Cells, features: Bools, reward: bool) -> Design:
    """The design centred at the means that are known now, for these features and the reward."""
    means = cells.means()
    # Twelve digits: the centre stands in queries as text, and has to be the same number in all of
    # them.
    moved = tuple(
        replace(feature, centre=float(f"{feature.centre + mean:.12g}"))
        if far and feature.kind == "number"
        else feature
        for feature, mean, far in zip(design.features, means[1:-1], features, strict=True)
    )
    centre = design.reward_centre
    if reward:
        centre = float(f"{centre + means[-1]:.12g}")
    return replace(design, features=moved, reward_centre=centre)


def whole_weights(cells: Cells) -> bool:
    """Whether all weights are whole, as counts of people are, and not all of them 1."""
    total = cells.frame[["w", "n", "broken"]].sum()
    return bool(total["broken"] == 0 and total["w"] > total["n"])


def effective_rows(cells: Cells, groups: tuple[str, ...]) -> dict[str, float] | None:
    """Kish's effective number of rows, (sum w)^2 / sum w^2, by group, if rows have weights."""
    if cells.weights is None:
        return None
    by_group = cells.frame.groupby("g")[["w", "ww"]].sum().astype(float)
    size = by_group["w"] ** 2 / by_group["ww"]
    return {name: float(size[name]) for name in groups}
