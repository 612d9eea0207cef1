"""The settings of a policy: fixed when it is made, named by the constructor, and checked there."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict

import numpy as np

from evenhand import _checks
from evenhand._checks import LARGEST
from evenhand.conventions import Conventions
from evenhand.errors import InputError, setting
from evenhand.groups import Groups
from evenhand.leastsquares import SINGULAR
from evenhand.leastsquares._layout import numbers_of
from evenhand.policies.exploration import Exploration, Schedule

if TYPE_CHECKING:
    from evenhand.policies.base import Policy

POLICIES: dict[str, type[Policy]] = {}
TWINS: dict[str, list[str]] = {}  # names of classes that several modules have, with the modules
MOST_NUMBERS, _MOST = 2**30, "8 GiB of memory"


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


def constructed(name: str, make: Callable[..., Policy], *given: Any, **settings: Any) -> Policy:
    """A policy; an InputError if it does not take these settings, or needs others.

    What goes wrong inside a constructor is not the caller's mistake, and stays as it is.

    Args:
        name: of the policy, in messages.
        make: its class, perhaps with some settings fixed.
        given: the groups and the number of features.
        settings: the other settings, by name.

    Example:
        >>> import evenhand as eh
        >>> from evenhand.policies._settings import constructed
        >>> constructed("TopInterval", eh.TopInterval, ["F", "M"], 1, alpha=2.0)
        Traceback (most recent call last):
        evenhand.errors.InputError: policy TopInterval: got an unexpected keyword argument 'alpha'
    """
    try:
        inspect.signature(make).bind(*given, **settings)
    except TypeError as error:
        raise InputError(f"policy {name}: {error}") from error
    try:
        return make(*given, **settings)
    except TypeError as error:  # a constructor may pass on any settings to that of its base
        unknown = [key for key in settings if f"unexpected keyword argument {key!r}" in str(error)]
        if not unknown:
            raise
        raise InputError(f"policy {name} has no setting {unknown[0]!r}") from error


def known_noise(noise: float | str) -> float | str:
    """A standard deviation, or the word "estimate"."""
    if noise == "estimate":
        return noise
    if isinstance(noise, str):
        raise InputError(
            f"noise is {noise!r}; allowed is a standard deviation or 'estimate'", value=noise
        )
    return _checks.number("noise", noise, 1.0 / LARGEST, LARGEST)


def singular_treatment(
    singular: str | None, ridge: float | None, conventions: Conventions
) -> tuple[str, float | None]:
    """How singular designs are treated, and the ridge if that is the treatment."""
    if singular is None:
        singular = conventions.singular if ridge is None else "ridge"
    _checks.one_of("singular", singular, SINGULAR)
    if singular != "ridge":
        if ridge is not None:
            raise InputError(
                f"ridge is {ridge!r} with {setting('singular', singular)}, where it has no effect; "
                "leave one of them out",
                value=ridge,
            )
        return singular, None
    value = 1.0 if ridge is None else ridge
    return singular, _checks.number("ridge", value, 1.0 / LARGEST, LARGEST)


def own_state(own: Any, policy: str) -> None:
    """Refuse a policy's own state unless it is arrays of numbers, which can be saved and added."""
    named = isinstance(own, tuple) and hasattr(own, "_fields")
    for name, table in zip(own._fields, own, strict=True) if named else [("it", None)]:
        if not (isinstance(table, np.ndarray) and table.dtype in (np.float64, np.int64)):
            raise InputError(
                f"{policy}.learns gave {name} = {_checks.shown(table)}; allowed is a NamedTuple of "
                "NumPy arrays of float64 or int64"
            )


def own_learner(kind: type[Any]) -> str:
    """The method in which a user's policy may learn what its `learns` does not declare, or "".

    An `update` or `absorb` of its own may keep what it learns anywhere. A `learns` of the same
    class, or of one derived from it, says what that is. A `learn` or `learn_true` needs one from
    anywhere.
    """

    def place(name: str) -> int:
        return next(i for i, base in enumerate(kind.__mro__) if name in vars(base))

    for name in ("update", "absorb"):
        users = not kind.__mro__[place(name)].__module__.startswith("evenhand.")
        if users and place(name) < place("learns"):
            return name
    if kind.__mro__[place("learns")].__module__.startswith("evenhand."):
        for name in ("learn", "learn_true"):
            if not kind.__mro__[place(name)].__module__.startswith("evenhand."):
                return name
    return ""


def learns_by_update(kind: type[Any]) -> bool:
    """Whether a user's policy has an `update` of its own, and no `absorb` that does the same."""
    modules = {
        name: next(base.__module__ for base in kind.__mro__ if name in vars(base))
        for name in ("update", "absorb")
    }
    users = {name for name, module in modules.items() if not module.startswith("evenhand.")}
    return users == {"update"}


def _is_users(kind: type[Any], *names: str) -> bool:
    """Whether one of these methods is a user's."""
    homes = (next(base for base in kind.__mro__ if name in vars(base)) for name in names)
    return not all(home.__module__.startswith("evenhand.") for home in homes)


def learns_in_python(kind: type[Any]) -> bool:
    """Whether something of the user's in plain Python runs for every reward."""
    return _is_users(kind, "learn", "learn_true", "absorb", "update")


def plays_in_python(kind: type[Any]) -> bool:
    """Whether rounds need Python: there is no rule, or a `select` or `update` of the user's."""
    return not kind.is_compiled() or _is_users(kind, "select", "update")


def declared(policy: Any) -> None:
    """Refuse to copy what a policy has learned if that may be more than its state."""
    kind = type(policy)
    name = own_learner(kind)
    if name and (policy.round or policy.counts.any()):
        advice = "" if name in ("learn", "learn_true") else " and learn it in the method learn"
        raise InputError(
            f"{kind.__name__} has its own {name}, and what that keeps would be lost; declare that "
            f"in the method learns{advice}, or let learns return super().learns() if it keeps "
            "nothing"
        )
    changed = changed_arrays(policy)
    if changed:
        raise InputError(
            f"{kind.__name__} has changed {changed} of its rule, which would be lost; declare what "
            "it learns in the method learns, and change state.own"
        )


def with_own_arrays(rule: Any) -> Any:
    """A rule with copies of its arrays, for `changed_arrays` to compare with a fresh one."""
    if isinstance(rule, np.ndarray):
        copy = rule.copy(order="K")
        copy.flags.writeable = rule.flags.writeable
        return copy
    if not isinstance(rule, tuple):
        return rule
    parts = map(with_own_arrays, rule)
    return type(rule)._make(parts) if hasattr(rule, "_make") else tuple(parts)


def changed_arrays(policy: Any) -> str:
    """The first field of a user's rule whose arrays are not those of a fresh one, or ""."""
    kept = vars(policy).get("_rule", ())
    if not kept or type(kept).__module__.startswith("evenhand."):
        return ""
    for name, mine, fresh in zip(kept._fields, kept, policy.rule(), strict=True):
        if _bytes_of(mine) != _bytes_of(fresh):
            return str(name)
    return ""


def _bytes_of(value: Any) -> Any:
    """What the arrays in a value hold, bit for bit; other values cannot change."""
    if isinstance(value, tuple):
        return [_bytes_of(part) for part in value]
    return value.tobytes() if isinstance(value, np.ndarray) else None


def _same(one: Any, other: Any) -> bool:
    """Whether two settings are equal; an array equals one of the same shape and numbers."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)


def same_kind(policy: Any, other: Any) -> None:
    """Refuse to merge policies of different classes or settings."""
    if other is policy:
        raise InputError("other is the policy itself; allowed is another one")
    if type(other) is not type(policy):
        raise InputError(f"other is a {type(other).__name__}; allowed is a {type(policy).__name__}")
    mine, its = policy.settings(), other.settings()
    for name, value in mine.items():
        if name not in ("seed", "horizon") and not _same(its[name], value):
            raise InputError(
                f"other has {name} = {_checks.shown(its[name])}, this policy has "
                f"{_checks.shown(value)}; allowed are the same settings"
            )


def small_enough(n_arms: int, n_groups: int, n_features: int, singular: str) -> None:
    """Refuse regressions of more than MOST_NUMBERS numbers, before memory is allocated."""

    def needed(d: int) -> int:
        return numbers_of(n_arms, d, singular) + numbers_of(n_groups, d, singular, shared=True)

    if needed(n_features) <= MOST_NUMBERS:
        return
    if needed(1) > MOST_NUMBERS:
        raise InputError(f"groups has {n_arms} arms; allowed are as many as fit into {_MOST}")
    low, high = 1, n_features  # features that fit, and features that do not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if needed(middle) <= MOST_NUMBERS else (low, middle)
    raise InputError(
        f"n_features is {n_features} with {n_arms} arms; allowed is a whole number up to {low}, "
        f"whose regressions fit into {_MOST}"
    )
