"""The result of an audit: tables, words, JSON and a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from evenhand._atomic_files import Content, write_all
from evenhand._prose import records
from evenhand.audit._inference.leakage import Giveaways
from evenhand.audit._report.intersections import Intersections
from evenhand.audit._report.provenance import Provenance
from evenhand.audit._report.schema import SCHEMA_ID, schema
from evenhand.audit._settings import AuditSettings
from evenhand.audit._sums.error_rates import KnownTruth
from evenhand.bias._findings import same_findings
from evenhand.bias.report import BiasReport
from evenhand.errors import InputError, in_language, setting
from evenhand.events.columns import Columns

if TYPE_CHECKING:
    from evenhand.audit._report.by_probability import ByProbability
    from evenhand.audit._report.logistic import Logistic
    from evenhand.audit._stages.blend import Blended
    from evenhand.fairness import FairnessReport

FORMAT, VERSION = "evenhand audit", 1
ENDINGS = (".html", ".pdf", ".json")  # of what `save` writes
WHOLE_LOG, WITHIN_WINDOWS = "whole log", "within windows"


@dataclass(frozen=True, eq=False)
class Facts:
    """Facts about the log and the run itself."""

    settings: AuditSettings
    columns: Columns
    label: str
    engine: str
    made: str  # when, in UTC
    left_out: tuple[str, ...]  # columns of the log that play no part
    rows: int
    used: int
    filled: int
    merged: dict[str, int]
    rare: dict[str, list[str]]  # categories that count as the most frequent one
    baselines: dict[str, str]
    arms: int
    by_arm: bool
    binary: bool
    errors: str
    classical: tuple[str, ...]  # groups with too few rows for the errors of the others
    clusters: dict[str, int] | None
    crossing: int
    objection: str  # why nothing can be measured against true rewards
    constant: dict[str, float]  # features that never vary, by name: their value
    windows: tuple[str, str] | None  # the weighting and the errors within time windows
    common: tuple[str, ...]  # the groups that are known in every window
    effective: dict[str, float] | None
    whole_weights: bool  # whether weights look like counts of people
    giveaways: Giveaways
    seconds: float
    provenance: Provenance = field(default_factory=Provenance)

    def chosen(self) -> dict[str, Any]:
        """All settings as plain data."""
        plain = {name: _plain(value) for name, value in vars(self.settings).items()}
        return {**plain, "missing_marks": self.settings.marks.with_more(())}


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """The result of an audit, as `evenhand.audit` returns it.

    Attributes:
        bias: the bias report: estimates and intervals by group and feature.
        within: the same with the time window held constant, or None where there are no windows.
        against_truth: the same of the feedback less the true reward, where there is one, or None.
        blend: the bias from equal averages and from true rewards together, the test of equal
            averages, and whether the arrival of true rewards depends on the outcome; or None.
        decomposition: a row per group and part of its gap: unadjusted, explained by the features
            and by each of them, and what is left.
        truth: error rates and calibration by group, where the true reward is known, or None.
        logistic: logistic models beside the straight lines where rewards are 0 and 1, or None.
        metrics: the fairness metrics with intervals, from the same sums.
        groups: a row per group: rows, and sums of rewards.
        impact: selection rates and impact ratios by category, as in `fairness.impact`; of every
            group column and of the cells where they meet.
        intersections: the bias by each of several group columns, and the cells where they meet;
            None with a single one.
        extras: a row per group: sums of weights and of inverse propensities, and overrides.
        arms: a row per group and arm, or None.
        drift: a row per time window and group, or None without times.
        changes: a row per group: whether its bias changes from window to window, or None.
        missing: a row per group and column that lacks values, and what was done about it.
        facts: about the log and the run.
        by_probability: about groups that are known by probability, or None. Then what counts people
            by group (metrics, impact, groups by outcome) is empty or None.

    Example:
        >>> import pandas as pd, evenhand as eh
        >>> log = pd.DataFrame({"group": ["F", "M"] * 20, "age": [20, 30, 40, 50] * 10})
        >>> log["reward"] = log["age"] / 10 - (log["group"] == "F") + [0.1, -0.1] * 20
        >>> audit = eh.audit(log, reference="M")
        >>> audit
        Audit('a frame', rows=40, groups=F, M)
        >>> audit.decomposition.query("part == 'left'")["estimate"].round(2).tolist()
        [-0.8]
        >>> print(audit.to_words().split(".")[0])
        40 rows in 2 groups by group (F 20, M 20) are compared with group M
        >>> audit.to_dict()["rows_used"], audit.schema()["title"]
        (40, 'An audit by evenhand')
        >>> import json, pathlib, tempfile
        >>> json.loads(audit.to_json()) == audit.to_dict()
        True
        >>> audit.to_html()[:15], audit.to_pdf()[:5]
        ('<!doctype html>', b'%PDF-')
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> [path.name for path in audit.save(folder / "loans.html")]
        ['loans.html', 'loans.json']
    """

    bias: BiasReport
    within: BiasReport | None
    against_truth: BiasReport | None
    blend: Blended | None
    decomposition: pd.DataFrame
    truth: KnownTruth | None
    logistic: Logistic | None
    metrics: FairnessReport | None
    groups: pd.DataFrame
    impact: pd.DataFrame
    intersections: Intersections | None
    extras: pd.DataFrame
    arms: pd.DataFrame | None
    drift: pd.DataFrame | None
    changes: pd.DataFrame | None
    missing: pd.DataFrame
    facts: Facts
    by_probability: ByProbability | None = None

    @cached_property
    def summary(self) -> list[str]:
        """The findings in sentences, the most important first."""
        from evenhand.audit._report import by_probability, summary

        write = summary.summary if self.by_probability is None else by_probability.summary
        return [in_language(sentence) for sentence in write(self)]

    @cached_property
    def believe(self) -> str:
        """Which comparison the summary reports: "whole log", or "within windows".

        It is the one within time windows where the two do not find the same.
        """
        same = self.within is None or same_findings(self.bias, self.within)
        return WHOLE_LOG if same else WITHIN_WINDOWS

    @cached_property
    def method(self) -> list[str]:
        """How it was found, and what that assumes."""
        from evenhand.audit._report import by_probability
        from evenhand.audit._report.method import method

        return method(self) if self.by_probability is None else by_probability.method(self)

    @cached_property
    def limits(self) -> list[str]:
        """What cannot be known from this log."""
        from evenhand.audit._report import by_probability, method

        limits = method.limits if self.by_probability is None else by_probability.limits
        return [in_language(sentence) for sentence in limits(self)]

    def to_words(self) -> str:
        """The summary, one sentence to a line."""
        return "\n".join(self.summary)

    def __str__(self) -> str:
        return self.to_words()

    def __repr__(self) -> str:
        return (
            f"Audit({self.facts.label!r}, rows={self.facts.rows}, "
            f"groups={', '.join(self.bias.groups)})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, versioned. None stands for what is not known."""
        from evenhand import __version__

        facts = self.facts
        roles = {
            name: value
            for name, value in vars(facts.columns).items()
            if value is not None and name != "features"
        }
        return {
            "$schema": SCHEMA_ID,
            "format": FORMAT,
            "version": VERSION,
            "evenhand": __version__,
            "made": facts.made,
            "title": facts.settings.title,
            "log": facts.label,
            "engine": facts.engine,
            "rows": facts.rows,
            "rows_used": facts.used,
            "rows_filled": facts.filled,
            "columns": {**roles, "features": list(facts.columns.features)},
            "left_out": list(facts.left_out),
            "settings": facts.chosen(),
            "reward_values": facts.settings.reward_values,
            "missing_marks": list(facts.settings.marks.every),
            "missing_marks_by_column": _plain(facts.settings.marks.own),
            "baselines": facts.baselines,
            "constant": facts.constant,
            "merged": facts.merged,
            "rare": facts.rare,
            "errors": facts.errors,
            "errors_classical_in": list(facts.classical),
            "clusters": facts.clusters,
            "effective_rows": facts.effective,
            "giveaways": {
                "reward": facts.giveaways.reward,
                "group": {name: list(told) for name, told in facts.giveaways.group.items()},
            },
            "summary": self.summary,
            "bias": self.bias.to_dict(),
            "within_windows": None if self.within is None else self.within.to_dict(),
            "believe": self.believe,
            "against_truth": None if self.against_truth is None else self.against_truth.to_dict(),
            "blend": None if self.blend is None else self.blend.to_dict(),
            "decomposition": _rows(self.decomposition),
            "truth": None if self.truth is None else self.truth.to_dict(),
            "logistic": None if self.logistic is None else self.logistic.to_dict(),
            "metrics": None if self.metrics is None else self.metrics.to_dict(),
            "groups": _rows(self.groups),
            "impact": _rows(self.impact),
            "intersections": None if self.intersections is None else self.intersections.to_dict(),
            "extras": _rows(self.extras),
            "arms": _rows(self.arms),
            "drift": _rows(self.drift),
            "changes": _rows(self.changes),
            "missing": _rows(self.missing),
            "by_probability": (
                None if self.by_probability is None else self.by_probability.to_dict()
            ),
            "method": self.method,
            "limits": self.limits,
            "provenance": facts.provenance.to_dict(),
        }

    @staticmethod
    def schema() -> dict[str, Any]:
        """The JSON Schema of `to_dict` and `to_json`: what every key holds (draft 2020-12)."""
        return schema()

    def to_json(self, indent: int | None = 2) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False)

    def to_html(self) -> str:
        """A page that needs no other file and no network. Needs the extra `charts`."""
        from evenhand.audit._report.page import html

        return html(self)

    def to_pdf(self) -> bytes:
        """The same page on paper, with nothing folded. Needs the extras `charts` and `pdf`."""
        from evenhand._html.pdf import to_pdf

        return to_pdf(self.to_html())

    def save(self, path: str | Path) -> list[Path]:
        """Write the page, and the JSON beside it: "audit.html" gives audit.html and audit.json.

        Args:
            path: of the page, as HTML or as PDF by its ending, or of the JSON alone if it ends in
                .json.
        """
        page = Path(path)
        if page.suffix not in ENDINGS:
            raise InputError(
                f"{setting('path')} is {str(path)!r}; allowed is a name that ends in "
                f"{', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
            )
        contents: dict[Path, Content] = {page.with_suffix(".json"): self.to_json() + "\n"}
        if page.suffix != ".json":
            shown = self.to_pdf() if page.suffix == ".pdf" else self.to_html()
            contents = {page: shown, **contents}
        page.parent.mkdir(parents=True, exist_ok=True)
        write_all(contents)
        return list(contents)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _rows(table: pd.DataFrame | None) -> list[dict[str, Any]] | None:
    return None if table is None else records(table)
