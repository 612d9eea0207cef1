"""The groups of the arms: their names, their sizes, and which one is sensitive."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from evenhand._checks import is_missing, unmasked
from evenhand.errors import InputError, setting


class Groups:
    """A partition of the arms into named groups.

    Args:
        labels: the group of each arm; arm i belongs to `labels[i]`.
        sensitive: the group whose feedback may be distorted, P_1 in the paper. Only policies that
            treat this group differently need it.

    Example:
        >>> import evenhand as eh
        >>> groups = eh.Groups(["F", "F", "M", "M"], sensitive="F")
        >>> groups.names, groups.sizes.tolist(), groups.of.tolist()
        (('F', 'M'), [2, 2], [0, 0, 1, 1])
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
        """Warn of groups with a single arm, whose bias cannot be told from the arm's worth.

        The paper assumes more than one arm in every group.
        """
        single = [name for name, size in zip(self.names, self.sizes, strict=True) if size == 1]
        if single:
            warnings.warn(
                f"group {', '.join(single)} has a single arm: its bias cannot be told from the "
                "worth of that arm; give it more arms, or merge it with another group",
                UserWarning,
                stacklevel=3,
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Groups):
            return NotImplemented
        return (self.labels, self.sensitive) == (other.labels, other.sensitive)

    def __hash__(self) -> int:
        return hash((self.labels, self.sensitive))

    def __repr__(self) -> str:
        return f"Groups({list(self.labels)!r}, sensitive={self.sensitive!r})"
