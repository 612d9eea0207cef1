"""The header of a log: its version, its features, and the policy it began with."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from evenhand._checks import MALFORMED
from evenhand.errors import DamagedError, DataError, EvenhandError, InputError
from evenhand.events.columns import ORDER, ROLES

FORMAT = "evenhand log"
# Since version 3, events have numbers and ids. Before it, a log with candidates had version 2, and
# all others version 1. They can still be read, and are written as VERSION.
PLAIN, WITH_CANDIDATES, NUMBERED = 1, 2, 3
VERSION = NUMBERED
_CHECK = re.compile(rb', "check": "([0-9a-f]{8})"}$')


@dataclass(frozen=True)
class About:
    """Everything that is needed besides the rows to restore the policy.

    `policy` is the saved policy when the log began, `state` a checksum of the policy when it was
    closed, with its round and the number of rewards that it had learned. `candidates` says whether
    all arms of every decision are kept. `rows` is the fingerprint of the table of this header, and
    `before` that of the table which it replaced, because a crash may leave that one beside a newer
    header. Logs of older versions have neither.
    The ids of decisions begin with `key`. `head` is the number of the last event in the
    table, and `sum` the checksum of the journal up to it, which snapshots are compared with.
    `replaced` has the true rewards that later ones replaced, which have no place in the rows:
    [number, microseconds, id, value]. `truth` says whether the policy learned the true rewards of
    this log; then a decision has only one.

    Example:
        >>> import tempfile, pathlib, evenhand as eh
        >>> from evenhand.events import About, FileLedger
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "decisions.csv"
        >>> eh.log_to(path, eh.UniformRandom(["F", "M"], n_features=1), features=["age"]).close()
        >>> about = FileLedger(path, write=False).about
        >>> about.features, About.from_json(about.to_json(), "a copy") == about
        (('age',), True)
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
    truth: bool = False

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
        """Whether both are headers of the same log, at any two moments.

        Example:
            >>> import tempfile, pathlib, evenhand as eh
            >>> from evenhand.events import FileLedger
            >>> path = pathlib.Path(tempfile.mkdtemp()) / "decisions.csv"
            >>> eh.log_to(path, eh.UniformRandom(["F", "M"], n_features=1, seed=1)).close()
            >>> before = FileLedger(path, write=False).about
            >>> with eh.log_to(path) as logged:
            ...     decision = logged.select([[1.0], [2.0]])
            >>> FileLedger(path, write=False).about.begins_like(before)
            True
        """
        pair = (self, other)
        mine, its = ((log.key, log.features, log.policy, log.candidates, log.truth) for log in pair)
        return mine == its

    def to_json(self) -> str:
        """One line of text, which ends with a checksum of itself."""
        data = {
            "format": FORMAT,
            "version": VERSION,
            "key": self.key,
            "head": self.head,
            "sum": self.sum,
            "features": list(self.features),
            "policy": self.policy,
            "state": self.state,
        }
        data |= {"candidates": True} if self.candidates else {}
        data |= {"truth": True} if self.truth else {}
        data |= {"replaced": [list(event) for event in self.replaced]} if self.replaced else {}
        data |= {} if self.rows is None else {"rows": self.rows}
        data |= {} if self.before is None else {"before": self.before}
        text = json.dumps(data, allow_nan=False)
        return f'{text[:-1]}, "check": "{crc32(text.encode()):08x}"}}'

    @classmethod
    def from_json(cls, text: str | bytes, where: object) -> About:
        """The header that `to_json` wrote; errors say `where` it comes from."""
        damaged = f"{where}: the header of the log is damaged"
        raw = text if isinstance(text, bytes) else text.encode()
        try:
            data = json.loads(raw)
        except (ValueError, RecursionError, MemoryError) as error:
            raise DamagedError(f"{damaged}: {one_line(error)}") from error
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise DataError(f"{where} is not a log of evenhand's: its format is not {FORMAT!r}")
        if data.get("version") not in (PLAIN, WITH_CANDIDATES, NUMBERED):
            raise DamagedError(
                f"{where}: the version of the log is {_short(data.get('version'))}; this evenhand "
                f"reads versions {PLAIN} to {VERSION}: update evenhand to read newer logs"
            )
        if not _is_unchanged(raw, data):  # after the version: others may have another checksum
            raise DamagedError(f"{damaged}: it was changed after it was written")
        try:
            about = cls(
                tuple(map(str, data["features"])),
                dict(data["policy"]),
                _whole(data["state"], "round", "learned"),
                data.get("candidates") is True,
                _whole(data.get("rows"), "number"),
                _whole(data.get("before"), "number"),
                int(data["version"]),
                *_order(data),
                data.get("truth") is True,
            )
            about.first_round  # noqa: B018 - a whole number
            whole = len(about.features) == _row_length(about.policy) and _is_names(about.labels)
        except MALFORMED as error:
            raise DamagedError(f"{damaged}: {one_line(error)}") from error
        if not whole:
            raise DamagedError(f"{damaged}: features or groups")
        if about.version < NUMBERED and about.candidates != (about.version == WITH_CANDIDATES):
            raise DamagedError(f"{damaged}: candidates")
        return about


def _is_names(labels: Any) -> bool:
    """Whether these are names, at least one."""
    return isinstance(labels, list) and bool(labels) and all(isinstance(x, str) for x in labels)


def _row_length(policy: dict[str, Any]) -> int | None:
    """How many numbers a context has: the features, and membership that came with the round."""
    settings = policy["settings"]
    levels = settings["groups"].get("per_round", {}).values()
    d = settings.get("n_features")
    return None if d is None else d + sum(len(given) + 1 for given in levels)


def _order(data: dict[str, Any]) -> tuple[str, int, int, tuple[Any, ...]]:
    """Key, head, sum and replaced true rewards; the key of older logs comes from the policy."""
    if data["version"] < NUMBERED:
        return hashlib.sha256(json.dumps(data["policy"]).encode()).hexdigest()[:20], 0, 0, ()
    key, head, sum, replaced = data["key"], data["head"], data["sum"], data.get("replaced", [])
    if type(head) is not int or type(sum) is not int or not isinstance(key, str):
        raise DamagedError(f"key, head or sum is {key!r}, {head!r}, {sum!r}")
    return key, head, sum, tuple((int(n), at, str(id), float(v)) for n, at, id, v in replaced)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _is_unchanged(raw: bytes, data: dict[str, Any]) -> bool:
    """Whether the checksum is right, or there never was one, as in older versions."""
    check = _CHECK.search(raw)
    if check is None:
        return not {"check", "rows"} & data.keys()
    return crc32(raw[: check.start()] + b"}") == int(check[1], 16)


def _whole(data: Any, *numbers: str) -> dict[str, Any] | None:
    """An object with whole numbers and a checksum; or None."""
    if data is None:
        return None
    for name in numbers:
        if type(data[name]) is not int:
            raise DamagedError(f"{name} is {data[name]!r}")
    if not isinstance(data["sha256"], str):
        raise DamagedError("sha256 is not text")
    return dict(data)


def one_line(error: BaseException) -> str:
    """An error as one line; some libraries write more."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, EvenhandError):
        return error.message  # in which settings can still be translated
    words = str(error) if isinstance(error, (ValueError, OSError)) else repr(error)
    return " ".join(words.split()) or repr(error)


def feature_names(given: Sequence[object] | None, number: int) -> tuple[str, ...]:
    """The names of the context's columns, by default x1, x2, ...

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
            f"features has {wrong[0]!r}, which is the name of another column of a log; "
            "choose another name"
        )
    return names
