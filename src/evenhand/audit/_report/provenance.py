"""What it takes to repeat an audit: the log, the versions and the settings."""

from __future__ import annotations

import platform
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from shlex import quote
from typing import TYPE_CHECKING, Any

from evenhand._columns.file_formats import Reading
from evenhand.audit._input.checksums import Checksum
from evenhand.audit._input.passwords import without_password
from evenhand.audit._input.sources import Source
from evenhand.audit._settings import AuditSettings
from evenhand.errors import in_language, literal, setting

if TYPE_CHECKING:
    from evenhand._html.tables import Table

PACKAGES = {"ibis": "ibis-framework", "numpy": "numpy", "pandas": "pandas", "scipy": "scipy"}
ENGINES = {"duckdb": "duckdb", "pyspark": "pyspark", "postgres": "PostgreSQL"}
IN_PYTHON_ALONE = ("units",)  # settings without a flag
ELSEWHERE = ("columns", "missing_marks", "probability_of")  # given in other ways
TITLES = ("Audit", "Audit of ")  # that nobody gave


@dataclass(frozen=True)
class Provenance:
    """What it takes to repeat an audit.

    Attributes:
        checksum: of the log.
        columns: of the log, all of them.
        versions: of Python, evenhand, the engine and the numerical packages.
        command: the command that repeats it, without passwords; None where none can.
        call: the same in Python.
    """

    checksum: Checksum = field(default_factory=lambda: Checksum("unknown"))
    columns: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    command: str | None = None
    call: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        files = [
            {"name": name, "bytes": size, "sha256": digest}
            for name, size, digest in self.checksum.files
        ]
        return {
            "checksum": {
                "method": self.checksum.method,
                "value": self.checksum.value,
                "files": files or None,
            },
            "columns": list(self.columns),
            "versions": self.versions,
            "command": self.command,
            "call": self.call,
        }

    def table(self, rows: int) -> Table:
        """The same for the page."""
        from evenhand._html.tables import of_rows

        rows_shown = [("log", f"{rows:,} rows; columns: {', '.join(self.columns)}")]
        rows_shown.append(("checksum", self.checksum.value or self.checksum.method))
        if self.checksum.value:
            rows_shown.append(("how it is made", self.checksum.method))
        if len(self.checksum.files) > 1:
            rows_shown += [
                (f"SHA-256 of {name}", digest) for name, _, digest in self.checksum.files
            ]
        rows_shown.append(
            ("versions", ", ".join(f"{name} {version}" for name, version in self.versions.items()))
        )
        if self.command is not None:
            rows_shown.append(("the command", self.command))
        rows_shown.append(("in Python", self.call))
        return of_rows(["to repeat it", ""], rows_shown)


def provenance(
    log: Any,
    source: Source,
    checksum: Checksum,
    columns: tuple[str, ...],
    given: tuple[str | None, Reading, AuditSettings],
) -> Provenance:
    """Collect what is known when an audit ends.

    Args:
        log: what the user gave.
        source: the same, open.
        checksum: of it.
        columns: all of the log.
        given: the engine that was asked for, how files are read, and the settings.
    """
    engine, reading, settings = given
    chosen = {**settings_of(settings), **reading.chosen}
    if engine is not None:
        chosen["engine"] = engine
    named = str(log) if isinstance(log, (str, PathLike)) else None  # otherwise it is in memory
    return Provenance(
        checksum=checksum,
        columns=columns,
        versions=versions(source),
        command=None if named is None else command(without_password(named), chosen),
        call=call(None if named is None else without_password(named), chosen),
    )


def settings_of(settings: AuditSettings) -> dict[str, Any]:
    """What was chosen: roles first, and then all settings that differ from their defaults."""
    chosen: dict[str, Any] = dict(settings.columns)
    for declared in fields(settings):
        value = getattr(settings, declared.name)
        default = (
            declared.default_factory()
            if declared.default_factory is not MISSING
            else declared.default
        )
        if declared.name in ELSEWHERE or _plain(value) == _plain(default):
            continue
        if declared.name == "attributes":  # several group columns
            chosen["group"] = _plain(value)
            continue
        if declared.name == "title" and (value == TITLES[0] or str(value).startswith(TITLES[1])):
            continue
        chosen[declared.name] = _plain(value)
    if settings.marks:
        chosen["missing_marks"] = settings.marks.with_more(())
    return chosen


def command(log: str, chosen: dict[str, Any]) -> str | None:
    """The command for the same audit; None where there is no flag for a setting.

    Example:
        >>> from evenhand.audit._report.provenance import command
        >>> command("my log.csv", {"group": "sex", "leave_out": ["a", "b"], "level": 0.9})
        "evenhand audit 'my log.csv' --group sex --leave-out a --leave-out b --level 0.9"
    """
    if any(name in IN_PYTHON_ALONE for name in chosen) or not _sayable(chosen):
        return None
    flags = [in_language(setting(name, value), "command line") for name, value in chosen.items()]
    return " ".join(["evenhand audit", quote(log), *flags])


def call(log: str | None, chosen: dict[str, Any]) -> str:
    """The call in Python for the same audit; a log without a name is called `log`.

    Example:
        >>> from evenhand.audit._report.provenance import call
        >>> call(None, {"group": "sex", "missing": "drop"})
        'evenhand.audit(log, group="sex", missing="drop")'
    """
    first = "log" if log is None else in_language(literal(log), "python")
    parts = [in_language(setting(name, value), "python") for name, value in chosen.items()]
    return f"evenhand.audit({', '.join([first, *parts])})"


def versions(source: Source) -> dict[str, str]:
    """The versions of everything that affects the numbers."""
    from evenhand import __version__

    versions = {"python": platform.python_version(), "evenhand": __version__}
    try:
        versions[ENGINES.get(source.kind, source.kind)] = str(source.engine.version)
    except Exception:  # an engine of another kind may not tell
        versions[source.kind] = "unknown"
    return versions | {name: _installed(package) for name, package in PACKAGES.items()}


@cache
def _installed(package: str) -> str:
    """The version of a package, looked up once in a process: it takes some milliseconds."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _sayable(chosen: dict[str, Any]) -> bool:
    """Whether values in lists have none of the characters at which flags are split."""
    marks, worth = chosen.get("missing_marks", ()), chosen.get("reward_values") or {}
    words = [*worth, *(marks if not isinstance(marks, dict) else sum(marks.values(), [*marks]))]
    return not any(set(str(word)) & set(",=") for word in words)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, (list, tuple)) else value
