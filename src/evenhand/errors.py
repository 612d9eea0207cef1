"""What is told to whoever uses evenhand: one line, in the language of the caller.

A message names settings by `setting`, which writes nothing a person would see: a mark that is put
into words where the message is shown. So the same message reads `missing="drop"` in Python,
`--missing drop` on the command line and `missing = "drop"` in a file.
"""

from __future__ import annotations

import json
import re
from shlex import quote
from typing import Any, Literal

Language = Literal["python", "command line", "file"]

# Characters for private use, which no text of anyone's has a reason to hold.
_BEGIN, _BETWEEN, _END = "\ue000", "\ue001", "\ue002"
_MARK = re.compile(f"{_BEGIN}([^{_BETWEEN}{_END}]*)(?:{_BETWEEN}([^{_END}]*))?{_END}")

# Settings whose flag is not their name.
FLAGS = {"features": "feature", "nominal_columns": "nominal"}
EVERY = "*"  # in place of a column's name: of all columns


class EvenhandError(Exception):
    """The root of all errors that evenhand raises on purpose."""


class InputError(EvenhandError, ValueError):
    """What a user gave cannot be used. The message says what is allowed and what to do.

    Args:
        message: one line; settings in it are named by `setting`.
        parameter: the setting that is wrong, by its name in Python.
        value: what was given for it.
        allowed: what may be given, in words.
        hint: what to do instead, in words.

    Example:
        >>> from evenhand.errors import InputError, setting
        >>> error = InputError(f"12 values are missing; choose {setting('missing', 'drop')}")
        >>> str(error)
        "12 values are missing; choose missing='drop'"
        >>> error.told("command line")
        '12 values are missing; choose --missing drop'
        >>> error.told("file")
        '12 values are missing; choose missing = "drop"'
    """

    def __init__(
        self,
        message: str = "",
        *,
        parameter: str | None = None,
        value: Any = None,
        allowed: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.parameter, self.value, self.allowed, self.hint = parameter, value, allowed, hint
        self.message = message or _composed(parameter, value, allowed, hint)
        super().__init__(in_language(self.message, "python"))

    def told(self, language: Language) -> str:
        """The message as a caller in this language reads it."""
        return in_language(self.message, language)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._again, (
            self.message,
            self.parameter,
            self.value,
            self.allowed,
            self.hint,
        )

    @classmethod
    def _again(
        cls, message: str, parameter: str | None, value: Any, allowed: str | None, hint: str | None
    ) -> InputError:
        """For pickling: errors come back from worker processes."""
        return cls(message, parameter=parameter, value=value, allowed=allowed, hint=hint)


class DataError(InputError):
    """A table, a log or a file holds what cannot be used."""


class DamagedError(InputError):
    """A file of evenhand's own is cut off, was changed, or is of a newer version."""


class MissingExtraError(EvenhandError, ImportError):
    """A part of evenhand needs a package that is not installed; the message says which extra."""


class Notice(UserWarning):
    """A warning whose settings are named in the language of the caller, as those of errors are."""

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(in_language(message, "python"))

    def told(self, language: Language) -> str:
        """The message as a caller in this language reads it."""
        return in_language(self.message, language)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message,)


def setting(name: str, value: Any = None) -> str:
    """A setting in a message, alone or with the value to give it.

    Args:
        name: as in Python, such as "missing_marks".
        value: what to set it to. Text in capitals, such as "COLUMN", stands for what the reader
            has to fill in. A list or a dict is written as each language writes it.

    Example:
        >>> from evenhand.errors import in_language, setting
        >>> said = setting("reward_values", {"paid": 1, "default": 0})
        >>> in_language(said, "python"), in_language(said, "command line")
        ("reward_values={'paid': 1, 'default': 0}", '--reward-values paid=1,default=0')
    """
    if value is None:
        return f"{_BEGIN}{name}{_END}"
    several = isinstance(value, (list, tuple, dict))
    text = json.dumps(value, ensure_ascii=False) if several else value
    return f"{_BEGIN}{name}{_BETWEEN}{text}{_END}"


def in_language(message: str, language: Language) -> str:
    """A message with its settings in the words of a caller."""
    return _MARK.sub(lambda found: _put(found[1], found[2], language), message)


def _put(name: str, value: str | None, language: Language) -> str:
    if language == "command line":
        flag = "--" + FLAGS.get(name, name).replace("_", "-")
        if value in (None, "True"):
            return flag
        text = ",".join(_words(_parsed(value)))
        # What begins with a minus would be taken for a flag.
        return f"{flag}{'=' if text.startswith('-') else ' '}{quote(text)}"
    if language == "file":
        return name if value is None else f"{name} = {_literal(value, json.dumps)}"
    return name if value is None else f"{name}={_literal(value, repr)}"


def _literal(value: str, write: Any) -> str:
    """Numbers, truth and what stands for something are not put in quotes."""
    if value in ("True", "False"):
        return value.lower() if write is json.dumps else value
    parsed = _parsed(value)
    if not isinstance(parsed, str):
        return _inline(parsed) if write is json.dumps else repr(parsed)
    bare = re.fullmatch(r"[A-Z][A-Z_]+|[-+]?\d+(\.\d+)?|[\[{].*", value)
    return value if bare else str(write(value))


def _parsed(value: str) -> Any:
    """A list or a dict, or the text that it is."""
    try:
        found = json.loads(value) if value[:1] in ("[", "{") else value
    except ValueError:
        return value
    return found


def _words(value: Any) -> list[str]:
    """A value as flags take it: one after the other, with the name of its column in front."""
    if isinstance(value, list):
        return [str(one) for one in value]
    if isinstance(value, dict):
        pairs = [(name, one) for name, part in value.items() for one in _words(part)]
        return [one if name == EVERY else f"{name}={one}" for name, one in pairs]
    return [str(value)]


def _inline(value: Any) -> str:
    """A value as TOML writes it on one line."""
    if not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    inside = (
        f"{json.dumps(name, ensure_ascii=False)} = {_inline(one)}" for name, one in value.items()
    )
    return f"{{ {', '.join(inside)} }}"


def _composed(parameter: str | None, value: Any, allowed: str | None, hint: str | None) -> str:
    text = " ".join(repr(value).split())
    said = f"{setting(parameter or 'input')} is {text if len(text) <= 80 else text[:77] + '...'}"
    said += f"; allowed is {allowed}" if allowed else ""
    return said + (f": {hint}" if hint else "")
