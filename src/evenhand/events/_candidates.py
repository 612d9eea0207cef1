"""All arms of a decision: their contexts and probabilities, as a log keeps them if it is asked to.

In a frame both are an array of numbers in the row of the decision, and None in all other rows:

- `candidate_contexts`: arm after arm, the context of each; NaN for an arm that could not be chosen.
  Where all arms could be and have the same context, it is there once.
- `candidate_propensities`: the probability of every arm; None if the policy could not tell.
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
CLOSE = 1e-6  # probabilities of a policy are sums of doubles, and those of others are rounded


class Candidates(NamedTuple):
    """The arms of many decisions.

    `contexts` is (rows, arms, features), NaN for an arm that was not available; or (rows, features)
    if in every row all arms have the same. `available` is (rows, arms), and so are `propensities`,
    which are None if any row has none.
    """

    contexts: Array
    available: Bools
    propensities: Array | None


def candidates(
    frame: pd.DataFrame, n_arms: int, features: Sequence[str], first: int = 0
) -> Candidates:
    """The candidates of all decisions in a frame; a DataError names the row that is damaged.

    Args:
        frame: rows of a log that keeps candidates.
        n_arms: the number of arms.
        features: the columns of the context.
        first: the number of the first row in messages.
    """
    made = frame[NAMES["propensity"]].notna().to_numpy()
    lost = frame[CONTEXTS].notna().to_numpy() != made
    words = "missing or out of place; allowed is one for each decision and for no other row"
    _stop(CONTEXTS, np.arange(first, first + len(frame)), lost, words)
    own, numbers = frame[made], np.flatnonzero(made) + first
    arms = own[NAMES["arm"]].to_numpy(dtype=np.int64)
    contexts, shared = _contexts(own[CONTEXTS].to_list(), n_arms, len(features), numbers)
    available: Bools = np.asarray((~np.isnan(contexts)).any(axis=2))
    stop = partial(_stop, CONTEXTS, numbers)
    bad = available & (~(np.abs(contexts) <= LARGEST)).any(axis=2)
    stop(bad.any(axis=1), "not finite; allowed are finite numbers, or NaN for all of an arm")
    chosen = own[list(features)].to_numpy(dtype=np.float64)
    unlike = contexts[np.arange(len(arms)), arms] != chosen
    stop(unlike.any(axis=1), "at odds with the context of the chosen arm in the same row")
    chances = _chances(own, available, arms, numbers)
    return Candidates(contexts[:, 0] if shared else contexts, available, chances)


def _contexts(flat: list[Any], k: int, d: int, numbers: Any) -> tuple[Array, bool]:
    """(rows, arms, features), and whether all arms have the same everywhere."""
    lengths = _lengths(flat)
    words = f"of another length; allowed are {k * d} numbers, or {d} if all arms have the same"
    _stop(CONTEXTS, numbers, ~np.isin(lengths, (d, k * d)), words)
    found, once = np.empty((len(flat), k, d)), lengths == d
    for rows, arms in ((once, 1), (~once, k)):
        chosen = [flat[i] for i in np.flatnonzero(rows)]
        if chosen:
            found[rows] = np.array(chosen, dtype=np.float64).reshape(-1, arms, d)
    return found, bool(once.all())


def _chances(own: pd.DataFrame, available: Bools, arms: Any, numbers: Any) -> Array | None:
    there, k = own[CHANCES].notna().to_numpy(), available.shape[1]
    flat = own[CHANCES][there].to_list()
    stop = partial(_stop, CHANCES, numbers[there])
    words = f"; allowed are {k} probabilities that sum to 1"
    stop(_lengths(flat) != k, f"of another length{words}")
    found = np.array(flat, dtype=np.float64).reshape(-1, k)
    good = (found >= 0.0).all(axis=1) & (np.abs(found.sum(axis=1) - 1.0) <= CLOSE)
    stop(~good, f"no distribution{words}")
    outside = (found > 0.0) & ~available[there]
    stop(outside.any(axis=1), "above 0 for an arm that could not be chosen; allowed is 0")
    chosen = own[NAMES["propensity"]].to_numpy(dtype=np.float64)[there]
    off = np.abs(found[np.arange(len(found)), arms[there]] - chosen) > CLOSE
    stop(off, f"at odds with {NAMES['propensity']} of the chosen arm in the same row")
    return found if there.all() else None


def _lengths(flat: list[Any]) -> NDArray[np.int64]:
    return np.array([np.size(one) for one in flat], dtype=np.int64)


def _stop(name: str, numbers: Any, wrong: Any, words: str) -> None:
    if wrong.any():
        raise DataError(f"{name} in row {numbers[int(np.argmax(wrong))]} is {words}")


# In files ---------------------------------------------------------------------------------------


def to_base64(values: Array | None) -> bytes:
    """For the journal: a string of doubles as they are in memory, the little end first; or null."""
    if values is None:
        return b"null"
    return b'"%b"' % b64encode(np.asarray(values, dtype="<f8").tobytes())


def from_base64(text: str | None) -> Array | None:
    """What `to_base64` wrote."""
    if text is None:
        return None
    found = np.frombuffer(b64decode(text, validate=True), dtype="<f8")
    return found.astype(np.float64, copy=False)


def to_json(values: Array | None) -> str | None:
    """For CSV: a JSON list, with null for NaN."""
    if values is None:
        return None
    listed = [None if one != one else one for one in values.tolist()]
    return json.dumps(listed, separators=(",", ":"), allow_nan=False)


def from_json(texts: pd.Series, first: int) -> pd.Series:
    """A column of what `to_json` wrote."""
    found: list[Array | None] = []
    for number, text in enumerate(texts, start=first):
        try:
            found.append(None if pd.isna(text) else np.array(json.loads(text), dtype=np.float64))
        except (ValueError, TypeError):
            raise DataError(
                f"{texts.name} in row {number} is {str(text)[:40]!r}; allowed is a JSON list of "
                "numbers, with null for an arm that could not be chosen"
            ) from None
    return pd.Series(found, index=texts.index, dtype=object)
