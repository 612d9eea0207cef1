"""What a log says about itself: its version, its features, and the policy it began with."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from evenhand.events.columns import ROLES

FORMAT = "evenhand log"
# A log that keeps candidates is of version 2: a reader of version 1 would lose them. All others are
# still written as version 1.
PLAIN, WITH_CANDIDATES = 1, 2
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
    """

    features: tuple[str, ...]
    policy: dict[str, Any]
    state: dict[str, Any] | None = None
    candidates: bool = False
    rows: dict[str, Any] | None = None
    before: dict[str, Any] | None = None

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
        return (self.features, self.policy, self.candidates) == (
            other.features,
            other.policy,
            other.candidates,
        )

    def to_json(self) -> str:
        """One line of text, which ends with a checksum of itself."""
        told = {
            "format": FORMAT,
            "version": WITH_CANDIDATES if self.candidates else PLAIN,
            "features": list(self.features),
            "policy": self.policy,
            "state": self.state,
        }
        told |= {"candidates": True} if self.candidates else {}
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
            raise ValueError(f"{damaged}: {one_line(error)}") from error
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            raise ValueError(f"{where} is not a log of evenhand's: its format is not {FORMAT!r}")
        if told.get("version") not in (PLAIN, WITH_CANDIDATES):
            raise ValueError(
                f"{where}: the version of the log is {told.get('version')!r}; this evenhand reads "
                f"versions {PLAIN} and {WITH_CANDIDATES}: update evenhand to read newer logs"
            )
        if not _is_unchanged(raw, told):  # after the version: others may have other checksums
            raise ValueError(f"{damaged}: it was changed after it was written")
        try:
            about = cls(
                tuple(map(str, told["features"])),
                dict(told["policy"]),
                _whole(told["state"], "round", "learned"),
                told.get("candidates") is True,
                _whole(told.get("rows"), "number"),
                _whole(told.get("before"), "number"),
            )
            known = [*map(str, about.labels)], about.first_round
        except DAMAGE as error:
            raise ValueError(f"{damaged}: {one_line(error)}") from error
        if not known[0] or len(about.features) != about.policy["settings"].get("n_features"):
            raise ValueError(f"{damaged}: features or groups")
        if about.candidates != (told["version"] == WITH_CANDIDATES):
            raise ValueError(f"{damaged}: candidates")
        return about


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
            raise ValueError(f"{name} is {told[name]!r}")
    if not isinstance(told["sha256"], str):
        raise ValueError("sha256 is no text")
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
        >>> from evenhand.events.header import feature_names
        >>> feature_names(None, 2), feature_names(["age", "income"], 2)
        (('x1', 'x2'), ('age', 'income'))
    """
    if given is None:
        return tuple(f"x{k}" for k in range(1, number + 1))
    if isinstance(given, str):
        raise ValueError(f"features is {given!r}; allowed is a list of {number} names")
    names = tuple(str(name) for name in given)
    if len(names) != number or len(set(names)) < number:
        raise ValueError(
            f"features is {list(names)}; allowed are {number} different names, one per feature"
        )
    taken = {name for known in ROLES.values() for name in known}
    wrong = [name for name in names if name in taken or not name.strip()]
    if wrong:
        raise ValueError(
            f"features has {wrong[0]!r}, which stands for another column of a log; "
            "give it another name"
        )
    return names
