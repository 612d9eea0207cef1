"""The groups of the arms: their names, their sizes, and which one is sensitive."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand._checks import is_missing, unmasked
from evenhand.errors import InputError, setting

PER_ROUND = "per round"
"""The label of every arm where membership comes with the round."""

NOT_STATED = "not stated"
"""The level of a candidate who did not say."""


class Attribute(NamedTuple):
    """An attribute, such as sex, and its levels.

    Example:
        >>> import evenhand as eh
        >>> groups = eh.Groups.of_attributes({"sex": ["F", "M", "F"], "age": ["old", "old", "old"]})
        >>> groups.attributes[0]
        Attribute(name='sex', levels=('F', 'M'))
    """

    name: str
    levels: tuple[str, ...]


class Groups:
    """A partition of the arms into named groups.

    Args:
        labels: the group of each arm; arm i belongs to `labels[i]`.
        sensitive: the group whose feedback may be distorted, P_1 in the paper. Only policies that
            treat this group differently need it.

    Attributes:
        labels: the group of each arm.
        names: the groups.
        of: the number of the group of each arm.
        sizes: how many arms each group has.
        attributes: the attributes that the groups are intersections of; none for plain groups.
        changes: whether membership comes with each round (`per_round`).

    Example:
        >>> import evenhand as eh
        >>> groups = eh.Groups(["F", "F", "M", "M"], sensitive="F")
        >>> groups.names, groups.sizes.tolist(), groups.of.tolist()
        (('F', 'M'), [2, 2], [0, 0, 1, 1])
        >>> groups.index("M"), groups.n_arms
        (1, 4)
    """

    def __init__(self, labels: Sequence[object], sensitive: object = None) -> None:
        if isinstance(labels, (str, bytes)):
            raise InputError(
                f"{setting('labels')} is {labels!r}; give a list with the group of every arm",
                value=labels,
            )
        if not isinstance(labels, Iterable):
            raise InputError(
                f"{setting('labels')} is {labels!r}; give a list with the group of every arm",
                value=labels,
            )
        unmasked("labels", labels)
        given = list(labels)
        if not given:
            raise InputError(
                f"{setting('labels')} is empty; give the group of every arm, at least one"
            )
        missing = [arm for arm, label in enumerate(given) if is_missing(label)]
        if missing:
            raise InputError(
                f"{setting('labels')} has no group for arm {missing[0]}; give one for every arm"
            )
        self.labels: tuple[str, ...] = tuple(str(label) for label in given)
        self.names: tuple[str, ...] = tuple(dict.fromkeys(self.labels))
        self.sensitive: str | None = None if sensitive is None else str(sensitive)
        if self.sensitive is not None and self.sensitive not in self.names:
            raise InputError(
                f"{setting('sensitive')} is {self.sensitive!r}, a group without arms; allowed is "
                f"one of {', '.join(self.names)}",
                value=self.sensitive,
            )
        self.attributes: tuple[Attribute, ...] = ()
        self.changes = False
        index = {name: g for g, name in enumerate(self.names)}
        self.of: NDArray[np.int64] = np.array([index[label] for label in self.labels])
        self.sizes: NDArray[np.int64] = np.bincount(self.of, minlength=len(self.names))

    @classmethod
    def crossed(cls, *attributes: Sequence[object], sensitive: object = None) -> Groups:
        """Intersections as groups: one for every combination of attributes among the arms.

        Example:
            >>> import evenhand as eh
            >>> eh.Groups.crossed(["F", "M", "F"], ["old", "old", "young"]).names
            ('F & old', 'M & old', 'F & young')
        """
        if len({len(attribute) for attribute in attributes}) != 1:
            lengths = ", ".join(str(len(attribute)) for attribute in attributes)
            raise InputError(f"attributes have lengths {lengths}; give each one value per arm")
        labels = [
            " & ".join(str(value) for value in values) for values in zip(*attributes, strict=True)
        ]
        return cls(labels, sensitive)

    @classmethod
    def of_attributes(cls, table: Any, sensitive: object = None) -> Groups:
        """Intersections as groups that know the attributes they are made of.

        Policies that can, such as `PooledGroupFair`, learn a bias per attribute and what an
        intersection adds to it. Only intersections that occur count.

        Args:
            table: a list of levels per attribute, one for every arm, by the attribute's name; or a
                DataFrame with a row per arm.
            sensitive: the intersection whose feedback may be distorted, such as "F & old".

        Example:
            >>> import evenhand as eh
            >>> table = {"sex": ["F", "M", "F"], "age": ["old", "old", "young"]}
            >>> groups = eh.Groups.of_attributes(table)
            >>> groups.names, [attribute.levels for attribute in groups.attributes]
            (('F & old', 'M & old', 'F & young'), [('F', 'M'), ('old', 'young')])
        """
        columns = _columns(table)
        groups = cls.crossed(*columns.values(), sensitive=sensitive)
        for name, values in columns.items():
            missing = [arm for arm, value in enumerate(values) if is_missing(value)]
            if missing:
                raise InputError(
                    f"{name} of arm {missing[0]} is missing; give a level for every arm, such as "
                    "'not stated'"
                )
        groups.attributes = tuple(
            Attribute(name, tuple(dict.fromkeys(str(value) for value in values)))
            for name, values in columns.items()
        )
        groups._levels = tuple(
            tuple(str(column[arm]) for column in columns.values()) for arm in range(groups.n_arms)
        )
        return groups

    @classmethod
    def per_round(cls, n_arms: int, attributes: Mapping[str, Sequence[object]]) -> Groups:
        """Groups that come with the candidates of each round: `policy.select(..., groups=...)`.

        The same arm may be a woman's application today and a man's tomorrow. A candidate has a
        level of every attribute, or probabilities of the levels, or did not say.

        Args:
            n_arms: the number of candidates in a round.
            attributes: the levels of every attribute.

        Example:
            >>> import evenhand as eh
            >>> groups = eh.Groups.per_round(3, {"sex": ["F", "M"]})
            >>> groups.columns
            ('sex: F', 'sex: M', 'sex: not stated')
        """
        if not isinstance(attributes, Mapping) or not attributes:
            raise InputError(
                f"{setting('attributes')} is {_checks.shown(attributes)}; allowed is a mapping "
                'such as {"sex": ["F", "M"]}',
                value=attributes,
            )
        groups = cls([PER_ROUND] * _checks.whole("n_arms", n_arms))
        groups.attributes = tuple(_declared(name, given) for name, given in attributes.items())
        groups.changes = True
        return groups

    _levels: tuple[tuple[str, ...], ...] = ()  # of attributes, by arm

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a row of membership: every level, and "not stated".

        Example:
            >>> import evenhand as eh
            >>> eh.Groups(["F", "M"]).columns
            ()
        """
        return tuple(
            f"{attribute.name}: {level}"
            for attribute in self.attributes
            for level in (*attribute.levels, *([NOT_STATED] if self.changes else []))
        )

    def __len__(self) -> int:
        return len(self.names)

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return len(self.labels)

    @property
    def reference(self) -> str | None:
        """The default reference of a bias: of two groups, the one that is not sensitive.

        Compared with the mean of both, each group would show only half of the gap.

        Example:
            >>> import evenhand as eh
            >>> eh.Groups(["F", "M"], sensitive="F").reference
            'M'
        """
        if self.sensitive is None or len(self.names) != 2:
            return None
        return self.names[1 - self.names.index(self.sensitive)]

    def index(self, name: object) -> int:
        """The number of the group called `name`."""
        if str(name) not in self.names:
            raise InputError(f"group {name!r} is unknown; known are {', '.join(self.names)}")
        return self.names.index(str(name))

    def warn_of_single_arms(self) -> None:
        """Warn of groups with a single arm, whose bias cannot be told apart from their worth.

        The paper assumes more than one arm in every group.

        Example:
            >>> import warnings, evenhand as eh
            >>> with warnings.catch_warnings(record=True) as warned:
            ...     warnings.simplefilter("always")
            ...     eh.Groups(["F", "M", "M"]).warn_of_single_arms()
            >>> str(warned[0].message).split(":")[0]
            'group F has a single arm'
        """
        single = [name for name, size in zip(self.names, self.sizes, strict=True) if size == 1]
        if single:
            warnings.warn(
                f"group {', '.join(single)} has a single arm: its bias cannot be told apart from "
                "the worth of that arm; give it more arms, or merge it with another group",
                UserWarning,
                stacklevel=3,
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Groups):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.labels, self.sensitive, self.attributes, self._levels, self.changes

    def __repr__(self) -> str:
        if self.changes:
            levels = {attribute.name: list(attribute.levels) for attribute in self.attributes}
            return f"Groups.per_round({self.n_arms}, {levels!r})"
        if self.attributes:
            names = [attribute.name for attribute in self.attributes]
            columns = zip(*self._levels, strict=True)
            table = {name: list(column) for name, column in zip(names, columns, strict=True)}
            return f"Groups.of_attributes({table!r}, sensitive={self.sensitive!r})"
        return f"Groups({list(self.labels)!r}, sensitive={self.sensitive!r})"


def _columns(table: Any) -> dict[str, list[Any]]:
    """A table of attributes as lists by name."""
    names = list(table.columns) if hasattr(table, "columns") else None
    if names is None and not isinstance(table, Mapping):
        raise InputError(
            f"{setting('table')} is {_checks.shown(table)}; allowed is a mapping from attributes "
            "to lists of levels, or a DataFrame",
            value=table,
        )
    columns = {str(name): list(table[name]) for name in (table if names is None else names)}
    if not columns:
        raise InputError(f"{setting('table')} is empty; give at least one attribute")
    return columns


def _declared(name: object, given: Any) -> Attribute:
    """An attribute whose levels are declared."""
    levels = () if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    texts = tuple(str(level) for level in levels)
    if len(texts) < 2 or len(set(texts)) < len(texts) or NOT_STATED in texts:
        raise InputError(
            f"{name} has levels {_checks.shown(given)}; allowed are two or more different ones "
            f"besides {NOT_STATED!r}, which every attribute has"
        )
    return Attribute(str(name), texts)
