"""The ledger of a service where a command takes a log."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HELP = "the CONFIG of a service, for its ledger"


@contextmanager
def as_log(given: str | Path) -> Iterator[str | Path]:
    """The log itself or, for a configuration of a service, an export of its ledger of now."""
    if not str(given).endswith(".toml") or not Path(given).is_file():
        yield given
        return
    from evenhand import service  # noqa: F401  # says what to install
    from evenhand.service._ledger.exporting import export
    from evenhand.service.config import load

    config = load(given)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{Path(given).stem}.parquet"
        export(config.store, path)
        yield path if isinstance(given, Path) else str(path)
