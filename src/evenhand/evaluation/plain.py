"""Reports as plain data, for JSON and for whoever reads them in another language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenhand.plain import records

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
