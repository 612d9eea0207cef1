"""The one place that knows how policies are called: choosing, choosing again, reasons."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.policies.base import Policy
from evenhand.policies.decision import Decision
from evenhand.recording._decision_records import candidate_contexts
from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.fold import LedgerState

Array = NDArray[np.float64]


class Chosen(NamedTuple):
    """A decision, and what else the ledger keeps of it."""

    decision: Decision
    contexts: bytes
    propensities: bytes
    scores: bytes
    cost: float


def choose(policy: Policy, rows: Array, available: NDArray[np.bool_] | None, draw: int) -> Chosen:
    """Choose an arm with the random numbers of round `draw`."""
    policy.__dict__["round"] = draw - 1  # bypasses __setattr__, as `select` does
    decision = policy.select(rows, available)
    chances = policy.propensities(rows, available, round=draw)
    table = decision.scores.table
    corrected = table[0] + table[2]
    best = corrected.max() if available is None else corrected[available].max()
    cost = float(best - corrected[decision.arm])
    return Chosen(
        decision,
        candidate_contexts(policy, rows, available).tobytes(),
        chances.tobytes(),
        table[:3].astype(np.float32).tobytes(),
        cost if np.isfinite(cost) else 0.0,
    )


def seeded(state: LedgerState, seed: int) -> None:
    """Give a state's policy the random numbers of a process."""
    round = state.policy.round
    state.policy._restart(seed)
    state.policy.round = round


def rows_of(state: LedgerState, body: kinds.Decision) -> tuple[Array, NDArray[np.bool_] | None]:
    """The contexts of all arms, and which were available; None if all were."""
    assert body.contexts is not None and body.propensities is not None
    n, d = len(body.propensities) // 8, body.width // 8
    table = np.frombuffer(body.contexts)
    rows = np.tile(table, (n, 1)) if table.size == d and n > 1 else table.reshape(n, d)
    missing = np.logical_or.reduce(np.isnan(rows), axis=1)
    if not missing.any():
        return np.ascontiguousarray(rows), None
    return np.where(missing[:, None], blank(state), rows), ~missing


def blank(state: LedgerState) -> Array:
    """The context of an arm that is not available."""
    return np.zeros(len(state.features)) if state.given is None else state.given.blank


def again(state: LedgerState, body: kinds.Decision, seed: int) -> Chosen:
    """Make a decision again, on the state of its version."""
    seeded(state, seed)
    rows, available = rows_of(state, body)
    return choose(state.policy, rows, available, body.draw)


def scores_of(body: kinds.Decision) -> Array:
    """Estimate, width and correction of every arm, as they were kept."""
    return np.frombuffer(body.scores, dtype=np.float32).astype(np.float64).reshape(3, -1)


def contributions(state: LedgerState, body: kinds.Decision) -> Array:
    """By arm and feature: what the feature adds to the corrected estimate in a decision.

    Estimates and corrections are linear in the context, so the scores at unit contexts are their
    coefficients.
    """
    rows, available = rows_of(state, body)
    n, d = len(rows), len(state.features)
    policy, round = state.policy, state.policy.round
    coefficients = np.empty((n, d))
    for k in range(d):
        policy.round = max(body.draw - 1, 0)
        unit = rows.copy()  # with the groups that candidates brought
        unit[:, :d] = 0.0
        unit[:, k] = 1.0
        scores = policy.select(unit).scores
        coefficients[:, k] = scores.estimate + scores.correction
    policy.round = round
    table: Array = coefficients * rows[:, :d]
    return table if available is None else np.where(available[:, None], table, np.nan)


def bias_of(state: LedgerState, level: float) -> dict[str, Any]:
    """What was learned about the bias: rows, words and what is not known."""
    report: Any = state.policy.bias(level=level, feature_names=state.features)
    frame = report.to_frame()
    rows = []
    for row in frame.to_dict("records"):
        rows.append({str(key): _plain(value) for key, value in row.items()})
    return {"level": level, "rows": rows, "words": report.to_words().splitlines()}


def _plain(value: Any) -> Any:
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value
