"""Reports as plain data, for JSON and for whoever reads them in another language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from evenhand.evaluation.report import FairnessReport

FORMAT, VERSION = "evenhand fairness report", 1


def plain(report: FairnessReport) -> dict[str, Any]:
    """Everything in a report as plain data. None stands for NaN and for infinite ends."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "level": report.level,
        "least": report.least,
        "threshold": report.threshold,
        "simultaneous": report.simultaneous,
        "proportions": report.proportions,
        "groups": list(report.groups),
        "metrics": list(report.metrics),
        "by_group": records(report.to_frame()),
        "overall": records(report.overall.reset_index()),
        "parity": records(report.parity()),
        "difference": records(report.difference().reset_index()),
        "ratio": records(report.ratio().reset_index()),
        "screening": records(report.screening()),
        "sums": records(report.sums.table.reset_index()),
        "words": report.to_words(),
    }


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """A dict per row."""
    return [
        {str(name): value(one) for name, one in row.items()}
        for row in table.to_dict(orient="records")
    ]


def value(one: Any) -> Any:
    """Text, true or false, whole numbers and finite numbers as they are; None for all else."""
    if one is None or one is pd.NA:
        return None
    if isinstance(one, (bool, np.bool_)):
        return bool(one)
    if isinstance(one, str):
        return one
    if isinstance(one, (int, np.integer)):
        return int(one)
    return float(one) if np.isfinite(one) else None
