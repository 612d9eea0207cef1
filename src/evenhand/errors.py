"""Errors and warnings: one line each, in the language of the caller.

Messages name settings by `setting`; `evenhand._setting_names` puts them into the caller's words.
"""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from evenhand._setting_names import (
    MARK,
    Language,
    as_entries,
    as_given,
    blank,
    in_language,
    in_python,
    literal,
    setting,
    speaking,
    with_names,
    without_setting,
)

__all__ = [
    "DamagedError",
    "DataError",
    "DownloadError",
    "EvenhandError",
    "InputError",
    "InputWarning",
    "MissingExtraError",
    "SeenWarning",
    "as_given",
    "blank",
    "called",
    "entries_of",
    "in_language",
    "in_python",
    "is_outside",
    "lacking",
    "literal",
    "setting",
    "speaking",
]

_NAMED = re.compile(r"([a-z][a-z_]*) (?:is|has|are|names)\b")  # a parameter, as plain text
# "what is wrong; allowed is this: do that", or "what is wrong; do that"
_ALLOWED = re.compile(
    r"; allowed (?:is|are) (?P<allowed>.*?)(?:(?:: |; )(?P<hint>.*))?$", re.DOTALL
)
_ADVICE = re.compile(r"; (?P<hint>.*)$", re.DOTALL)
# Marks, brackets and quotes: their colons and semicolons are not those of the sentence.
_INSIDE = re.compile(rf"{MARK.pattern}|\{{[^{{}}]*\}}|\[[^\[\]]*\]|\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)")


class _Told:
    """A message with settings in it, shown in the language of `speaking`."""

    message: str

    def __str__(self) -> str:
        return in_language(self.message)

    def told(self, language: Language) -> str:
        """The message as a caller in this language reads it.

        Example:
            >>> from evenhand.errors import InputError, setting
            >>> InputError(f"choose {setting('missing', 'drop')}").told("command line")
            'choose --missing drop'
        """
        return in_language(self.message, language)


class EvenhandError(_Told, Exception):
    """The base class of all errors that evenhand raises on purpose.

    Example:
        >>> import evenhand as eh
        >>> from evenhand.errors import EvenhandError
        >>> try:
        ...     eh.Groups([])
        ... except EvenhandError as error:
        ...     print(error)
        labels is empty; give the group of every arm, at least one
    """

    def __init__(self, message: str = "") -> None:
        self.message = message
        super().__init__(in_language(message, "python"))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message,)


class InputError(EvenhandError, ValueError):
    """The user's input cannot be used. The message says what is allowed and what to do.

    Args:
        message: one line, in which `setting` names settings. By default it is composed from the
            other arguments.
        parameter: the setting that is wrong, by its name in Python. By default the one that the
            message begins with.
        value: its value.
        allowed: the values that are allowed, in words. By default taken from the message.
        hint: what to do instead, in words. By default taken from the message.

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
        self.parameter = _first_named(self.message) if parameter is None else parameter
        self.value = value
        self._allowed, self._hint = allowed, hint

    @property
    def allowed(self) -> str | None:
        """The values that are allowed, in words."""
        words = _parts(self.message).get("allowed") if self._allowed is None else self._allowed
        return None if words is None else in_language(words)

    @property
    def hint(self) -> str | None:
        """What to do instead, in words."""
        words = _parts(self.message).get("hint") if self._hint is None else self._hint
        return None if words is None else in_language(words)

    def reworded(self, change: Callable[[str], str]) -> Self:
        """The same error with a changed message, in which settings can still be translated.

        Example:
            >>> from evenhand.errors import InputError
            >>> error = InputError("age is 200; allowed is up to 120")
            >>> print(error.reworded(lambda message: f"row 7: {message}"))
            row 7: age is 200; allowed is up to 120
        """
        return self._again(change(self.message), *self._facts)

    def _renamed(self, change: Callable[[str], str], parameter: str | None) -> Self:
        """The same error about another setting, with this change of the settings in its texts."""
        allowed, hint = (text and change(text) for text in (self._allowed, self._hint))
        return self._again(change(self.message), parameter, self.value, allowed, hint)

    @property
    def _facts(self) -> tuple[Any, ...]:
        return self.parameter, self.value, self._allowed, self._hint

    def __reduce__(self) -> tuple[Any, ...]:
        parameter, value, allowed, hint = self._facts
        try:
            pickle.dumps(value)
        except Exception:  # a user's object may raise anything; its repr is enough
            value = repr(value)
        return type(self)._again, (self.message, parameter, value, allowed, hint)

    @classmethod
    def _again(
        cls, message: str, parameter: str | None, value: Any, allowed: str | None, hint: str | None
    ) -> Self:
        """Used by pickle, because errors come back from worker processes."""
        return cls(message, parameter=parameter, value=value, allowed=allowed, hint=hint)


@contextmanager
def entries_of(whole: str, names: Collection[str]) -> Iterator[None]:
    """Name settings as entries of another one in errors from inside a `with` block.

    Args:
        whole: the setting that has the entries.
        names: those of the settings.

    Example:
        >>> from evenhand.errors import InputError, entries_of, setting
        >>> try:
        ...     with entries_of("columns", ["reward"]):
        ...         raise InputError(f"no column is the reward; give {setting('reward', 'paid')}")
        ... except InputError as error:
        ...     print(error)
        no column is the reward; give columns={"reward": "paid"}
    """
    try:
        yield
    except InputError as error:
        parameter = whole if error.parameter in names else error.parameter
        raise error._renamed(
            lambda text: as_entries(text, whole, names), parameter
        ) from error.__cause__


@contextmanager
def called(names: Mapping[str, str]) -> Iterator[None]:
    """Name settings as the caller does in errors from inside a `with` block.

    Args:
        names: what the caller calls each setting, by its own name.

    Example:
        >>> from evenhand.errors import InputError, called, setting
        >>> try:
        ...     with called({"share": "true_share"}):
        ...         raise InputError(f"{setting('share')} is 2; allowed is a share")
        ... except InputError as error:
        ...     print(error)
        true_share is 2; allowed is a share
    """
    try:
        yield
    except InputError as error:
        parameter = names.get(error.parameter or "", error.parameter)
        raise error._renamed(lambda text: with_names(text, names), parameter) from error.__cause__


@contextmanager
def lacking(name: str) -> Iterator[None]:
    """Give no advice about a setting that the caller does not have, inside a `with` block.

    Args:
        name: of the setting.

    Example:
        >>> from evenhand.errors import InputError, lacking, setting
        >>> try:
        ...     with lacking("leave_out"):
        ...         raise InputError(f"leave age out with {setting('leave_out', ['age'])}")
        ... except InputError as error:
        ...     print(error)
        leave age out
    """
    try:
        yield
    except InputError as error:
        raise error._renamed(
            lambda text: without_setting(text, name), error.parameter
        ) from error.__cause__


class DataError(InputError):
    """A table, a log or a file contains values that cannot be used.

    Example:
        >>> import evenhand as eh
        >>> from evenhand.errors import DataError
        >>> try:
        ...     eh.TableWorld({"sex": ["F", "M"], "paid": [1, 0]}, group="sex", reward="repaid")
        ... except DataError as error:
        ...     print(error)
        column 'repaid' is not in the table; did you mean 'paid'? it has sex, paid
    """


class DamagedError(InputError):
    """A file that evenhand wrote is cut off, was changed, or has a newer version.

    Example:
        >>> import evenhand as eh
        >>> from evenhand.errors import DamagedError
        >>> from evenhand.policies.saving import from_dict, to_dict
        >>> saved = to_dict(eh.TopInterval(["F", "M"], n_features=1))
        >>> try:
        ...     from_dict({**saved, "round": 7})
        ... except DamagedError as error:
        ...     print(error)
        the saved policy is damaged: its checksum is wrong; use an undamaged copy
    """


class MissingExtraError(EvenhandError, ImportError):
    """A part of evenhand needs a package that is not installed; the message names the extra.

    Example:
        >>> from evenhand.errors import MissingExtraError
        >>> issubclass(MissingExtraError, ImportError)
        True
    """


class DownloadError(EvenhandError, OSError):
    """A data set could not be downloaded or kept; the message says why, and how to get it by hand.

    Example:
        >>> from evenhand.errors import DownloadError
        >>> issubclass(DownloadError, OSError)
        True
    """


class InputWarning(_Told, UserWarning):
    """The user's input can be used, but may not mean what it seems to.

    Args:
        message: one line, in which `setting` names settings.

    Example:
        >>> from evenhand.errors import InputWarning, setting
        >>> str(InputWarning(f"column 'id' is left out; name it in {setting('features')}"))
        "column 'id' is left out; name it in features"
    """

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(in_language(message, "python"))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message,)


class SeenWarning(InputWarning):
    """A policy is evaluated on rows that it may have learned from, which makes it look better.

    Example:
        >>> import warnings
        >>> from evenhand.errors import SeenWarning
        >>> warnings.simplefilter("ignore", SeenWarning)  # if you know what the policy has seen
    """


def is_outside(error: OSError) -> bool:
    """Whether an error is about a file or a connection of the user, and not about a file of ours.

    Packages derive errors of their own from OSError, such as a template that is not found; the
    operating system did not raise those, and they have no number.

    Example:
        >>> import evenhand as eh
        >>> from evenhand.errors import is_outside
        >>> is_outside(FileNotFoundError(2, "No such file or directory", "loans.csv"))
        True
        >>> is_outside(FileNotFoundError(2, "No such file or directory", eh.__file__))
        False
    """
    if isinstance(error.filename, (str, bytes)):
        path = Path(os.fsdecode(error.filename)).absolute()
        return not path.is_relative_to(Path(__file__).parent)
    return error.errno is not None


def _composed(parameter: str | None, value: Any, allowed: str | None, hint: str | None) -> str:
    message = f"{setting(parameter or 'input')} is {as_given(value)}"
    message += f"; allowed is {allowed}" if allowed else ""
    return message + (f"{':' if allowed else ';'} {hint}" if hint else "")


def _first_named(message: str) -> str | None:
    """The setting that a message begins with."""
    mark = MARK.match(message)
    if mark:
        return mark[1] if mark[1][:1].isalpha() and not mark[1].endswith(":") else None
    word = _NAMED.match(message)
    return word[1] if word else None


def _parts(message: str) -> dict[str, str]:
    """What is allowed and what to do, where a message says it in our usual form."""
    masked = _INSIDE.sub(lambda found: "_" * len(found[0]), message)
    form = _ALLOWED.search(masked) or _ADVICE.search(masked)
    if form is None:
        return {}
    return {
        name: message[slice(*form.span(name))] for name, part in form.groupdict().items() if part
    }
