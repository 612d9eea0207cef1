"""A report as plain data, for JSON and for whoever reads it in another language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenhand.prose import records, value

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
        "assumption": report.assumption,
        "groups": list(report.groups),
        "observations": list(report.observations),
        "arms": None if report.arms is None else list(report.arms),
        "features": list(report.features),
        "units": list(report.units),
        "bias": records(report.to_frame()),
        "totals": records(report.totals()),
        "gaps": records(report.gaps()),
        "weightings": records(report.weightings()),
        "difference": {name: value(one) for name, one in report.difference()._asdict().items()},
        "ratio": {name: value(one) for name, one in report.ratio()._asdict().items()},
        "warnings": list(report.warnings),
        "words": report.to_words(),
    }
