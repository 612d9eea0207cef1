"""What is told to whoever uses evenhand: one line, in the language of the caller.

A message names settings by `setting`, which writes nothing a person would see: a mark that is put
into words where the message is shown. So the same message reads `missing="drop"` in Python,
`--missing drop` on the command line and `missing = "drop"` in a file. This module is the one place
that translates, and `speaking` says for whom.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from shlex import quote
from typing import Any, Literal, NamedTuple, Self

Language = Literal["python", "command line", "file"]

# Characters for private use, which no text of anyone's has a reason to hold.
_BEGIN, _BETWEEN, _END, _BLANK = "\ue000", "\ue001", "\ue002", "\ue003"
_MARK = re.compile(f"{_BEGIN}([^{_BETWEEN}{_END}]*)(?:{_BETWEEN}([^{_END}]*))?{_END}")
_NAMED = re.compile(r"([a-z][a-z_]*) (?:is|has|are|names)\b")  # a parameter, in so many words
_HOUSE_FORM = re.compile(r"; allowed (?:is|are) (?P<allowed>.*?)(?:: (?P<hint>.*))?$", re.DOTALL)

# Settings that the command line calls by another word, and those that it takes again and again.
FLAGS = {
    "features": "--feature",
    "nominal_columns": "--nominal",
    "client": "--dask",
    "log": "LOG",
    "target": "--policy",
}
REPEATED = ("features", "leave_out", "nominal", "nominal_columns")
KEYS = {"data": "file"}  # the same of files


class _Speech(NamedTuple):
    language: Language
    flags: Collection[str] | None  # those of the command; None if any may be


_TO_PYTHON = _Speech("python", None)
_SPEECH: ContextVar[_Speech] = ContextVar("speech", default=_TO_PYTHON)


@contextmanager
def speaking(language: Language, flags: Collection[str] | None = None) -> Iterator[None]:
    """While a caller of this language reads what is told.

    Args:
        language: of the caller.
        flags: on the command line, those that the command has; settings without one are put as in
            Python, for there is no flag to advise.
    """
    before = _SPEECH.set(_Speech(language, flags))
    try:
        yield
    finally:
        _SPEECH.reset(before)


class _Told:
    """A message with settings in it, shown in the language that is spoken."""

    message: str

    def __str__(self) -> str:
        return in_language(self.message)

    def told(self, language: Language) -> str:
        """The message as a caller in this language reads it."""
        return in_language(self.message, language)


class EvenhandError(_Told, Exception):
    """The root of all errors that evenhand raises on purpose."""

    def __init__(self, message: str = "") -> None:
        self.message = message
        super().__init__(in_language(message, "python"))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message,)


class InputError(EvenhandError, ValueError):
    """What a user gave cannot be used. The message says what is allowed and what to do.

    Args:
        message: one line; settings in it are named by `setting`. Made of the others if left out.
        parameter: the setting that is wrong, by its name in Python. Unless given, the one that the
            message begins with.
        value: what was given for it.
        allowed: what may be given, in words. Unless given, what the message says of it.
        hint: what to do instead, in words. The same.

    Example:
        >>> from evenhand.errors import InputError, setting
        >>> error = InputError(f"12 values are missing; choose {setting('missing', 'drop')}")
        >>> str(error)
        '12 values are missing; choose missing="drop"'
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
        super().__init__(message or _composed(parameter, value, allowed, hint))
        first = _MARK.match(self.message) or _NAMED.match(self.message)
        form = _HOUSE_FORM.search(in_language(self.message, "python"))
        self.parameter = first[1] if parameter is None and first else parameter
        self.value = value
        self.allowed = form["allowed"] if allowed is None and form else allowed
        self.hint = form["hint"] if hint is None and form else hint

    def reworded(self, change: Callable[[str], str]) -> Self:
        """The same error with its message changed, its settings still to be translated."""
        return self._again(change(self.message), *self._facts)

    @property
    def _facts(self) -> tuple[Any, ...]:
        return self.parameter, self.value, self.allowed, self.hint

    def __reduce__(self) -> tuple[Any, ...]:
        parameter, value, allowed, hint = self._facts
        try:
            pickle.dumps(value)
        except Exception:  # whatever a user's object does: its words are enough
            value = repr(value)
        return type(self)._again, (self.message, parameter, value, allowed, hint)

    @classmethod
    def _again(
        cls, message: str, parameter: str | None, value: Any, allowed: str | None, hint: str | None
    ) -> Self:
        """For pickling: errors come back from worker processes."""
        return cls(message, parameter=parameter, value=value, allowed=allowed, hint=hint)


class DataError(InputError):
    """A table, a log or a file holds what cannot be used."""


class DamagedError(InputError):
    """A file of evenhand's own is cut off, was changed, or is of a newer version."""


class MissingExtraError(EvenhandError, ImportError):
    """A part of evenhand needs a package that is not installed; the message says which extra."""


class InputWarning(_Told, UserWarning):
    """What a user gave can be used, and may not mean what it seems to.

    Args:
        message: one line; settings in it are named by `setting`.
    """

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(in_language(message, "python"))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message,)


class SeenWarning(InputWarning):
    """A policy is judged by rows that it has learned from, or may have: they flatter it."""


def setting(name: str, value: Any = None) -> str:
    """A setting in a message, alone or with the value to give it.

    Args:
        name: as in Python, such as "missing_marks".
        value: what to set it to: a text, a number, a truth value, or a list or dict of these. What
            the reader has to fill in is a `blank`.

    Example:
        >>> from evenhand.errors import blank, in_language, setting
        >>> advice = f"say {setting('leave_out', ['age', blank('COLUMN')])}"
        >>> in_language(advice, "python")
        'say leave_out=["age", COLUMN]'
        >>> in_language(advice, "command line")
        'say --leave-out age --leave-out COLUMN'
    """
    return (
        f"{_BEGIN}{name}{_END}"
        if value is None
        else f"{_BEGIN}{name}{_BETWEEN}{_code(value)}{_END}"
    )


def literal(value: Any) -> str:
    """A value in a message, as the caller writes it: `{"age": 5}` or `{ age = 5 }`."""
    return setting("", value)


def blank(word: str) -> str:
    """A word in a setting's value that stands for what the reader has to fill in."""
    return _BLANK + word


def in_language(message: str, language: Language | None = None) -> str:
    """A message with its settings in the words of a caller; of the present one unless said."""
    speech = _SPEECH.get()
    if language is not None and language != speech.language:
        speech = _Speech(language, None)
    return _MARK.sub(lambda found: _put(found[1], found[2], speech), message)


def _code(value: Any) -> str:
    # Escaped, so that no text of a user's ends the mark; NumPy's numbers are told as Python's.
    return json.dumps(value, default=lambda one: one.item() if hasattr(one, "item") else str(one))


def _put(name: str, code: str | None, speech: _Speech) -> str:
    value = None if code is None else json.loads(code)
    if not name:
        return _literal(value, speech.language == "file")
    if speech.language == "command line":
        whole, bracket, part = name.partition("[")  # one entry of it: reward_values['paid']
        flag = FLAGS.get(whole, "--" + whole.replace("_", "-"))
        if speech.flags is None or flag in speech.flags:
            return _flag(name, flag, value) + bracket + part
    if speech.language == "file":
        key = KEYS.get(name, name)
        return key if value is None else f"{key} = {_literal(value, file=True)}"
    return name if value is None else f"{name}={_literal(value)}"


def _flag(name: str, flag: str, value: Any) -> str:
    if value is None or value is True:
        return flag
    if isinstance(value, list) and name in REPEATED:
        return " ".join(_flag(name, flag, one) for one in value)
    if isinstance(value, dict):  # by value or column; "*" stands for all columns
        pairs = [(k, one) for k, ones in value.items() for one in _listed(ones)]
        value = [_word(one) if k == "*" else f"{k}={_word(one)}" for k, one in pairs]
    text = ",".join(map(_word, value)) if isinstance(value, list) else _word(value)
    blanks = _BLANK in text
    text = text.replace(_BLANK, "")
    # What begins with a minus would be taken for a flag.
    return f"{flag}{'=' if text.startswith('-') else ' '}{text if blanks else quote(text)}"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _literal(value: Any, file: bool = False) -> str:
    """A value as Python or TOML writes it; what stands for something is not put in quotes."""
    if isinstance(value, str):
        if value.startswith(_BLANK):
            return value[1:]
        return json.dumps(value, ensure_ascii=False)  # which is Python and TOML as well
    if isinstance(value, list):
        return f"[{', '.join(_literal(one, file) for one in value)}]"
    if isinstance(value, dict):
        pairs = [(_key(key, file), _literal(one, file)) for key, one in value.items()]
        if file:
            return "{ " + ", ".join(f"{key} = {one}" for key, one in pairs) + " }"
        return "{" + ", ".join(f"{key}: {one}" for key, one in pairs) + "}"
    return json.dumps(value) if file else repr(value)


def _key(key: str, file: bool) -> str:
    return key if file and re.fullmatch(r"[\w-]+", key, re.ASCII) else _literal(key, file)


def _composed(parameter: str | None, value: Any, allowed: str | None, hint: str | None) -> str:
    text = " ".join(repr(value).split())
    said = f"{setting(parameter or 'input')} is {text if len(text) <= 80 else text[:77] + '...'}"
    said += f"; allowed is {allowed}" if allowed else ""
    return said + (f": {hint}" if hint else "")
