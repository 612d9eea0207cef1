"""What Spark cannot read of files, told before it reads them otherwise than they are meant."""

from __future__ import annotations

from typing import Any

from evenhand._columns.reading import Reading
from evenhand.audit._input.files import Files
from evenhand.errors import DataError, InputError, setting


def check_spark(con: Any, files: Files, how: Reading) -> None:
    """An error if CSV or Excel files are such that Spark would take them for something else."""
    if files.shuffled:
        raise DataError(
            f"{files.shuffled} has its columns in another order than {files.paths[0]}; Spark reads "
            f"CSV files by position: write them alike, or leave {setting('engine')} out"
        )
    if how.decimal == ",":
        raise InputError(
            f"{setting('decimal')} is ',', which Spark does not read; leave {setting('engine')} "
            "out, or write the numbers with a point"
        )
    converted = files.form == "excel" or not how.is_utf8
    if converted and not con._session.sparkContext.master.startswith("local"):
        raise DataError(
            f"{files.label} is converted on this machine, where a cluster of Spark cannot read it; "
            f"leave {setting('engine')} out, or write it as Parquet"
        )
