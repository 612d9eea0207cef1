"""Settings and groups as plain data, for saved policies and logs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from evenhand.conventions import BY_NAME, Conventions
from evenhand.errors import InputError
from evenhand.groups import Groups


def plain_groups(groups: Groups) -> dict[str, Any]:
    """Groups as plain data; attributes only if there are any, as in files of older versions.

    Example:
        >>> import evenhand as eh
        >>> from evenhand.policies._saved_settings import plain_groups, rich_groups
        >>> plain_groups(eh.Groups(["F", "M"]))
        {'labels': ['F', 'M'], 'sensitive': None}
        >>> groups = eh.Groups.per_round(2, {"sex": ["F", "M"]})
        >>> rich_groups(plain_groups(groups)) == groups
        True
    """
    plain: dict[str, Any] = {"labels": list(groups.labels), "sensitive": groups.sensitive}
    if groups.changes:
        plain["per_round"] = {item.name: list(item.levels) for item in groups.attributes}
    elif groups.attributes:
        names = [attribute.name for attribute in groups.attributes]
        columns = zip(*groups._levels, strict=True)
        plain["attributes"] = dict(zip(names, map(list, columns), strict=True))
    return plain


def rich_groups(plain: dict[str, Any]) -> Groups:
    """The groups that `plain_groups` described."""
    labels, sensitive = plain["labels"], plain["sensitive"]
    tables = [plain[name] for name in ("per_round", "attributes") if name in plain]
    named = [] if sensitive is None else [sensitive]
    named += [level for table in tables for levels in table.values() for level in levels]
    if not isinstance(labels, list) or not all(isinstance(item, str) for item in [*labels, *named]):
        raise InputError("the saved policy is damaged: groups have labels that are not text")
    if "per_round" in plain:
        return Groups.per_round(len(labels), plain["per_round"])
    if "attributes" in plain:
        return Groups.of_attributes(plain["attributes"], sensitive)
    return Groups(labels, sensitive)


def plain_setting(name: str, value: Any) -> Any:
    """A setting as plain data for JSON, which `rich_setting` reads back."""
    if isinstance(value, Groups):
        return plain_groups(value)
    if isinstance(value, Conventions):
        if BY_NAME.get(value.name) != value:
            raise InputError(
                f"conventions {value.name!r} are your own and cannot be saved; "
                f"allowed are {', '.join(BY_NAME)}"
            )
        return value.name
    if isinstance(value, Callable):  # type: ignore[arg-type]
        raise InputError(
            f"{name} is a function, which cannot be saved; give its values as a list instead"
        )
    plain = _plain(value)
    try:
        json.dumps(plain, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"{name} is {str(value)[:100]!r}, which cannot be saved; allowed are finite numbers, "
            "text, True, False, None, and lists and mappings of these"
        ) from error
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def rich_setting(name: str, value: Any) -> Any:
    """The setting that `plain_setting` wrote."""
    if name == "groups":
        return rich_groups(value)
    if name == "conventions":
        if value not in BY_NAME:
            raise InputError(f"conventions are {value!r}; known are {', '.join(BY_NAME)}")
        return BY_NAME[value]
    return value
