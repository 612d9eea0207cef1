"""Settings of a policy as plain data, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from evenhand.conventions import BY_NAME, Conventions
from evenhand.groups import Groups


def plain_setting(name: str, value: Any) -> Any:
    """A setting as JSON has it, with the same value when it comes back."""
    if isinstance(value, Groups):
        return {"labels": list(value.labels), "sensitive": value.sensitive}
    if isinstance(value, Conventions):
        if BY_NAME.get(value.name) != value:
            raise ValueError(
                f"conventions {value.name!r} are your own and cannot be saved; "
                f"allowed are {', '.join(BY_NAME)}"
            )
        return value.name
    if isinstance(value, Callable):  # type: ignore[arg-type]
        raise ValueError(
            f"{name} is a function, which cannot be saved; give its values as a list instead"
        )
    plain = _plain(value)
    try:
        json.dumps(plain, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
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
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def rich_setting(name: str, value: Any) -> Any:
    """What `plain_setting` was given."""
    if name == "groups":
        labels, sensitive = value["labels"], value["sensitive"]
        named = labels if sensitive is None else [*labels, sensitive]
        if not isinstance(labels, list) or not all(isinstance(one, str) for one in named):
            raise ValueError("the saved policy is damaged: groups have labels that are no text")
        return Groups(labels, sensitive)
    if name == "conventions":
        if value not in BY_NAME:
            raise ValueError(f"conventions are {value!r}; known are {', '.join(BY_NAME)}")
        return BY_NAME[value]
    return value
