"""Worlds as experiment files describe them: what [world] and [data] may hold.

A table is read once, however many points use it.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from evenhand._toml import Kind
from evenhand.conventions import Conventions
from evenhand.errors import InputError, called, setting
from evenhand.worlds import CrossedWorld, SyntheticWorld, TableWorld, World


def _is_number(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < 2**63  # as TOML has it
    return isinstance(value, float)


def _of(kind: type, is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """A test whether a list, or the values of a table, are all of one kind."""

    def fits(value: Any) -> bool:
        parts = value.values() if isinstance(value, dict) else value
        return isinstance(value, kind) and all(is_right(part) for part in parts)

    return fits


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_cut(value: Any) -> bool:
    is_one = isinstance(value, (str, int, float))
    return is_one or NUMBERS.fits(value) or NUMBERS_BY_NAME.fits(value)


def _is_marks(value: Any) -> bool:
    return _of(list, lambda mark: _is_text(mark) or _is_number(mark))(value)


LIST = Kind("a list", lambda value: isinstance(value, list))
SECTION = Kind("a table", lambda value: isinstance(value, dict))
TEXT = Kind("a string", _is_text)
TEXTS = Kind("a list of strings", _of(list, _is_text))
NAMES = Kind("a string or a list of strings", lambda value: _is_text(value) or TEXTS.fits(value))
NUMBER = Kind("a number", _is_number)
NUMBERS = Kind("a list of numbers", _of(list, _is_number))
NUMBER_OR_NUMBERS = Kind(
    "a number or a list of numbers", lambda value: _is_number(value) or NUMBERS.fits(value)
)
NUMBERS_BY_NAME = Kind("a table of numbers", _of(dict, _is_number))
WHOLE = Kind("a whole number", lambda value: _is_number(value) and value == value // 1)
SWITCH = Kind("true or false", lambda value: isinstance(value, bool))
VALUE = Kind(
    "a string, a number, true or false", lambda value: isinstance(value, (str, int, float))
)
CHARACTER = Kind("a single character", lambda value: _is_text(value) and len(value) == 1)
CHOICES = Kind(
    'a string, or a table such as { age = "fill", others = "drop" }',
    lambda value: _is_text(value) or _of(dict, _is_text)(value),
)
MARKS = Kind(
    'a list of strings and numbers, or a table such as { age = [-1], "*" = ["?"] }',
    lambda value: _is_marks(value) or _of(dict, _is_marks)(value),
)
CUTS = Kind(
    "a string, a list of strings, or a table such as { age = 5, income = { quantiles = 3 }, "
    'region = "as is", debt = [0, 10, 99] }',
    lambda value: NAMES.fits(value) or _of(dict, _is_cut)(value),
)

TRUTH = {
    "true_share": NUMBER,
    "true_delay": WHOLE,
    "true_noise": NUMBER,
    "true_common": NUMBER,
    "true_by_context": NUMBER_OR_NUMBERS,
    "true_by_outcome": NUMBER,
    "true_scale": NUMBER,
    "true_offset": NUMBER,
}
SYNTHETIC = {
    **TRUTH,
    "n_arms": WHOLE,
    "n_features": WHOLE,
    "n_sensitive": WHOLE,
    "bias_mean": NUMBER_OR_NUMBERS,
    "coefficient_range": NUMBER,
    "lowest_coefficient": NUMBER,
    "noise": NUMBER,
    "group_sizes": NUMBERS,
    "bias_range": NUMBER,
    "spread": NUMBER_OR_NUMBERS,
    "averages": TEXT,
    "advantage": NUMBER,
    "outstanding": NUMBER,
    "contexts": TEXT,
    "correlation": NUMBER,
    "scales": NUMBERS,
    "noise_shape": TEXT,
    "rewards": TEXT,
    "drift": WHOLE,
}
CROSSED = {
    "attributes": Kind('a table such as { sex = ["F", "M"] }', _of(dict, _of(list, _is_text))),
    "sizes": NUMBERS,
    "interaction": NUMBER,
    "arms": TEXT,
}
WORLD = {**SYNTHETIC, **CROSSED}
TABLE = {
    **TRUTH,
    "group": NAMES,
    "sensitive": VALUE,
    "others": TEXT,
    "arms": CUTS,
    "reward": TEXT,
    "reward_values": NUMBERS_BY_NAME,
    "true_reward": TEXT,
    "features": TEXTS,
    "leave_out": TEXTS,
    "nominal": TEXT,
    "nominal_columns": TEXTS,
    "categories": WHOLE,
    "scale": TEXT,
    "intercept": SWITCH,
    "missing": CHOICES,
    "missing_marks": MARKS,
    "encoding": TEXT,
    "decimal": TEXT,
    "delimiter": TEXT,
    "sheet": TEXT,
    "separator": CHARACTER,  # an older name of the delimiter
    "noise": NUMBER,
    "absolute_rewards": SWITCH,
}
MOST_ARMS, MOST_NUMBERS = 1_000_000, 1_000_000_000
SOURCES = {"file": TEXT, "dataset": TEXT}


def make_world(place: dict[str, Any], folder: Path, conventions: Conventions) -> World:
    """The world with these parameters; paths of files are relative to `folder`."""
    settings = dict(place)
    truth = {name: settings.pop(name) for name in TRUTH if name in settings}
    if truth:
        if "true_share" not in truth:
            raise InputError(
                f"{setting('true_share')} is missing; give the share of decisions that get a true "
                "reward"
            )
        world = make_world(settings, folder, conventions)
        own = {name.removeprefix("true_"): name for name in TRUTH}
        with called(own):
            return world.with_true_rewards(
                **{name.removeprefix("true_"): value for name, value in truth.items()}
            )
    source = {name: settings.pop(name) for name in SOURCES if name in settings}
    if not source and any(name in CROSSED for name in settings):
        return _crossed_world(settings)
    if not source:
        _check_size(settings)
        return SyntheticWorld(**settings, conventions=conventions)
    if "file" in source:
        path = (folder / source["file"]).resolve()
        stamp = (path.stat().st_mtime_ns, path.stat().st_size) if path.is_file() else (0, 0)
        return _table_world("file", str(path), stamp, json.dumps(settings))
    return _table_world("dataset", source["dataset"], (0, 0), json.dumps(settings))


def _crossed_world(settings: dict[str, Any]) -> CrossedWorld:
    """A world with attributes, which has fewer settings."""
    known = set(inspect.signature(CrossedWorld).parameters)
    unknown = sorted(set(settings) - known)
    if unknown:
        raise InputError(
            f"{setting(unknown[0])} is not a setting of a world with attributes; allowed are "
            f"{', '.join(sorted(known))}"
        )
    for name in ("attributes", "sizes"):
        if name not in settings:
            raise InputError(f"{setting(name)} is missing; a world with attributes needs it")
    return CrossedWorld(**settings)


def _check_size(settings: dict[str, Any]) -> None:
    """Refuse a world too large for memory before it is allocated: the system may be too late."""
    n = int(settings.get("n_arms", sum(settings.get("group_sizes", [10]))))
    d = int(settings.get("n_features", 2))
    if n > MOST_ARMS:
        raise InputError(f"{setting('n_arms')} is {n}; allowed are at most {MOST_ARMS:,}")
    if n * d * d > MOST_NUMBERS:
        raise InputError(
            f"{setting('n_features')} is {d}, and policies keep its square for each of {n:,} arms: "
            f"that is more than {MOST_NUMBERS:,} numbers; use fewer features or arms"
        )


@lru_cache(maxsize=16)
def _table_world(
    kind: str,
    source: str,
    stamp: tuple[int, int],  # noqa: ARG001
    settings: str,
) -> TableWorld:
    if kind == "file":
        return TableWorld(source, **json.loads(settings))
    from evenhand import datasets

    return TableWorld(datasets.load(source), **json.loads(settings))
