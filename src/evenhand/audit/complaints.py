"""What an engine complains of, in one line, with what to do where that is known."""

from __future__ import annotations

import re
from shlex import quote

from evenhand.audit.marks import as_written

# What DuckDB says of a CSV file whose first rows gave no hint of what comes later.
LATE = (
    r'(?s)Line: (?P<line>\d+).*converting column "(?P<column>[^"]+)"\. '
    r'Could not convert string "(?P<value>[^"]*)" to \'(?P<kind>\w+)\''
)


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
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return ValueError(f"{label}: {type(error).__name__}: {' '.join(lines)[:300]}")
