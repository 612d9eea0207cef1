"""Generic functions, with an implementation for each kind of rule or world, and their errors.

The first argument of such a function is a NamedTuple of numbers and arrays. Numba chooses the
implementation by its class. A class inherits the implementations of its base classes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core.errors import NumbaError

from evenhand._compile.disk_cache import Sources, note_source, sources_of
from evenhand.errors import InputError

Function = TypeVar("Function", bound=Callable[..., Any])

ALLOWED = "allowed are numbers, NumPy arrays of numbers, and tuples of these"


class Generic:
    """Some generic functions, and their implementations by class of NamedTuple.

    Args:
        mark: the decorator as errors show it, with places for {function} and {kind}.
        functions: the generic functions, whose parameters the implementations must have.
    """

    def __init__(self, mark: str, *functions: Callable[..., Any]) -> None:
        self.mark = mark
        self._parameters = {function.__name__: _parameters(function) for function in functions}
        self._functions = functions
        self._written: dict[tuple[str, type | None], Callable[..., Any]] = {}
        self._sources: dict[type, Sources] = {}  # a cache, emptied by every `write`

    def write(
        self, generic: Callable[..., Any], kind: type | None
    ) -> Callable[[Function], Function]:
        """A decorator for the implementation of `generic` for a class; None is the default."""
        if generic not in self._functions:
            raise InputError(f"kernel for {generic!r}; allowed are {', '.join(self._parameters)}")
        name = generic.__name__
        if kind is not None and not _is_named(kind):
            raise InputError(
                f"kernel for {kind!r}; allowed is a class of NamedTuples: mark the function with "
                + self.mark.format(function=name, kind="MyNamedTuple")
            )

        def register(function: Function) -> Function:
            wanted, given = self._parameters[name], _parameters(function)
            if wanted != given:
                raise InputError(
                    f"{function.__name__} takes ({', '.join(given)}); "
                    f"a kernel for {name} takes ({', '.join(wanted)})"
                )
            self._written[name, kind] = function
            self._sources.clear()
            note_source(Path(function.__code__.co_filename))
            return function

        return register

    def find(self, name: str, kind: type | None) -> Callable[..., Any] | None:
        """The implementation for a class: its own, one of its bases', or the default."""
        for base in (*getattr(kind, "__mro__", ()), None):
            if (name, base) in self._written:
                return self._written[name, base]
        return None

    def find_typed(self, name: str, argument: Any) -> Callable[..., Any] | None:
        """`find` for Numba's type of a NamedTuple."""
        return self.find(name, getattr(argument, "instance_class", None))

    def sources(self, kind: type) -> Sources:
        """The user's files that define a class and its functions; see `for_sources`."""
        if kind not in self._sources:
            bases = [base for base in kind.__mro__ if _is_named(base)]
            written = [function for (_, base), function in self._written.items() if base in bases]
            self._sources[kind] = sources_of(*bases, *written)
        return self._sources[kind]

    def check(self, given: Any, origin: str, needed: str) -> None:
        """Refuse what compiled code cannot take, in clearer words than Numba's."""
        kind = type(given)
        if not _is_named(kind):
            raise InputError(
                f"{origin} gave an object of class {kind.__name__}; allowed is a NamedTuple of "
                "numbers and NumPy arrays"
            )
        for name, value in zip(kind._fields, given, strict=True):
            if not _fits(value):
                raise InputError(
                    f"{origin} gave {kind.__name__} with {name} = {_short(value)}, which compiled "
                    f"code cannot take; {ALLOWED}"
                )
        if self.find(needed, kind) is None:
            mark = self.mark.format(function=needed, kind=kind.__name__)
            raise InputError(
                f"{origin} gave {kind.__name__}, for which there is no {needed}; write a function "
                f"({', '.join(self._parameters[needed])}) and mark it with {mark}"
            )


@contextmanager
def telling(who: str) -> Iterator[None]:
    """Turn errors of Numba into an InputError of one line; Numba's text stays as the cause.

    The same is done with plain ValueErrors, the only errors that compiled code can raise.
    """
    try:
        yield
    except NumbaError as error:
        raise InputError(f"{who}: {_in_a_line(str(error))}") from error
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        raise InputError(f"{who}: {error}") from error


def _in_a_line(text: str) -> str:
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    inmost = text[text.rfind("Failed in nopython mode pipeline") :]  # the rest is its callers
    place = re.search(r'File "([^"]+)", line (\d+)', inmost)
    where = f" ({Path(place[1]).name}, line {place[2]})" if place else ""
    name = re.search(r"Untyped global name '(\w+)':\s+Cannot determine Numba type of (.+)", inmost)
    if name and "function" in name[2]:
        return (
            f"a compiled function calls {name[1]}, which is not compiled{where}; "
            "mark it with @evenhand.compiled"
        )
    if name:
        return (
            f"a compiled function uses {name[1]}, which it cannot take{where}; {ALLOWED}: "
            "make it one of them, or a field of the NamedTuple"
        )
    lines = [line.strip(" >") for line in inmost.splitlines()[1:] if line.strip()]
    reason = " ".join(lines[:2]) if lines and lines[0].endswith(":") else "".join(lines[:1])
    return (
        f"a function cannot be compiled{where}: {_short(reason, str)}; use only numbers, arrays "
        "and functions marked with @evenhand.compiled"
    )


def _parameters(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


def _is_named(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def _fits(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_fits(item) for item in value)
    if isinstance(value, (list, set)):  # Numba takes them from Python, but not in a tuple
        return False
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return False
    try:
        numba.typeof(value)
    except (ValueError, TypeError, NumbaError):
        return False
    return True


def _short(value: Any, write: Callable[[Any], str] = repr) -> str:
    text = " ".join(write(value).split())
    return text if len(text) <= 200 else text[:200] + "..."
