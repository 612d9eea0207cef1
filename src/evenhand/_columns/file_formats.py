"""The formats of tables by the endings of files, and what files do not say of themselves: encoding,
separators, sheet.

Audits, worlds from tables and off-policy values read the same formats, with the same settings.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand import _checks
from evenhand._columns.compression import COMPRESSED, GZIP, ZIP, ZSTANDARD, is_compressed
from evenhand.errors import InputError, setting

UTF8 = "utf-8"
NO_PARQUET = "is not a Parquet file, or is incomplete; write it again"
FIRST_BYTES = 1000  # among which text has no zero
DECIMALS = (".", ",")
TAB = ("\\t", "tab")  # as people write it on a command line
CSV, PARQUET, JSON, EXCEL = "csv", "parquet", "json", "excel"
ENDINGS = {
    ".parquet": PARQUET, ".pq": PARQUET, ".csv": CSV, ".tsv": CSV, ".txt": CSV, ".jsonl": JSON,
    ".ndjson": JSON, ".json": JSON, ".xlsx": EXCEL, ".xlsm": EXCEL, ".xls": EXCEL,
}  # fmt: skip
COMPRESSIBLE = (CSV, JSON)  # the others are compressed inside
# Which settings are about which kind of files.
ABOUT = {CSV: ("encoding", "decimal", "delimiter"), EXCEL: ("sheet",)}
CALLED = {CSV: "CSV files", EXCEL: "Excel files"}


@dataclass(frozen=True)
class Reading:
    """How files are read: `evenhand.audit` says what each is. None is what the files suggest."""

    encoding: str | None = None
    decimal: str | None = None
    delimiter: str | None = None
    sheet: str | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not isinstance(value, str):
                raise InputError(f"{setting(name)} is {value!r}; allowed is a string", value=value)
        if self.encoding is not None:
            object.__setattr__(self, "encoding", _known(self.encoding))
        if self.decimal is not None:
            _checks.one_of("decimal", self.decimal, DECIMALS)
        if self.delimiter in TAB:
            object.__setattr__(self, "delimiter", "\t")
        delimiter = self.delimiter
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
            raise InputError(
                f"{setting('delimiter')} is {delimiter!r}; allowed is a single character, such as "
                ";",
                value=delimiter,
            )

    @property
    def chosen(self) -> dict[str, str]:
        """What was chosen about files, by setting."""
        return {name: value for name, value in vars(self).items() if value is not None}

    @property
    def is_utf8(self) -> bool:
        """Whether engines read the text as it is."""
        return self.encoding in (None, UTF8)

    @property
    def codec(self) -> str:
        """What decodes the text, with or without a byte order mark."""
        return "utf-8-sig" if self.is_utf8 else str(self.encoding)

    def check(self, form: str, label: str) -> None:
        """Raise if something was chosen that does not apply to files of this kind.

        Args:
            form: "csv", "excel", "parquet" or "json"; "" for what is not a file.
            label: of the log.

        Example:
            >>> from evenhand._columns.file_formats import Reading
            >>> Reading(encoding="latin-1").check("csv", "log.csv")
            >>> Reading(sheet="May").check("csv", "log.csv")
            Traceback (most recent call last):
            ...
            evenhand.errors.InputError: sheet is for Excel files, which log.csv is not; leave it out
        """
        for kind, names in ABOUT.items():
            wrong = [name for name in names if name in self.chosen and kind != form]
            if wrong:
                raise InputError(
                    f"{setting(wrong[0])} is for {CALLED[kind]}, which {label} is not; leave it out"
                )

    def for_duckdb(self) -> dict[str, Any]:
        """The options of its CSV reader, which detects what is not given."""
        options = {"delim": self.delimiter, "decimal_separator": self.decimal}
        return {name: value for name, value in options.items() if value is not None}


def _known(encoding: str) -> str:
    """The encoding by Python's name for it; a byte order mark is always allowed."""
    try:
        name = codecs.lookup(encoding).name
        "a".encode(name).decode(name)  # some codecs are not about text
    except (LookupError, ValueError, TypeError):
        raise InputError(
            f"{setting('encoding')} is {encoding!r}; allowed is the name of an encoding, such as "
            "utf-8, latin-1, windows-1252 or utf-16",
            value=encoding,
        ) from None
    return UTF8 if name == "utf-8-sig" else name


def form_of(path: str | Path) -> str:
    """ "csv", "parquet", "json" or "excel", by the name of a file; "" for any other.

    Example:
        >>> from evenhand._columns.file_formats import form_of
        >>> form_of("log.tsv"), form_of("log.json.gz"), form_of("log.zip"), form_of("log.doc")
        ('csv', 'json', 'csv', '')
    """
    path = Path(path)
    if not is_compressed(path):
        return ENDINGS.get(path.suffix.lower(), "")
    inside = Path(path.stem).suffix.lower()
    is_archive = path.suffix.lower() == ZIP  # an archive is often named after what it is about
    form = ENDINGS.get(inside, CSV if is_archive else "")
    return form if form in COMPRESSIBLE and not (is_archive and form == JSON) else ""


def endings() -> str:
    """The endings that a file may have, for messages."""
    plain = ", ".join(ENDINGS)
    return f"{plain} (CSV also with {', '.join(COMPRESSED)}; JSON with {GZIP}, {ZSTANDARD})"
