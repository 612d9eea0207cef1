"""The candidates of a decision: the contexts and probabilities of all arms, in logs that keep them.

In a frame, each is an array of numbers in the row of a decision, and None in all other rows:

- `candidate_contexts`: the context of each arm, one after the other; NaN for an arm that was not
  available. If all arms were available and have the same context, it is stored once.
- `candidate_propensities`: the probability of every arm; None if the policy did not give it.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._checks import LARGEST
from evenhand.errors import DataError
from evenhand.events._schema import NAMES
from evenhand.events.columns import ROLES

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

CONTEXTS, CHANCES = (ROLES[role][0] for role in ("candidate_contexts", "candidate_propensities"))
CLOSE = 1e-6  # probabilities are sums of doubles, and other programs round them


class Candidates(NamedTuple):
    """The candidates of many decisions.

    `contexts` is (rows, arms, features), NaN for an arm that was not available; or (rows, features)
    if in every row all arms have the same context. `available` is (rows, arms), and so is
    `propensities`, which is None if any row has none.
    """

    contexts: Array
    available: Bools
    propensities: Array | None


def candidates(
    frame: pd.DataFrame, n_arms: int, features: Sequence[str], first: int = 0
) -> Candidates:
    """The candidates of all decisions in a frame; a DataError names the first damaged row.

    Args:
        frame: rows of a log that keeps candidates.
        n_arms: the number of arms.
        features: the columns of the context.
        first: the number of the first row in messages.
    """
    is_decision = frame[NAMES["propensity"]].notna().to_numpy()
    misplaced = frame[CONTEXTS].notna().to_numpy() != is_decision
    words = "missing or misplaced; allowed is one for each decision and for no other row"
    _stop(CONTEXTS, np.arange(first, first + len(frame)), misplaced, words)
    decisions, numbers = frame[is_decision], np.flatnonzero(is_decision) + first
    arms = decisions[NAMES["arm"]].to_numpy(dtype=np.int64)
    contexts, shared = _contexts(decisions[CONTEXTS].to_list(), n_arms, len(features), numbers)
    available: Bools = np.asarray((~np.isnan(contexts)).any(axis=2))
    stop = partial(_stop, CONTEXTS, numbers)
    bad = available & (~(np.abs(contexts) <= LARGEST)).any(axis=2)
    stop(bad.any(axis=1), "not finite; allowed are finite numbers, or NaN for all of an arm")
    chosen = decisions[list(features)].to_numpy(dtype=np.float64)
    differs = contexts[np.arange(len(arms)), arms] != chosen
    stop(differs.any(axis=1), "inconsistent with the context of the chosen arm in the same row")
    chances = _chances(decisions, available, arms, numbers)
    return Candidates(contexts[:, 0] if shared else contexts, available, chances)


def _contexts(flat: list[Any], k: int, d: int, numbers: Any) -> tuple[Array, bool]:
    """(rows, arms, features), and whether in every row all arms have the same context."""
    lengths = _lengths(flat)
    words = f"of a wrong length; allowed are {k * d} numbers, or {d} if all arms have the same"
    _stop(CONTEXTS, numbers, ~np.isin(lengths, (d, k * d)), words)
    contexts, once = np.empty((len(flat), k, d)), lengths == d
    for rows, arms in ((once, 1), (~once, k)):
        chosen = [flat[i] for i in np.flatnonzero(rows)]
        if chosen:
            contexts[rows] = np.array(chosen, dtype=np.float64).reshape(-1, arms, d)
    return contexts, bool(once.all())


def _chances(decisions: pd.DataFrame, available: Bools, arms: Any, numbers: Any) -> Array | None:
    given, k = decisions[CHANCES].notna().to_numpy(), available.shape[1]
    flat = decisions[CHANCES][given].to_list()
    stop = partial(_stop, CHANCES, numbers[given])
    words = f"; allowed are {k} probabilities that sum to 1"
    stop(_lengths(flat) != k, f"of a wrong length{words}")
    chances = np.array(flat, dtype=np.float64).reshape(-1, k)
    good = (chances >= 0.0).all(axis=1) & (np.abs(chances.sum(axis=1) - 1.0) <= CLOSE)
    stop(~good, f"no distribution{words}")
    outside = (chances > 0.0) & ~available[given]
    stop(outside.any(axis=1), "above 0 for an arm that was not available; allowed is 0")
    chosen = decisions[NAMES["propensity"]].to_numpy(dtype=np.float64)[given]
    off = np.abs(chances[np.arange(len(chances)), arms[given]] - chosen) > CLOSE
    stop(off, f"inconsistent with {NAMES['propensity']} of the chosen arm in the same row")
    return chances if given.all() else None


def _lengths(flat: list[Any]) -> NDArray[np.int64]:
    return np.array([np.size(row) for row in flat], dtype=np.int64)


def _stop(name: str, numbers: Any, wrong: Any, words: str) -> None:
    if wrong.any():
        raise DataError(f"{name} in row {numbers[int(np.argmax(wrong))]} is {words}")


# In files ---------------------------------------------------------------------------------------


def to_base64(values: Array | None) -> bytes:
    """For the journal: the doubles as a base64 string, little-endian; or null."""
    if values is None:
        return b"null"
    return b'"%b"' % b64encode(np.asarray(values, dtype="<f8").tobytes())


def from_base64(text: str | None) -> Array | None:
    """The array that `to_base64` wrote."""
    if text is None:
        return None
    values = np.frombuffer(b64decode(text, validate=True), dtype="<f8")
    return values.astype(np.float64, copy=False)


def to_json(values: Array | None) -> str | None:
    """For CSV: a JSON list, with null for NaN."""
    if values is None:
        return None
    listed = [None if value != value else value for value in values.tolist()]
    return json.dumps(listed, separators=(",", ":"), allow_nan=False)


def from_json(texts: pd.Series, first: int) -> pd.Series:
    """A column that `to_json` wrote."""
    arrays: list[Array | None] = []
    for number, text in enumerate(texts, start=first):
        try:
            arrays.append(None if pd.isna(text) else np.array(json.loads(text), dtype=np.float64))
        except (ValueError, TypeError, RecursionError):
            raise DataError(
                f"{texts.name} in row {number} is {str(text)[:40]!r}; allowed is a JSON list of "
                "numbers, with null for an arm that was not available"
            ) from None
    return pd.Series(arrays, index=texts.index, dtype=object)
