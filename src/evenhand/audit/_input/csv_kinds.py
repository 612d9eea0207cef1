"""What the columns of a CSV file hold where an engine's guess is not that of worlds and values.

Engines take 0x1F for 31, Spark also 01 for 1, and DuckDB takes +5 for a word. The rule is that of
`evenhand._columns.kinds_of_text`, and the first rows decide, as for the engines' own guesses.
"""

from __future__ import annotations

from typing import Any

from evenhand._columns.kinds_of_text import CODE
from evenhand._columns.missing_marks import Marks
from evenhand._columns.words import NUMBER
from evenhand.audit._input.sources import SNIFFED, Source

ODD = ("x", "b")  # letters in numbers to the base of 16 or 2, and in no decimal number


def corrected(source: Source, written: Any, marks: Marks) -> tuple[list[str], list[str]]:
    """The columns that are text after all, and those that are numbers.

    Args:
        source: a log as an engine reads it.
        written: the same with all columns as text.
        marks: what stands for missing values in it.
    """
    schema, rows = source.table.schema(), written.limit(SNIFFED)
    bare = {name: rows[name].strip() for name in schema.names}
    asked = dict[str, Any]()
    for name, text in bare.items():
        if schema[name].is_string():
            asked[name] = text.startswith("+")
        elif schema[name].is_integer():
            asked[name] = text.lower().contains(ODD[0]) | text.lower().contains(ODD[1])
        if schema[name].is_numeric() and source.kind == "pyspark":
            code = text.re_search(CODE)
            asked[name] = asked[name] | code if name in asked else code
    flagged = _any(source, rows, asked)
    plus = [name for name in flagged if schema[name].is_string()]
    marked = {name: bare[name].isin(["", *marks.of_column(name)]) for name in plus}
    word = {name: ~bare[name].re_search(NUMBER) | bare[name].re_search(CODE) for name in plus}
    words = _any(source, rows, {name: word[name] & ~marked[name] for name in plus})
    text_columns = [name for name in flagged if name not in plus]
    return text_columns, [name for name in plus if name not in words]


def _any(source: Source, rows: Any, flags: dict[str, Any]) -> list[str]:
    """The columns for which something is true in any of these rows."""
    if not flags:
        return []
    aggregates = {f"c{i}": flag.cast("int32").max() for i, flag in enumerate(flags.values())}
    answer = source.fetch(rows.aggregate(**aggregates)).iloc[0].fillna(0)
    return [name for i, name in enumerate(flags) if answer[f"c{i}"] == 1]
