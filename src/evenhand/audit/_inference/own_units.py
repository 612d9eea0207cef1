"""A report in the features' own units, from sums about centres.

Products of features with large means lose their digits, so features and reward have centres
subtracted before they are summed up, and regressions are solved there. With contexts as rows that
start with 1, a centred context is x M, where M has -centre in its first row; coefficients b about
the centres are M b about zero, and their covariance V is M V M'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from evenhand.bias._contexts import BINARY, INTERCEPT, NUMBER, Contexts, units_of
from evenhand.bias._fit import Designs, Fit
from evenhand.bias.report import BiasReport
from evenhand.bias.statistics import Array, Bools


def about_zero(
    report: BiasReport,
    centres: Array,
    reward_centre: float,
    units: Mapping[str, float] | None = None,
) -> BiasReport:
    """The same report about zero.

    Args:
        report: made from statistics of features less centres, the first of which is 1.
        centres: what was subtracted from each feature; 0 for the first.
        reward_centre: what was subtracted from the rewards.
        units: the steps of features that the report uses, as for `bias_report`.
    """
    move = np.eye(len(centres))
    move[0] -= centres
    contexts = _contexts(report._contexts, centres)
    apart = report._apart
    return replace(
        report,
        units=units_of(contexts, report.features, units),
        average=None if report.average is None else report.average + centres,
        overall=None if report.overall is None else report.overall + centres,
        _fit=_moved(report._fit, move, reward_centre),
        _contexts=contexts,
        _apart=None if apart is None else _later(apart, move),
    )


def _later(apart: Callable[[], Fit], move: Array) -> Callable[[], Fit]:
    return lambda: _moved(apart(), move, 0.0)


def _moved(fit: Fit, move: Array, level: float) -> Fit:
    vectors = fit.vectors @ move.T
    # The level of rewards is what their centre took off, and belongs to the intercept alone.
    vectors[:, 0] += level
    return replace(
        fit,
        vectors=vectors,
        covariances=move @ fit.covariances @ move.T,
        between=None if fit.between is None else move @ fit.between @ move.T,
        designs=_designs(fit.designs, move),
    )


@dataclass(frozen=True, eq=False)
class Moved(Designs):
    """Designs about zero that judge contexts by the designs about the centres."""

    centred: Designs
    move: Array

    def reaches(self, contexts: Array) -> Bools:
        """Whether each regression covers each context: (rows, contexts)."""
        return self.centred.reaches(contexts @ self.move)


def _designs(designs: Designs, move: Array) -> Moved:
    missing, scale = designs.missing.copy(), designs.scale.copy()
    absent = designs.absent.copy()
    for row in np.flatnonzero(designs.rank < len(move)):
        # What is missing about zero: M v for every v that is missing about the centres.
        # A projection has the eigenvalues 0 and 1; one half tells them apart whatever the rounding.
        held, directions = np.linalg.eigh(designs.missing[row])
        known = directions[:, held > 0.5] / designs.scale[row][:, None]
        gone = np.eye(len(move))[:, designs.absent[row]]
        moved = move @ np.hstack([known, gone])
        # Moving by a centre leaves rounding where there should be 0, and 0 says which features are
        # linked.
        moved[np.abs(moved) < 1e-12 * np.abs(moved).max(axis=0)] = 0.0
        lone = np.count_nonzero(moved, axis=0) == 1  # a feature that is always zero
        absent[row] = (moved[:, lone] != 0.0).any(axis=1)
        rest = moved[:, ~lone]
        # Columns of unit length, whatever the units, as Designs has them.
        size = np.abs(rest).max(axis=1, initial=0.0)
        scale[row] = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 1.0)
        basis = np.linalg.qr(rest * scale[row][:, None])[0] if rest.size else rest
        missing[row] = basis @ basis.T
    return Moved(designs.inverse, designs.rank, scale, absent, missing, designs, move)


def _contexts(contexts: Contexts, centres: Array) -> Contexts:
    """Averages about zero. Features of 0 and 1 were not centred, so their kind is right."""
    kinds = tuple(
        kind if centre == 0.0 or kind not in (BINARY, INTERCEPT) else NUMBER
        for kind, centre in zip(contexts.kinds, centres, strict=True)
    )
    return replace(
        contexts,
        means=None if contexts.means is None else contexts.means + centres,
        overall=None if contexts.overall is None else contexts.overall + centres,
        kinds=kinds,
    )
