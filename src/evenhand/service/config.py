"""The configuration of a service: a TOML file that names features, arms, groups and the store."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenhand import _checks
from evenhand._toml import Kind, TomlFile
from evenhand.errors import EvenhandError, InputError
from evenhand.groups import Groups
from evenhand.policies import PooledGroupFair
from evenhand.policies._settings import POLICIES, settings_of
from evenhand.policies.base import Policy
from evenhand.service._arms import arms_and_groups
from evenhand.service._features import CATEGORY, TEXT, TYPES, YES_NO, CandidateFeature, Encoder

SECONDS = {
    "second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800,
    "month": 2_629_800, "year": 31_557_600,
}  # fmt: skip
ON_ARRIVAL, AFTER_WAIT = "on arrival", "after wait"
ASSUMED, CONFIRMED = "assumed", "confirmed"


@dataclass(frozen=True)
class Server:
    """Where the service listens, and its limits.

    Example:
        >>> from evenhand.service.config import Server
        >>> Server().host, Server().max_candidates
        ('127.0.0.1', 1000)
    """

    host: str = "127.0.0.1"
    port: int = 8321
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    max_body: int = 1_000_000
    max_candidates: int = 1000
    rate: float = 1000.0  # requests per second and key, so that one key cannot starve the others
    https: bool = False
    queue: int = 2048


@dataclass(frozen=True)
class Config:
    """What a configuration file says.

    Example:
        >>> import tempfile, pathlib
        >>> from evenhand.service.config import load
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "loans.toml"
        >>> _ = path.write_text('''
        ... wait = "30 days"
        ... [features.income]
        ... low = 0
        ... [arms]
        ... north-f = "F"
        ... north-m = "M"
        ... ''')
        >>> config = load(path)
        >>> config.wait, config.encoder().columns, config.groups.names
        (2592000.0, ('intercept', 'income'), ('F', 'M'))
        >>> config.policy()
        PooledGroupFair(n_arms=2, groups=F, M, n_features=2, rounds=0)
    """

    path: Path
    title: str
    store: str
    wait: float
    learn: str
    use: str
    default_reward: float | None
    retention: float
    features: tuple[CandidateFeature, ...]
    intercept: bool
    arms: tuple[str, ...]
    groups: Groups
    policy_name: str
    settings: dict[str, Any]
    server: Server = field(default_factory=Server)
    snapshot_every: int = 20_000
    review_share: float = 0.1
    claim: float = 900.0

    def encoder(self) -> Encoder:
        """How features become the columns of a context."""
        return Encoder(self.features, self.intercept)

    def policy(self) -> Policy:
        """The policy, before it has learned anything."""
        kind = POLICIES[self.policy_name]
        return kind(self.groups, len(self.encoder().columns), **self.settings)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_TEXT = Kind("a string", lambda value: isinstance(value, str))
_NUMBER = Kind("a number", _is_number)
_WHOLE = Kind("a whole number above 0", lambda value: type(value) is int and value > 0)
_SWITCH = Kind("true or false", lambda value: isinstance(value, bool))
_TEXTS = Kind(
    "a list of strings",
    lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
)
_TABLE = Kind("a table", lambda value: isinstance(value, dict))
_ARMS = Kind("a table, or a list of names", lambda value: isinstance(value, (dict, list)))
_FILE = {
    "title": _TEXT, "store": _TEXT, "wait": _TEXT, "learn": _TEXT, "use": _TEXT,
    "default_reward": _NUMBER, "retention": _TEXT, "intercept": _SWITCH,
    "snapshot_every": _WHOLE, "features": _TABLE, "arms": _ARMS, "groups": _TABLE,
    "policy": _TABLE, "server": _TABLE, "review": _TABLE,
}  # fmt: skip
_FEATURE = {"type": _TEXT, "unit": _TEXT, "low": _NUMBER, "high": _NUMBER, "values": _TEXTS}
_REVIEW = {
    "share": Kind("a number from 0 to 1", lambda value: _is_number(value) and 0 <= value <= 1),
    "claim": _TEXT,
}
_SERVER = {
    "host": _TEXT, "port": _WHOLE, "hosts": _TEXTS, "max_body": _WHOLE, "max_candidates": _WHOLE,
    "rate": _NUMBER, "https": _SWITCH, "queue": _WHOLE,
}  # fmt: skip


def load(path: str | Path) -> Config:
    """Read a configuration; an error names the file, the line and the key.

    Example:
        >>> import tempfile, pathlib
        >>> from evenhand.service.config import load
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "loans.toml"
        >>> _ = path.write_text('[arms]\\na = "F"\\nb = "M"\\n[features.age]\\nlow = 9\\nhigh = 1')
        >>> try:
        ...     load(path)
        ... except ValueError as error:
        ...     print(error)
        loans.toml, line 5: features.age.low is 9; allowed is a number below high, 1
    """
    where = Path(path)
    if not where.is_file():
        raise InputError(f"CONFIG is {str(path)!r}, but there is no such file")
    tables = (_TABLE, _ARMS)
    file = TomlFile(where, above=[key for key, kind in _FILE.items() if kind not in tables])
    data = file.checked("", file.data, _FILE)
    features = tuple(
        _feature(file, name, given) for name, given in data.get("features", {}).items()
    )
    intercept = data.get("intercept", True)
    if not features and not intercept:
        file.refuse("features", "is empty; give at least one feature, or intercept = true")
    columns = Encoder(features, intercept).columns
    if not columns:
        file.refuse("features", "has texts only, which are not learned; give another feature")
    if len(set(columns)) < len(columns):
        file.refuse("features", "has two features with the same column; rename one")
    arms, groups = arms_and_groups(file, data)
    name, settings = _policy(file, data)
    review = file.checked("review.", data.get("review", {}), _REVIEW)
    config = Config(
        path=where,
        title=data.get("title", "Decisions"),
        store=_store(file, where, data.get("store", f"sqlite:{where.stem}.db")),
        wait=_duration(file, "wait", data.get("wait", "30 days")),
        learn=_choice(file, data, "learn", (ON_ARRIVAL, AFTER_WAIT)),
        use=_choice(file, data, "use", (ASSUMED, CONFIRMED)),
        default_reward=_reward(file, data),
        retention=_duration(file, "retention", data.get("retention", "25 months")),
        features=features,
        intercept=intercept,
        arms=arms,
        groups=groups,
        policy_name=name,
        settings=settings,
        server=_server(file, data.get("server", {})),
        snapshot_every=data.get("snapshot_every", 20_000),
        review_share=float(review.get("share", 0.1)),
        claim=_duration(file, "review.claim", review.get("claim", "15 minutes")),
    )
    _try_policy(file, config)
    return config


def _feature(file: TomlFile, name: str, given: Any) -> CandidateFeature:
    key = f"features.{name}"
    if not isinstance(given, dict):
        file.refuse(key, f"is {given!r}; allowed is a table such as [{key}]")
    if not name.strip() or not name.isprintable():
        file.refuse(key, "has a name that is empty or cannot be printed; rename it")
    file.checked(f"{key}.", given, _FEATURE)
    kind = given.get("type", "number")
    if kind not in TYPES:
        file.refuse(f"{key}.type", f"is {kind!r}; allowed are {', '.join(TYPES)}")
    values = tuple(given.get("values", ()))
    if kind == CATEGORY and (len(values) < 2 or len(set(values)) < len(values)):
        file.refuse(key, "is a category; give values, a list of at least two different texts")
    if kind != CATEGORY and values:
        file.refuse(f"{key}.values", f"is for a category, but type is {kind!r}")
    if kind in (CATEGORY, YES_NO, TEXT) and {"low", "high"} & given.keys():
        file.refuse(f"{key}.low", f"is for numbers, but type is {kind!r}")
    largest = _checks.LARGEST
    low, high = float(given.get("low", -largest)), float(given.get("high", largest))
    if not -largest <= low < high <= largest:
        limits = "a number below high" if low >= high else f"a number up to {largest:g}"
        which, value, other = ("low", low, high) if "low" in given else ("high", high, low)
        file.refuse(f"{key}.{which}", f"is {value:g}; allowed is {limits}, {other:g}")
    return CandidateFeature(name, kind, given.get("unit", ""), low, high, values)


def _policy(file: TomlFile, data: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    given = dict(data.get("policy", {}))
    name = given.pop("name", PooledGroupFair.__name__)
    known = [k for k, kind in POLICIES.items() if kind.__module__.startswith("evenhand.policies.")]
    file.known("policy.name", str(name), known)
    # The ledger keeps only estimates, corrections and widths: no page could show prices of shares.
    not_here = {"groups", "n_features", "conventions", "shares"}
    allowed = set(settings_of(POLICIES[name])) - not_here
    for key in given:
        file.known(f"policy.{key}", key, allowed)
    return name, given


def _try_policy(file: TomlFile, config: Config) -> None:
    try:
        config.policy()
    except EvenhandError as error:
        about = getattr(error, "parameter", None)
        key = "arms" if about in (None, "groups", "labels") else f"policy.{about}"
        file.refuse(key, f": {error.told('file')}")


def _store(file: TomlFile, where: Path, text: str) -> str:
    kind, colon, rest = text.partition(":")
    if kind == "sqlite" and colon and rest:
        return f"sqlite:{(where.parent / rest).resolve()}"
    if kind not in ("postgresql", "postgres") or not rest.startswith("//"):
        file.refuse(
            "store", "is unknown; allowed is sqlite:FILE or postgresql://USER@HOST/DATABASE"
        )
    return text


def _choice(file: TomlFile, data: Mapping[str, Any], key: str, allowed: tuple[str, ...]) -> str:
    value: str = data.get(key, allowed[0])
    if value not in allowed:
        file.refuse(key, f"is {value!r}; allowed are {', '.join(map(repr, allowed))}")
    return value


def _reward(file: TomlFile, data: Mapping[str, Any]) -> float | None:
    value = data.get("default_reward")
    if value is not None and not abs(value) <= _checks.LARGEST:
        file.refuse("default_reward", f"is {value}; allowed is a finite number")
    return None if value is None else float(value)


def _duration(file: TomlFile, key: str, text: str) -> float:
    """Seconds of a duration such as "30 days"."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d+)?) *([a-z]+?)s?", text.strip())
    if not match or match[2] not in SECONDS:
        units = ", ".join(f"{unit}s" for unit in SECONDS)
        file.refuse(key, f"is {text!r}; allowed is a number and a unit ({units}): '30 days'")
    return float(match[1]) * SECONDS[match[2]]


def check_port(name: str, port: int) -> int:
    """A port of this machine.

    Example:
        >>> from evenhand.service.config import check_port
        >>> check_port("port", 8321)
        8321
    """
    return _checks.whole(name, port, least=1, most=65_535)


def _server(file: TomlFile, given: Mapping[str, Any]) -> Server:
    checked = dict(file.checked("server.", dict(given), _SERVER))
    if "port" in checked:
        file.check("server.port", check_port, checked["port"])
    if checked.get("rate", 0) < 0:
        file.refuse("server.rate", "is below 0; allowed is requests a second, or 0 for no limit")
    if "hosts" in checked:
        checked["hosts"] = tuple(checked["hosts"])
    return Server(**checked)
