"""The logistic regression of every group, by Newton's method.

It has the design of the straight line: an intercept and the features about their centres, with a
vector of its own for every group. One step is one aggregation for all regressions together, in the
engine that holds the rows. Between steps everything is computed in directions in which the rows
have a mean square of 1, so that the units of features do not matter, and directions that the rows
never showed are left out as they are in the straight line.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from evenhand.audit._inference.logistic_batches import Batches, Run
from evenhand.audit._inference.regression_scores import (
    Fits,
    check_same_rows,
    counted_again,
    linear,
    looked_up,
    named,
    numbered,
    worked_out,
)
from evenhand.audit._inference.standard_errors import FEW_EVENTS
from evenhand.audit._input.expressions import number
from evenhand.audit._input.sources import Source
from evenhand.audit._sums.aggregate import fetch_by
from evenhand.bias._fit import ROOM
from evenhand.bias.statistics import Array, Bools

MOST_STEPS = 25
MOST_STEPS_OF_MANY = 6  # above MANY_ROWS, where every pass takes long
MANY_ROWS = 2_000_000
LARGEST = 30.0  # of log-odds: a chance of 1e-13, and exp stays far from its ends in every engine
SMALL_STEP = 1e-6  # Newton's error is squared: after such a step 1e-12 of it is left
STEADY = 0.5  # of the step before: where the maximum is finite, late steps shrink much faster
STEADY_STEPS = 3
RUNAWAY = "the coefficients diverge, as they do if a feature separates the outcomes 0 and 1"


@dataclass(frozen=True, eq=False)
class Logits:
    """Logistic regressions: `fits` with their vectors in place of the straight lines'.

    The `inverse` of these is still that of the straight lines.
    """

    fits: Fits
    rows: Any  # with the number of their regression in k
    batches: Batches | None  # the same, where DuckDB has them
    why: tuple[str, ...]  # why a regression has no solution; empty where it has
    likelihood: Array  # (fits,): the logarithm, at the last step but one
    steps: int

    @property
    def known(self) -> Bools:
        """The regressions that have a solution."""
        return np.array([not reason for reason in self.why])


@dataclass
class _State:
    """The state of the search for one solution."""

    basis: Array  # (d, rank): a unit of each column has a mean square of 1 over the rows
    vector: Array  # the best so far
    likelihood: float
    step: Array  # from there to where to look next
    why: str = ""
    done: bool = False
    before: float = np.inf  # the size of the last step
    steady: int = 0  # how many steps in a row hardly shrank

    @property
    def next(self) -> Array:
        return self.vector if self.done else self.vector + self.step


def fit_logits(source: Source, rows: Any, fits: Fits, gram: Array) -> Logits:
    """Fit every regression.

    Args:
        source: where the rows are.
        rows: as `prepared` made them, with rewards of 0 and 1.
        fits: the straight lines.
        gram: (fits, d, d), X'WX of each.
    """
    kept = ["k", "y", *(f"z{i}" for i in range(fits.vectors.shape[1] - 1)), "w", "c"]
    rows = numbered(rows, fits)
    rows = worked_out(source, rows.select([name for name in kept if name in rows.columns]))
    batches = Batches(source, rows, fits) if source.kind == "duckdb" else None
    states = [_start(fits, gram[k], k) for k in range(len(fits.labels))]
    most = MOST_STEPS if fits.n.sum() <= MANY_ROWS else MOST_STEPS_OF_MANY
    steps = 0
    while steps < most and not all(state.done for state in states):
        steps += 1
        tried = replace(fits, vectors=np.array([state.next for state in states]))
        seen = _queried(source, rows, tried) if batches is None else _multiplied(batches, tried)
        for k, state in enumerate(states):
            if not state.done and fits.n[k] > 0.0:
                state.why = _too_few(seen.ones[k], fits.n[k])
                state.done = bool(state.why)
            if not state.done:
                _advance(state, seen, k, fits.weight[k] / max(fits.n[k], 1.0))
    for state in states:
        if not state.done:
            state.why = f"it has no solution within {most} steps"
    return Logits(
        replace(fits, vectors=np.array([state.vector for state in states])),
        rows,
        batches,
        tuple(state.why for state in states),
        np.array([state.likelihood for state in states]),
        steps,
    )


def _start(fits: Fits, gram: Array, k: int) -> _State:
    """Newton's first step from a constant chance p needs no pass: it is the straight line's.

    With b the straight line and 1 the vector that is 1 in every row, the step in log-odds is
    (b - p 1) / (p (1 - p)).
    """
    weight = max(fits.weight[k], 1e-300)
    # Times the root of the weight: B'GB = weight, so a unit along a column has a mean square of 1
    # over the rows.
    basis = basis_of(gram, fits.rank[k]) * np.sqrt(weight)
    flat = basis @ (basis.T @ gram[:, 0]) / weight  # the vector that is 1 in every row
    # Rewards are all 0 or all 1 at the ends; `_too_few` says so later.
    chance = np.clip(fits.total[k] / weight, 1e-9, 1.0 - 1e-9)
    level = np.log(chance / (1.0 - chance))
    spread = chance * (1.0 - chance)
    return _State(
        basis,
        level * flat,
        float(weight * (chance * np.log(chance) + (1.0 - chance) * np.log1p(-chance))),
        (fits.vectors[k] - chance * flat) / spread,
        *(("it has no rows", True) if fits.n[k] == 0.0 else ()),
    )


def _too_few(ones: float, n: float) -> str:
    """A reason, if hardly any rewards are 1, or 0: chances are not known, whatever the weights."""
    few, which = (ones, 1) if ones <= n - ones else (n - ones, 0)
    if few >= FEW_EVENTS:
        return ""
    return (
        f"it has {f'only {few:,.0f}' if few else 'no'} outcome{'s' if few != 1 else ''} of {which}"
    )


def basis_of(gram: Array, rank: int) -> Array:
    """Directions that the rows showed, as columns B with B'GB = 1."""
    sizes = np.diag(gram)
    scale = np.sqrt(np.where(sizes > 0.0, sizes, 1.0))
    held, directions = np.linalg.eigh(gram / np.outer(scale, scale))
    kept = slice(len(held) - int(rank), None)  # eigenvalues come in order
    basis: Array = directions[:, kept] / np.sqrt(held[kept]) / scale[:, None]
    return basis


class _Seen(NamedTuple):
    """The sums of one pass for each regression, at its current vector."""

    likelihood: Array  # (fits,): its logarithm
    score: Array  # (fits, d): the gradient, sum w (y - p) x
    information: Array  # (fits, d, d): minus the Hessian, sum w p (1 - p) x x'
    ones: Array  # (fits,): rewards of 1


def _multiplied(batches: Batches, fits: Fits) -> _Seen:
    """One pass by products of matrices."""
    many, d = fits.vectors.shape
    seen = _Seen(np.zeros(many), np.zeros((many, d)), np.zeros((many, d, d)), np.zeros(many))

    def add(runs: list[Run]) -> None:
        for k, x, y, w in runs:
            eta = log_odds(fits.vectors[k], x)
            chance = sigmoid(eta)
            # -log p of a reward of 1, and -log (1 - p) of one of 0.
            seen.likelihood[k] -= w @ np.logaddexp(0.0, (1.0 - 2.0 * y) * eta)
            seen.score[k] += x @ (w * (y - chance))
            seen.information[k] += (x * (w * chance * (1.0 - chance))) @ x.T
            seen.ones[k] += y.sum()

    batches.each(add)
    return seen


def _queried(source: Source, rows: Any, fits: Fits) -> _Seen:
    """One pass by SQL, in the engine that has the rows."""
    d, many = fits.vectors.shape[1], len(fits.labels)
    scored = with_chances(source, rows, fits)
    x = [number(1.0), *(scored[f"z{i}"] for i in range(d - 1))]
    # -log p of a reward of 1, and -log (1 - p) of one of 0, without cancellation.
    surprise = (number(1.0) + ((number(1.0) - scored["y"] * 2.0) * scored["eta"]).exp()).ln()
    if "w" in scored.columns:
        surprise = scored["w"] * surprise
    aggregates = {
        f"h{i}_{j}": (scored["v"] * x[i] * x[j]).sum() for i in range(d) for j in range(i, d)
    }
    aggregates |= {f"u{i}": (scored["e"] * x[i]).sum() for i in range(d)}
    aggregates |= {"surprise": surprise.sum(), "ones": scored["y"].sum(), **counted_again(scored)}
    frame = fetch_by(source, scored, ["k"], aggregates)
    check_same_rows(source, frame, fits)
    at = frame["k"].to_numpy(dtype=np.int64)
    seen = _Seen(np.zeros(many), np.zeros((many, d)), np.zeros((many, d, d)), np.zeros(many))
    seen.likelihood[at] = -frame["surprise"].to_numpy(dtype=np.float64)
    seen.ones[at] = frame["ones"].to_numpy(dtype=np.float64)
    for i in range(d):
        seen.score[at, i] = frame[f"u{i}"].to_numpy(dtype=np.float64)
        for j in range(i, d):
            column = frame[f"h{i}_{j}"].to_numpy(dtype=np.float64)
            seen.information[at, i, j] = seen.information[at, j, i] = column
    return seen


def log_odds(vector: Array, x: Array) -> Array:
    """The log-odds of rows whose features are the columns of x."""
    return np.clip(vector @ x, -LARGEST, LARGEST)


def sigmoid(eta: Array) -> Array:
    """The chance of a 1 at these log-odds."""
    chance: Array = 1.0 / (1.0 + np.exp(-eta))
    return chance


def with_chances(source: Source, rows: Any, fits: Fits) -> Any:
    """Numbered rows with log-odds eta, chance p, e = w (y - p) and v = w p (1 - p)."""
    rows = looked_up(source, rows, named("b", fits.vectors))
    eta = linear(rows, "b", fits.vectors.shape[1])
    rows = worked_out(source, rows.mutate(eta=eta.clip(number(-LARGEST), number(LARGEST))))
    rows = worked_out(source, rows.mutate(p=chance_of(rows["eta"])))
    e, v = rows["y"] - rows["p"], rows["p"] * (number(1.0) - rows["p"])
    if "w" in rows.columns:
        e, v = rows["w"] * e, rows["w"] * v
    return worked_out(source, rows.mutate(e=e, v=v))


def chance_of(eta: Any) -> Any:
    """The same as an expression."""
    return number(1.0) / (number(1.0) + (-eta).exp())


def _advance(state: _State, seen: _Seen, k: int, mean: float) -> None:
    """Take the step if the likelihood did not fall, and compute the next; halve it if it did.

    With the score s, the information H and the basis B, Newton's step is B (B'HB)^-1 B's. `mean` is
    the mean weight of the rows: a gain in likelihood is counted in rows of that weight.
    """
    # Near the solution a step changes the likelihood by less than the rounding of its sum.
    rounding = 1e-12 * abs(state.likelihood)
    if not seen.likelihood[k] >= state.likelihood - rounding:
        state.step = state.step / 2.0
        return
    state.vector, state.likelihood = state.vector + state.step, float(seen.likelihood[k])
    inner = state.basis.T @ seen.information[k] @ state.basis
    slope = state.basis.T @ seen.score[k]
    # In this basis X'WX is a multiple of I. So an eigenvalue this small does not come from the
    # features: p (1 - p) has vanished in all rows that say anything of a direction.
    least = float(np.linalg.eigvalsh(inner)[0])
    if not least > ROOM * np.finfo(float).eps * float(np.trace(inner)):
        state.why, state.done = RUNAWAY, True
        return
    move = np.linalg.solve(inner, slope)
    # In this basis the length of a step is how far it moves the log-odds of a row, on average.
    size, gain = float(np.linalg.norm(move)), float(move @ slope) / mean
    # Where a feature separates the outcomes, every step moves the log-odds by about as much as the
    # last, while the likelihood hardly gains.
    state.steady = state.steady + 1 if size > STEADY * state.before and gain < 1.0 else 0
    state.before, state.step = size, state.basis @ move
    if state.steady >= STEADY_STEPS:
        state.why, state.done = RUNAWAY, True
    # The step is taken without another pass: its error is of the order of its square.
    elif size <= SMALL_STEP:
        state.vector, state.done = state.vector + state.step, True
