"""The five kinds of events in a log.

`seq` numbers all events of a log: 1, 2, 3, ... without a gap. `at` is the time of the event in
microseconds since the start of 1970, or None in logs of older versions. `id` is the id of the
decision that the event is about.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._checks import MALFORMED
from evenhand.errors import DamagedError
from evenhand.events._candidates import from_base64, to_base64
from evenhand.events._header import one_line

Array = NDArray[np.float64]
Context = tuple[float, ...]


class DecisionMade(NamedTuple):
    """A policy chose an arm. The last two fields are about all arms, if the log keeps candidates.

    Example:
        >>> from evenhand.events.event import DecisionMade
        >>> made = DecisionMade(1, 0, "loan-3", round=1, arm=0, propensity=0.5, explored=False,
        ...                     context=(1.0,))
        >>> made.arm, made.contexts
        (0, None)
    """

    seq: int
    at: int | None
    id: str
    round: int
    arm: int
    propensity: float
    explored: bool
    context: Context
    contexts: Array | None = None
    propensities: Array | None = None


class RewardObserved(NamedTuple):
    """The observed reward of a decision arrived, and the policy learned it.

    Example:
        >>> from evenhand.events.event import RewardObserved
        >>> RewardObserved(seq=2, at=0, id="loan-3", reward=0.5).reward
        0.5
    """

    seq: int
    at: int | None
    id: str
    reward: float


class TrueRewardObserved(NamedTuple):
    """The true reward of a decision arrived.

    If the policy of the log learns from true rewards, a decision has one; if not, the last counts.

    Example:
        >>> from evenhand.events.event import TrueRewardObserved
        >>> TrueRewardObserved(seq=3, at=0, id="loan-3", reward=1.0).id
        'loan-3'
    """

    seq: int
    at: int | None
    id: str
    reward: float


class Overridden(NamedTuple):
    """A human chose another arm, which has another context.

    Example:
        >>> from evenhand.events.event import Overridden
        >>> Overridden(seq=2, at=0, id="loan-3", arm=1, context=(2.0,)).arm
        1
    """

    seq: int
    at: int | None
    id: str
    arm: int
    context: Context


class RowsAbsorbed(NamedTuple):
    """The policy learned from rows that are not decisions of this log, so `id` is None.

    Example:
        >>> from evenhand.events.event import RowsAbsorbed
        >>> rows = RowsAbsorbed(1, 0, None, arms=(1,), contexts=((2.0,),), rewards=(3.0,))
        >>> rows.rewards
        (3.0,)
    """

    seq: int
    at: int | None
    id: None
    arms: tuple[int, ...]
    contexts: tuple[Context, ...]
    rewards: tuple[float, ...]


Event = DecisionMade | RewardObserved | TrueRewardObserved | Overridden | RowsAbsorbed


# As a line of JSON ------------------------------------------------------------------------------


def to_line(events: Sequence[Event]) -> bytes:
    """Events as one line of JSON: a list for a single event, a list of lists for several.

    Example:
        >>> from evenhand.events.event import RewardObserved, to_line
        >>> to_line([RewardObserved(7, 1_000_000, "loan-3", 0.5)])
        b'[7,1000000,"r","loan-3",0.5]'
    """
    if len(events) == 1:
        return _to_json(events[0])
    return b"[%b]" % b",".join(map(_to_json, events))


def from_line(line: Any) -> list[Event]:
    """The events of a line; a DamagedError if it is malformed.

    Args:
        line: the line after JSON has parsed it.

    Example:
        >>> from evenhand.events.event import from_line
        >>> from_line([7, 1_000_000, "r", "loan-3", 0.5])
        [RewardObserved(seq=7, at=1000000, id='loan-3', reward=0.5)]
    """
    try:
        several = isinstance(line[0], list)
        return [_from_json(*event) for event in (line if several else [line])]
    except MALFORMED as error:
        raise DamagedError(one_line(error)) from error


def _to_json(event: Event) -> bytes:
    """An event as JSON. Python writes floats so that reading gives the same double."""
    if isinstance(event, DecisionMade):
        line = b'[%d,%b,"d",%b,%d,%d,%r,%d,%r' % (
            event.seq,
            _time(event),
            quoted(event.id).encode(),
            event.round,
            event.arm,
            event.propensity,
            event.explored,
            list(event.context),
        )
        if event.contexts is None:
            return line + b"]"
        return b"%b,%b,%b]" % (line, to_base64(event.contexts), to_base64(event.propensities))
    if isinstance(event, RowsAbsorbed):
        return _json(event.seq, event.at, "a", event.arms, event.contexts, event.rewards)
    if isinstance(event, Overridden):
        return _json(event.seq, event.at, "o", event.id, event.arm, event.context)
    kind = b"r" if isinstance(event, RewardObserved) else b"t"
    name = quoted(event.id).encode()
    return b'[%d,%b,"%b",%b,%r]' % (event.seq, _time(event), kind, name, event.reward)


def _time(event: Event) -> bytes:
    return b"null" if event.at is None else b"%d" % event.at


def _json(*parts: Any) -> bytes:
    return json.dumps(parts, allow_nan=False, separators=(",", ":")).encode()


def _from_json(seq: Any, at: Any, kind: Any, *parts: Any) -> Event:
    number, time = whole(seq), None if at is None else whole(at)
    if kind == "d":
        id, round, arm, propensity, explored, context, *more = parts
        if len(more) not in (0, 2):
            raise DamagedError(f"a decision has {len(more)} parts about other arms")
        contexts, chances = map(from_base64, more or (None, None))
        if more and contexts is None:
            raise DamagedError("a decision has no contexts of its arms")
        return DecisionMade(
            *(number, time, _text(id), whole(round), whole(arm), real(propensity), bool(explored)),
            reals(context),
            contexts,
            chances,
        )
    if kind == "r":
        id, reward = parts
        return RewardObserved(number, time, _text(id), real(reward))
    if kind == "t":
        id, reward = parts
        return TrueRewardObserved(number, time, _text(id), real(reward))
    if kind == "o":
        id, arm, context = parts
        return Overridden(number, time, _text(id), whole(arm), reals(context))
    if kind == "a":
        arms, contexts, rewards = parts
        rows = list(zip(arms, contexts, rewards, strict=True))
        return RowsAbsorbed(
            *(number, time, None),
            tuple(whole(arm) for arm, _, _ in rows),
            tuple(reals(context) for _, context, _ in rows),
            tuple(real(reward) for _, _, reward in rows),
        )
    raise DamagedError(f"{kind!r} is not a kind of event")


def whole(value: Any) -> int:
    """A whole number that a table can hold; a TypeError if it is anything else.

    Example:
        >>> from evenhand.events.event import whole
        >>> whole(7)
        7
    """
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise TypeError(f"{value!r} is not a whole number")
    return value


def real(value: Any) -> float:
    """A number as a float; a TypeError if it is anything else.

    Example:
        >>> from evenhand.events.event import real
        >>> real(7)
        7.0
    """
    if type(value) not in (int, float):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def reals(values: Any) -> Context:
    """A list of numbers as a tuple of floats; a TypeError if it is anything else.

    Example:
        >>> from evenhand.events.event import reals
        >>> reals([1, 0.5])
        (1.0, 0.5)
    """
    return tuple(map(real, values))


def _text(id: Any) -> str:
    if not isinstance(id, str):
        raise TypeError(f"the id of a decision is {id!r}")
    return id
