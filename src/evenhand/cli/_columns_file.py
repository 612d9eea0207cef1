"""The file of `evenhand audit --columns`: roles, lists of columns and settings as keys.

Errors name its line and its key, also where the audit itself finds them.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from evenhand._toml import TomlFile, line_of
from evenhand.errors import InputError, in_language

TABLE = "columns"  # may hold the keys; settings may then stand above it
# Names of settings that files and flags may also use.
ALSO = {"feature": "features", "nominal_column": "nominal_columns", "nominal": "nominal_columns"}


class ColumnsFile:
    """What such a file says, by the names of settings in Python.

    Args:
        path: the file.
        allowed: the names of all settings that it may have.
        above: those that may also stand above the table of columns.
    """

    def __init__(self, path: Path, allowed: Collection[str], above: Collection[str]) -> None:
        self._file = TomlFile(path, ())
        keys = dict(self._file.data)
        if isinstance(keys.get(TABLE), dict):
            inside = keys.pop(TABLE)
            keys = {key: value for key, value in keys.items() if named(key) in above}
            keys |= {f"{TABLE}.{key}": value for key, value in inside.items()}
        self.given: dict[str, Any] = {}
        self._keys: dict[str, str] = {}
        for key, value in keys.items():
            name = named(key.removeprefix(f"{TABLE}."))
            if name not in allowed:
                self._file.known(key, key.removeprefix(f"{TABLE}."), allowed)
            if name in self._keys:
                self._file.refuse(key, f"says the same as {self._keys[name]}; keep one of them")
            self.given[name], self._keys[name] = value, key

    def placed(self, error: InputError) -> InputError | None:
        """An error in the words of the file, with the line of the key that it is about.

        None if the file does not have that key.
        """
        key = self._keys.get((error.parameter or "").partition("[")[0])
        if key is None:
            return None
        place = f"{self._file.path.name}, line {line_of(self._file.text, key)}"
        return error.reworded(lambda text: f"{place}: {in_language(text, 'file')}")


def named(key: str) -> str:
    """The setting that a key or a flag is about, by its name in Python.

    Example:
        >>> from evenhand.cli._columns_file import named
        >>> named("true-reward"), named("feature"), named("leave_out")
        ('true_reward', 'features', 'leave_out')
    """
    name = key.replace("-", "_")
    return ALSO.get(name, name)
