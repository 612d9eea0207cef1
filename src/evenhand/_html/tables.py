"""A frame or rows as a table of a page: text for every cell, and which columns hold numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

MISSING = "\u2013"  # an en dash


class Cell(NamedTuple):
    """A value as it is shown; `number` marks numbers that are already text."""

    text: str
    number: bool = False


class TableColumn(NamedTuple):
    """A heading; numbers are aligned to the right."""

    name: str
    number: bool


class Table(NamedTuple):
    """The data for the template of a table.

    Args:
        columns: the headings.
        rows: the text of every cell.
        keys: how many columns, from the first, say what a row is about.
        caption: of the table; none if it is "".
    """

    columns: list[TableColumn]
    rows: list[list[str]]
    keys: int = 1
    caption: str = ""


def of_frame(frame: pd.DataFrame, keys: int = 1, caption: str = "") -> Table:
    """A frame as a table, without its index; in headings "_" becomes a space.

    A column of p-values is known by its name.

    Example:
        >>> import pandas as pd
        >>> from evenhand._html.tables import of_frame
        >>> table = of_frame(pd.DataFrame({"group": ["F"], "mean_reward": [0.123456], "n": [1200]}))
        >>> [column.name for column in table.columns if column.number], table.rows
        (['mean reward', 'n'], [['F', '0.123', '1,200']])
    """
    names = [str(name).replace("_", " ") for name in frame.columns]
    chances = {k for k, name in enumerate(names) if name.endswith("p value")}
    rows = (
        [chance(value) if k in chances else value for k, value in enumerate(row)]
        for row in frame.itertuples(index=False, name=None)
    )
    return of_rows(names, rows, keys, caption)


def of_rows(
    names: Sequence[str], rows: Iterable[Sequence[Any]], keys: int = 1, caption: str = ""
) -> Table:
    """Rows of values, or of cells, as a table.

    Example:
        >>> from evenhand._html.tables import Cell, of_rows
        >>> of_rows(["policy", "share"], [["TopInterval", Cell("40 % ± 2", number=True)]]).columns
        [TableColumn(name='policy', number=False), TableColumn(name='share', number=True)]
    """
    cells = [[cell(value) for value in row] for row in rows]
    columns = [
        TableColumn(name, bool(cells) and all(row[k].number for row in cells))
        for k, name in enumerate(names)
    ]
    return Table(columns, [[shown.text for shown in row] for row in cells], keys, caption)


def cell(value: Any) -> Cell:
    """A value as people read it: yes or no, three significant digits, commas for thousands.

    Whole numbers keep all digits: they are counts.

    Example:
        >>> from evenhand._html.tables import cell
        >>> [cell(value).text for value in (True, "F", 12345, 0.000123456, float("inf"))]
        ['yes', 'F', '12,345', '0.000123', '∞']
    """
    if isinstance(value, Cell):
        return value
    if isinstance(value, (bool, np.bool_)):
        return Cell("yes" if value else "no")
    if isinstance(value, str):
        return Cell(value)
    if value is None or value is pd.NA or pd.isna(value):
        return Cell(MISSING, number=True)
    if np.isinf(value):
        return Cell("\u2212\u221e" if value < 0 else "\u221e", number=True)
    if isinstance(value, (int, np.integer)) or (float(value).is_integer() and abs(value) >= 1):
        return Cell(f"{int(value):,}", number=True)
    return Cell(digits(float(value)), number=True)


def digits(value: float, many: int = 3) -> str:
    """A number with so many significant digits, without an exponent unless it is tiny.

    Example:
        >>> from evenhand._html.tables import digits
        >>> digits(12345.6), digits(0.98765), digits(-0.00012345), digits(1.5e-9)
        ('12,300', '0.988', '-0.000123', '1.5e-09')
    """
    rounded = float(f"{value:.{many}g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 10.0**many else f"{rounded:,.{many}g}"


def chance(value: Any) -> Any:
    """A p-value as people read it: two digits, or just that it is small.

    Example:
        >>> from evenhand._html.tables import chance
        >>> [chance(one).text for one in (0.04321, 0.00012, 1.0)]
        ['0.043', '<0.001', '1']
    """
    if value is None or pd.isna(value):
        return value
    return Cell("<0.001" if value < 0.001 else digits(float(value), 2), number=True)
