"""What an engine complains of, in one line, with what to do where that is known."""

from __future__ import annotations

import re
from itertools import takewhile
from shlex import quote
from textwrap import shorten

from evenhand.audit.marks import as_written

# What DuckDB says of a CSV file whose first rows gave no hint of what comes later.
LATE = (
    r'(?s)Line: (?P<line>\d+).*converting column "(?P<column>[^"]+)"\. '
    r'Could not convert string "(?P<value>[^"]*)" to \'(?P<kind>\w+)\''
)

# Where what follows is about the query or the engine, and not about the log.
INTERNALS = r"LINE \d+:|Possible |Candidate|Stack Trace|DETAIL:|HINT:|== |JVM |\^|\[SQL"
MOST = 300  # characters


def told(label: str, error: Exception) -> ValueError:
    """What an engine complains of, in one line."""
    if "Query interrupted" in str(error):  # that is how DuckDB tells of Ctrl-C
        raise KeyboardInterrupt from error
    late = re.search(LATE, str(error))
    if late is not None and as_written(late["value"]) is None:
        mark = quote(late["value"])
        return ValueError(
            f"{label}: column {late['column']!r} has {late['value']!r} on line "
            f"{int(late['line']):,}, and {late['kind']} in all rows before; if it stands for a "
            f"missing value say --missing-marks{'=' if mark.startswith('-') else ' '}{mark}, or "
            f"leave it out with --leave-out {quote(late['column'])}"
        )
    if isinstance(error, RecursionError):
        return ValueError(
            f"{label} has too many columns for one query; leave some out with --leave-out, or name "
            "the features"
        )
    if isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__:
        return ValueError(
            f"{label} does not fit into memory; leave columns out with --leave-out, or audit fewer "
            "rows"
        )
    return ValueError(f"{label} cannot be read: {_plain(str(error)) or type(error).__name__}")


def _plain(said: str) -> str:
    """The first thing an engine says, without what it says for its own developers."""
    lines = [line.strip() for line in said.splitlines()]
    kept = takewhile(lambda line: not re.match(INTERNALS, line), filter(None, lines))
    text = re.sub(r"^(?:[A-Z]\w*(?: \w+)? (?:Error|Exception): ?)+", "", " ".join(kept))
    return shorten(text, MOST, placeholder=" ...")
