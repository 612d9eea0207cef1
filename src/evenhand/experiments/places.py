"""Worlds as experiment files describe them. A table is read once, however many points use it."""

from __future__ import annotations

import inspect
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from evenhand.conventions import Conventions
from evenhand.worlds import SyntheticWorld, TableWorld, World

SYNTHETIC = frozenset(inspect.signature(SyntheticWorld).parameters) - {"conventions"}
TABLE = frozenset(inspect.signature(TableWorld).parameters) - {"data"}
SOURCES = ("file", "dataset")
WORLD_PARAMETERS = SYNTHETIC | TABLE


def make_world(place: dict[str, Any], folder: Path, conventions: Conventions) -> World:
    """The world of these parameters; files are found from `folder`."""
    settings = dict(place)
    source = {name: settings.pop(name) for name in SOURCES if name in settings}
    if not source:
        return SyntheticWorld(**settings, conventions=conventions)
    if "file" in source:
        path = folder / source["file"]
        stamp = path.stat().st_mtime_ns if path.is_file() else 0
        return _table_world("file", str(path), stamp, json.dumps(settings))
    return _table_world("dataset", source["dataset"], 0, json.dumps(settings))


@lru_cache(maxsize=16)
def _table_world(kind: str, source: str, stamp: int, settings: str) -> TableWorld:  # noqa: ARG001
    if kind == "file":
        return TableWorld(source, **json.loads(settings))
    from evenhand import datasets

    return TableWorld(datasets.load(source), **json.loads(settings))
