"""What a log says about itself: its version, its features, and the policy it began with."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from evenhand.errors import DamagedError, DataError, InputError
from evenhand.events.columns import ORDER, ROLES

FORMAT = "evenhand log"
# Since version 3 events have numbers and ids. Before it, a log with candidates was of version 2,
# and all others of version 1. They are read as ever, and written as version 3.
PLAIN, WITH_CANDIDATES, VERSION = 1, 2, 3
# Whoever reads a damaged file may stumble over any of these. RecursionError: lists in lists in ...
DAMAGE = (
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    RecursionError,
    MemoryError,
)
_CHECK = re.compile(rb', "check": "([0-9a-f]{8})"}$')


@dataclass(frozen=True)
class About:
    """What is needed beside the rows to give the policy back.

    `policy` is the saved policy at the time when the log began, `state` a checksum of the policy
    when it was closed, with the round and the number of rewards learned that it is for.
    `candidates` says whether all arms of every decision are kept. `rows` is the fingerprint of the
    table that it stands with, and `before` that of the table which this one replaced, since a crash
    may have left that beside a newer file. Logs of older versions of evenhand have neither.
    `key` is what the ids of decisions begin with. `head` is the number of the last event in the
    table, `sum` the checksum of the journal up to it, which snapshots are held against. `replaced`
    are true rewards that later ones replaced, as they have no place in the rows:
    [number, microseconds, id, value].
    """

    features: tuple[str, ...]
    policy: dict[str, Any]
    state: dict[str, Any] | None = None
    candidates: bool = False
    rows: dict[str, Any] | None = None
    before: dict[str, Any] | None = None
    version: int = VERSION
    key: str = ""
    head: int = 0
    sum: int = 0
    replaced: tuple[tuple[int, int | None, str, float], ...] = ()

    @property
    def labels(self) -> list[str]:
        """The group of every arm."""
        labels: list[str] = self.policy["settings"]["groups"]["labels"]
        return labels

    @property
    def first_round(self) -> int:
        """How many decisions the policy had made before this log."""
        return int(self.policy["round"])

    def begins_like(self, other: About) -> bool:
        """Whether two are about the same log."""
        mine, its = ((one.key, one.features, one.policy, one.candidates) for one in (self, other))
        return mine == its

    def to_json(self) -> str:
        """One line of text, which ends with a checksum of itself."""
        told = {
            "format": FORMAT,
            "version": VERSION,
            "key": self.key,
            "head": self.head,
            "sum": self.sum,
            "features": list(self.features),
            "policy": self.policy,
            "state": self.state,
        }
        told |= {"candidates": True} if self.candidates else {}
        told |= {"replaced": [list(one) for one in self.replaced]} if self.replaced else {}
        told |= {} if self.rows is None else {"rows": self.rows}
        told |= {} if self.before is None else {"before": self.before}
        text = json.dumps(told, allow_nan=False)
        return f'{text[:-1]}, "check": "{crc32(text.encode()):08x}"}}'

    @classmethod
    def from_json(cls, text: str | bytes, where: object) -> About:
        """What `to_json` wrote; `where` it stood is named in errors."""
        damaged = f"{where}: what the log says of itself is damaged"
        raw = text if isinstance(text, bytes) else text.encode()
        try:
            told = json.loads(raw)
        except (ValueError, RecursionError, MemoryError) as error:
            raise DamagedError(f"{damaged}: {one_line(error)}") from error
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            raise DataError(f"{where} is not a log of evenhand's: its format is not {FORMAT!r}")
        if told.get("version") not in (PLAIN, WITH_CANDIDATES, VERSION):
            raise DamagedError(
                f"{where}: the version of the log is {_short(told.get('version'))}; this evenhand "
                f"reads versions {PLAIN} to {VERSION}: update evenhand to read newer logs"
            )
        if not _is_unchanged(raw, told):  # after the version: others may have other checksums
            raise DamagedError(f"{damaged}: it was changed after it was written")
        try:
            about = cls(
                tuple(map(str, told["features"])),
                dict(told["policy"]),
                _whole(told["state"], "round", "learned"),
                told.get("candidates") is True,
                _whole(told.get("rows"), "number"),
                _whole(told.get("before"), "number"),
                int(told["version"]),
                *_order(told),
            )
            known = [*map(str, about.labels)], about.first_round
        except DAMAGE as error:
            raise DamagedError(f"{damaged}: {one_line(error)}") from error
        if not known[0] or len(about.features) != about.policy["settings"].get("n_features"):
            raise DamagedError(f"{damaged}: features or groups")
        if about.version < VERSION and about.candidates != (about.version == WITH_CANDIDATES):
            raise DamagedError(f"{damaged}: candidates")
        return about


def _order(told: dict[str, Any]) -> tuple[Any, ...]:
    """Key, head, sum and replaced true rewards; of older logs a key that the policy gives."""
    if told["version"] < VERSION:
        return hashlib.sha256(json.dumps(told["policy"]).encode()).hexdigest()[:20], 0, 0, ()
    key, head, sum, replaced = told["key"], told["head"], told["sum"], told.get("replaced", [])
    if type(head) is not int or type(sum) is not int or not isinstance(key, str):
        raise DamagedError(f"key, head or sum is {key!r}, {head!r}, {sum!r}")
    return key, head, sum, tuple((int(n), at, str(id), float(v)) for n, at, id, v in replaced)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _is_unchanged(raw: bytes, told: dict[str, Any]) -> bool:
    """Whether the checksum is right, or there never was one: older evenhands wrote none."""
    check = _CHECK.search(raw)
    if check is None:
        return not {"check", "rows"} & told.keys()
    return crc32(raw[: check.start()] + b"}") == int(check[1], 16)


def _whole(told: Any, *numbers: str) -> dict[str, Any] | None:
    """An object with whole numbers and a checksum; or nothing."""
    if told is None:
        return None
    for name in numbers:
        if type(told[name]) is not int:
            raise DamagedError(f"{name} is {told[name]!r}")
    if not isinstance(told["sha256"], str):
        raise DamagedError("sha256 is no text")
    return dict(told)


def one_line(error: BaseException) -> str:
    """An error in words, without the lines that some libraries add."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    words = str(error) if isinstance(error, (ValueError, OSError)) else repr(error)
    return " ".join(words.split()) or repr(error)


def feature_names(given: Sequence[object] | None, number: int) -> tuple[str, ...]:
    """The names of the context's columns: x1, x2, ... unless given.

    Example:
        >>> from evenhand.events._header import feature_names
        >>> feature_names(None, 2), feature_names(["age", "income"], 2)
        (('x1', 'x2'), ('age', 'income'))
    """
    if given is None:
        return tuple(f"x{k}" for k in range(1, number + 1))
    if isinstance(given, str):
        raise InputError(f"features is {given!r}; allowed is a list of {number} names")
    names = tuple(str(name) for name in given)
    if len(names) != number or len(set(names)) < number:
        raise InputError(
            f"features is {list(names)}; allowed are {number} different names, one per feature"
        )
    taken = {*ORDER, *(name for known in ROLES.values() for name in known)}
    wrong = [name for name in names if name in taken or not name.strip()]
    if wrong:
        raise InputError(
            f"features has {wrong[0]!r}, which stands for another column of a log; "
            "give it another name"
        )
    return names
