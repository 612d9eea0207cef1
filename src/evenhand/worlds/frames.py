"""Reading a table: a data frame of any kind, a CSV file or a Parquet file, as pandas."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

SEPARATORS = (",", ";", "\t", "|")


def read_table(
    data: Any,
    missing_marks: Collection[str] = ("",),
    separator: str | None = None,
    columns: Collection[str] | None = None,
) -> pd.DataFrame:
    """`data` as a pandas frame.

    In a CSV file only the `missing_marks` stand for missing values: "NA" and "None" are often
    categories, and are kept.

    Args:
        data: a frame (pandas, or anything with `to_pandas` or the Arrow interface), a mapping of
            columns, or the path of a file that ends in .csv, .tsv, .txt (also .gz, .zip) or
            .parquet.
        missing_marks: texts that stand for a missing value in a CSV file.
        separator: between the columns of a CSV file; found by itself without one.
        columns: read only these, from a file.

    Example:
        >>> from evenhand.worlds.frames import read_table
        >>> read_table({"sex": ["F", "M"], "paid": [1, 0]}).shape
        (2, 2)
    """
    if isinstance(data, (str, Path)):
        return _read_file(Path(data), missing_marks, separator, columns)
    if isinstance(data, pd.DataFrame):
        return data
    if hasattr(data, "to_pandas"):  # Polars, Arrow, Modin and their like
        return pd.DataFrame(data.to_pandas())
    if hasattr(data, "__arrow_c_stream__"):
        from_arrow: Callable[[Any], pd.DataFrame] = pd.DataFrame.from_arrow  # type: ignore[attr-defined]
        return from_arrow(data)
    if isinstance(data, Mapping):
        return pd.DataFrame(dict(data))
    raise ValueError(
        f"data is a {type(data).__name__}; allowed is a data frame, a mapping of columns, or the "
        "path of a CSV or Parquet file"
    )


def _read_file(
    path: Path,
    missing_marks: Collection[str],
    separator: str | None,
    columns: Collection[str] | None,
) -> pd.DataFrame:
    if not path.is_file():
        raise ValueError(f"data is {str(path)!r}, where there is no file; give the path of one")
    kinds = {suffix.lower() for suffix in path.suffixes}
    if kinds & {".parquet", ".pq"}:
        return _read_parquet(path, columns)
    if not kinds & {".csv", ".tsv", ".txt"}:
        raise ValueError(
            f"data is {str(path)!r}; allowed are files that end in .csv, .tsv, .txt or .parquet"
        )
    try:
        header = pd.read_csv(path, sep="\0", header=None, nrows=1, dtype=str, engine="c").iloc[0, 0]
        mark = separator or max(SEPARATORS, key=str(header).count)
        names = next(csv.reader([str(header)], delimiter=mark))
        frame = pd.read_csv(
            path,
            sep=mark,
            keep_default_na=False,
            na_values=list(missing_marks),
            usecols=_wanted(path, names, columns),
            low_memory=False,
        )
    except pd.errors.EmptyDataError as error:
        raise ValueError(
            f"{path.name} is empty; give a file with a line of column names"
        ) from error
    except (pd.errors.ParserError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} cannot be read as CSV in UTF-8: {error}") from error
    return frame


def _wanted(path: Path, names: list[str], columns: Collection[str] | None) -> list[int]:
    """The places of the columns to read: the first of those whose name is there twice."""
    repeated = sorted({name for name in names if names.count(name) > 1})
    used = [name for name in repeated if columns is None or name in columns]
    if used:
        warnings.warn(
            f"{path.name}: column {', '.join(used)} is there more than once; the first is used",
            UserWarning,
            stacklevel=2,
        )
    return [
        place
        for place, name in enumerate(names)
        if names.index(name) == place and (columns is None or name in columns)
    ]


def _read_parquet(path: Path, columns: Collection[str] | None) -> pd.DataFrame:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise ImportError(
            "Parquet files need pyarrow: install it with pip install 'evenhand[data]'"
        ) from error
    known = parquet.read_schema(path).names
    wanted = None if columns is None else [name for name in known if name in columns]
    return pd.read_parquet(path, columns=wanted)
