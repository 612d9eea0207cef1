"""From groups to columns: levels, intersections, and the reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand._columns.words import meant
from evenhand.errors import InputError
from evenhand.groups import NOT_STATED, Attribute, Groups

MOST_CELLS = 64  # intersections with an effect of their own; others are the sum of their attributes

LEVEL, INTERSECTION = "level", "intersection"

Array = NDArray[np.float64]


class ReportRow(NamedTuple):
    """A row of a report: the bias of a level or an intersection."""

    kind: str
    name: str
    contrast: Array  # of the columns
    whole: bool  # whether it has the bias of the reference too, where that may be distorted


class ColumnsOfGroups(NamedTuple):
    """The columns of the model for some groups, in order: 1, levels, intersections."""

    attributes: tuple[Attribute, ...]  # with "not stated" among the levels where it can be
    names: tuple[str, ...]  # of the intersections
    levels: Array  # per arm, see `GeneralRule`
    cells: NDArray[np.int64]
    kinds: NDArray[np.int64]

    @property
    def n_levels(self) -> int:
        """The number of levels of all attributes together."""
        return sum(len(attribute.levels) for attribute in self.attributes)

    @property
    def stated(self) -> NDArray[np.bool_]:
        """Which of all levels are stated; those of fixed groups are, whatever their names."""
        levels = [level for attribute in self.attributes for level in attribute.levels]
        return np.array([level != NOT_STATED or len(self.levels) > 0 for level in levels])

    def first_of(self, attribute: int) -> int:
        """The number of the first level of an attribute, among all levels."""
        return sum(len(item.levels) for item in self.attributes[:attribute])

    @property
    def summed(self) -> Array:
        """What intersections add to every level, if levels alone describe them: (levels, cells).

        The least-squares fit of the intersections' effects by their levels, each counting the same.
        """
        rows = np.zeros((len(self.cells), 1 + self.n_levels))
        rows[:, 0] = 1.0
        np.put_along_axis(rows, 1 + self.cells, 1.0, axis=1)
        inverse: Array = np.linalg.pinv(rows).astype(np.float64)
        return inverse[1:]

    @property
    def beyond(self) -> Array:
        """How far intersections are from the best sum of levels: (cells, cells)."""
        rows = np.zeros((len(self.cells), 1 + self.n_levels))
        rows[:, 0] = 1.0
        np.put_along_axis(rows, 1 + self.cells, 1.0, axis=1)
        left: Array = np.eye(len(rows)) - rows @ np.linalg.pinv(rows)
        return np.where(np.abs(left) > 1e-9, left, 0.0)

    def basis(self, mass: Array, seen: bool = False) -> Array:
        """The columns that data can tell from each other: of every attribute one level less.

        If all levels of an attribute grow by 1 and the mean of all shrinks by 1, nothing changes,
        because the weights of an attribute add up to 1. So the level with the largest mass, how
        often it was seen, is the zero of its attribute. The result is the identity without these
        columns, (columns, fewer); with `seen`, also without levels that were never seen.
        """
        identified = np.ones(self.kinds.size, dtype=bool)
        if seen:
            identified[1 : 1 + self.n_levels] = mass > 0.0
        for number, attribute in enumerate(self.attributes):
            first = self.first_of(number)
            zero = np.argmax(mass[first : first + len(attribute.levels)])
            identified[1 + first + zero] = False
        return np.ascontiguousarray(np.eye(self.kinds.size)[:, identified])

    def rows(self, reference: Array) -> list[ReportRow]:
        """The rows of a report, against a reference: levels, then intersections.

        A level is compared with the reference's levels of the same attribute, on average over the
        intersections; an intersection with the reference as a whole. So is a level where it is all
        that is known about a candidate.
        """
        rows, column, eye = [], 1, np.eye(self.kinds.size)
        for number, attribute in enumerate(self.attributes):
            own_columns = self.kinds == number + 1
            for level in attribute.levels:
                contrast = eye[column] - reference * own_columns
                contrast[1 + self.n_levels :] = contrast[1 : 1 + self.n_levels] @ self.summed
                alone = len(self.attributes) == 1
                rows.append(ReportRow(LEVEL, f"{attribute.name}: {level}", contrast, alone))
                column += 1
        for name, cell in zip(self.names, self.cells, strict=True):
            levels = np.zeros((1, self.n_levels))
            levels[0, cell] = 1.0
            rows.append(ReportRow(INTERSECTION, name, self.weights(levels)[0] - reference, True))
        return rows

    def weights(self, levels: Array) -> Array:
        """The weights of candidates with these numbers of levels, a row each.

        Example:
            >>> import numpy as np, evenhand as eh
            >>> from evenhand.policies.pooled_group_fair.general._design import design_of
            >>> table = {"sex": ["F", "M", "F"], "age": ["old", "old", "young"]}
            >>> design = design_of(eh.Groups.of_attributes(table))
            >>> design.weights(design.levels)[0].tolist()  # 1, F, M, old, young, and F & old
            [1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0]
        """
        of_cells = levels[:, self.cells].prod(axis=2)
        return np.concatenate([np.ones((len(levels), 1)), levels, of_cells], axis=1)


def design_of(groups: Groups) -> ColumnsOfGroups:
    """The columns for these groups. Plain groups are one attribute, called "group"."""
    attributes = groups.attributes or (Attribute("group", groups.names),)
    if groups.changes:
        attributes = tuple(Attribute(item.name, (*item.levels, NOT_STATED)) for item in attributes)
    starts = np.cumsum([0, *(len(item.levels) for item in attributes)])
    if groups.changes:
        levels = np.zeros((0, int(starts[-1])))
        cells = _possible(groups, starts)
    else:
        rows = groups._levels or tuple((label,) for label in groups.labels)
        numbers = np.array(
            [
                [
                    start + item.levels.index(level)
                    for start, item, level in zip(starts, attributes, row, strict=False)
                ]
                for row in rows
            ]
        )
        levels = np.zeros((groups.n_arms, int(starts[-1])))
        np.put_along_axis(levels, numbers, 1.0, axis=1)
        cells = _occurring(numbers)
    k = len(attributes)
    if k == 1:
        cells = np.zeros((0, 1), dtype=np.int64)
    of_levels = [1 + a for a, item in enumerate(attributes) for _ in item.levels]
    kinds = np.array([0, *of_levels, *[k + 1] * len(cells)], dtype=np.int64)
    flat = [level for item in attributes for level in item.levels]
    names = tuple(" & ".join(flat[number] for number in cell) for cell in cells)
    return ColumnsOfGroups(attributes, names, levels, cells, kinds)


def _occurring(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The intersections that occur; if there are too many, those with the most arms."""
    cells: dict[tuple[int, ...], int] = {}
    for row in map(tuple, numbers.tolist()):
        cells[row] = cells.get(row, 0) + 1
    largest = sorted(cells, key=lambda cell: -cells[cell])[:MOST_CELLS]
    return np.array([cell for cell in cells if cell in set(largest)], dtype=np.int64)


def _possible(groups: Groups, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """All intersections of stated levels; none if there are too many."""
    sizes = [len(item.levels) for item in groups.attributes]
    if np.prod(sizes, dtype=np.float64) > MOST_CELLS:
        return np.zeros((0, len(sizes)), dtype=np.int64)
    ranges = [range(start, start + size) for start, size in zip(starts, sizes, strict=False)]
    return np.array(list(product(*ranges)), dtype=np.int64)


# The reference ----------------------------------------------------------------------------------


def reference_of(design: ColumnsOfGroups, groups: Groups, reference: Any) -> Array:
    """The weights that candidates are compared with.

    Args:
        design: the columns.
        groups: what they were made from.
        reference: None or "mean"; the name of a group or intersection, or a list of these; or a
            mapping from attributes to a level, or to a list of levels.
    """
    if isinstance(reference, Mapping):
        return _of_levels(design, groups, reference)
    labels = np.array(groups.labels, dtype=object)
    if groups.changes:
        return _of_levels(design, groups, _for_one(design, reference))
    rows, known = design.weights(design.levels), groups.names
    if reference is None or (isinstance(reference, str) and reference == "mean" not in known):
        firsts = [int(np.flatnonzero(labels == name)[0]) for name in known]
        mean: Array = rows[firsts].mean(axis=0)
        return mean
    single = isinstance(reference, str) or not isinstance(reference, Iterable)
    given = [reference] if single else list(reference)
    chosen = [meant(name, known) or str(name) for name in given]
    unknown = [name for name in chosen if name not in known]
    if unknown or not chosen:
        raise InputError(
            f"reference is {_checks.shown(reference)}; allowed are 'mean', a mapping such as "
            f"{{{design.attributes[0].name!r}: {design.attributes[0].levels[-1]!r}}}, one of "
            f"{_few(known)}, or a list of these",
            value=reference,
        )
    weights: Array = rows[np.isin(labels, chosen)].mean(axis=0)
    return weights


def _for_one(design: ColumnsOfGroups, reference: Any) -> Mapping[str, Any]:
    """A reference given as levels alone, for the only attribute."""
    if reference is None or reference == "mean":
        return {}
    if len(design.attributes) > 1:
        names = ", ".join(attribute.name for attribute in design.attributes)
        raise InputError(
            f"reference is {_checks.shown(reference)}; allowed are 'mean', or a mapping from "
            f"{names} to levels",
            value=reference,
        )
    return {design.attributes[0].name: reference}


def _of_levels(design: ColumnsOfGroups, groups: Groups, reference: Mapping[str, Any]) -> Array:
    """The mean of all candidates with these levels; attributes that are not named count evenly."""
    chosen: list[NDArray[np.bool_]] = []
    names = [attribute.name for attribute in design.attributes]
    wrong = [name for name in map(str, reference) if name not in names]
    for attribute in design.attributes:
        given = {str(name): value for name, value in reference.items()}.get(attribute.name)
        stated = [level != NOT_STATED or not groups.changes for level in attribute.levels]
        if given is None:
            chosen.append(np.array(stated))
            continue
        single = isinstance(given, str) or not isinstance(given, Iterable)
        named = [given] if single else list(given)
        levels = [meant(level, attribute.levels) or str(level) for level in named]
        mask = np.array([level in levels for level in attribute.levels])
        if mask.sum() != len(set(levels)) or not levels:
            wrong.append(attribute.name)
        chosen.append(mask)
    if wrong:
        allowed = "; ".join(f"{item.name}: {', '.join(item.levels)}" for item in design.attributes)
        raise InputError(
            f"reference is {_checks.shown(reference)}; allowed are levels of {allowed}",
            value=reference,
        )
    if groups.changes:
        levels_row = np.concatenate([mask / mask.sum() for mask in chosen])
        row: Array = design.weights(levels_row[None, :])[0]
        return row
    has = np.ones(groups.n_arms, dtype=bool)
    for number, mask in enumerate(chosen):
        first = design.first_of(number)
        has &= design.levels[:, first : first + len(mask)][:, mask].any(axis=1)
    if not has.any():
        raise InputError(
            f"reference is {_checks.shown(reference)}, which no arm has; name another",
            value=reference,
        )
    weights: Array = design.weights(design.levels[has]).mean(axis=0)
    return weights


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
