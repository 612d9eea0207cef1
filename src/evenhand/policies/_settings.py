"""The settings of a policy: they are fixed when it is made, and named by the constructor."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict

from evenhand.conventions import Conventions
from evenhand.errors import InputError
from evenhand.groups import Groups
from evenhand.policies.exploration import Exploration, Schedule

if TYPE_CHECKING:
    from evenhand.policies.base import Policy

POLICIES: dict[str, type[Policy]] = {}


class Common(TypedDict, total=False):
    """The settings that a policy passes on to `Policy`, which documents them."""

    noise: float | str
    singular: str | None
    ridge: float | None
    exploration: Exploration
    conventions: Conventions
    seed: int | None


class Settled:
    """The part of `Policy` that knows its settings."""

    groups: Groups
    n_features: int
    horizon: int | None
    delta: float
    noise: float | str
    singular: str
    ridge: float | None
    exploration: Exploration
    conventions: Conventions
    seed: int
    round: int
    _schedule: Schedule

    _fixed: ClassVar[frozenset[str]] = frozenset()
    """The settings that are read only when the policy is made, so they cannot be assigned."""

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return self.groups.n_arms

    def settings(self) -> dict[str, Any]:
        """The settings of the policy, by the names of the constructor."""
        named: dict[str, Any] = {}
        for name in settings_of(type(self)):
            if not hasattr(self, name):
                raise InputError(
                    f"{type(self).__name__} has no attribute {name!r}; keep every parameter of "
                    "the constructor under its own name"
                )
            named[name] = getattr(self, name)
        return named

    def clone(self, **changes: Any) -> Self:
        """A policy with the same or changed settings that has learned nothing yet.

        Example:
            >>> import evenhand as eh
            >>> policy = eh.TopInterval(["F", "M"], n_features=1, horizon=10, seed=3)
            >>> policy.clone(delta=0.2).delta
            0.2
        """
        return type(self)(**{**self.settings(), **changes})

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._fixed and name in self.__dict__:
            raise AttributeError(
                f"{name} of a {type(self).__name__} is fixed when it is made; make a new one, "
                f"such as policy.clone({name}=...)"
            )
        object.__setattr__(self, name, value)


def settings_of(kind: type[Settled]) -> tuple[str, ...]:
    """The parameters of the constructors, those of `Policy` first."""
    names: dict[str, None] = {}
    constructors = [vars(base).get("__init__") for base in reversed(kind.__mro__[:-1])]
    for constructor in filter(None, constructors):
        for name, parameter in list(inspect.signature(constructor).parameters.items())[1:]:
            if parameter.kind != parameter.VAR_KEYWORD:
                names[name] = None
    return tuple(names)
