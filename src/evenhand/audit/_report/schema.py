"""The published JSON Schema of an audit's JSON."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

SCHEMA_ID = "urn:evenhand:audit:1"  # changes with the version of the format
FILE = "audit.schema.json"


@cache
def _text() -> str:
    return (files(__package__) / FILE).read_text(encoding="utf-8")


def schema() -> dict[str, Any]:
    """The schema as plain data, a new one for every caller.

    Example:
        >>> from evenhand.audit._report.schema import schema
        >>> schema()["$id"], "bias" in schema()["required"]
        ('urn:evenhand:audit:1', True)
    """
    plain: dict[str, Any] = json.loads(_text())
    return plain
