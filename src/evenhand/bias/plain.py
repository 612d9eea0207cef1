"""A report as plain data, for JSON and for whoever reads it in another language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from evenhand.bias.report import BiasReport

FORMAT, VERSION = "evenhand bias report", 1


def plain(report: BiasReport) -> dict[str, Any]:
    """Everything in a report as plain data. None stands for NaN and for infinite freedom."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "reference": report.reference,
        "level": report.level,
        "weighting": report.weighting,
        "groups": list(report.groups),
        "observations": list(report.observations),
        "arms": None if report.arms is None else list(report.arms),
        "features": list(report.features),
        "units": list(report.units),
        "bias": _records(report.to_frame()),
        "totals": _records(report.totals()),
        "weightings": _records(report.weightings()),
        "difference": {name: _value(one) for name, one in report.difference()._asdict().items()},
        "ratio": {name: _value(one) for name, one in report.ratio()._asdict().items()},
        "warnings": list(report.warnings),
        "words": report.to_words(),
    }


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(name): _value(value) for name, value in row.items()}
        for row in table.to_dict(orient="records")
    ]


def _value(value: Any) -> Any:
    if value is None or value is pd.NA:
        return None
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, str):
        return value
    return float(value) if np.isfinite(value) else None
