"""Sums of a log as arrays, a row per cell (group, arm, window), and the statistics from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from evenhand.audit._sums.design import DesignColumn
from evenhand.bias.statistics import Array, Bools, Statistics, totals

FAR = 1000.0  # standard deviations between mean and centre: then six digits of products are lost


@dataclass(frozen=True, eq=False)
class Cells:
    """Sums about the centres, with the intercept as the first feature."""

    frame: pd.DataFrame
    gram: Array  # (cells, d, d)
    moment: Array  # (cells, d)
    square: Array  # (cells,)
    weights: Array | None
    kept: tuple[int, ...]  # the number that each feature has in the frame
    beyond: pd.DataFrame | None = None  # by group: rows, and those above and below the median

    @property
    def n(self) -> Array:
        """The rows of each cell."""
        rows: Array = self.frame["n"].to_numpy(dtype=np.float64)
        return rows

    @property
    def total(self) -> Array:
        """The weight of each cell: the number of its rows, unless they have weights."""
        return self.n if self.weights is None else self.weights

    def groups(self) -> tuple[str, ...]:
        """The names of the groups, in order."""
        return tuple(sorted({str(name) for name in self.frame["g"]}))

    def statistics(
        self, groups: Sequence[str], window: int | None = None, by_arm: bool | None = None
    ) -> Statistics:
        """The statistics of a bias report: a row per arm, or per group where there are no arms.

        Args:
            groups: the names of the groups.
            window: one time window; all of them unless given.
            by_arm: whether rows are arms, even those without data; by default not in windows.
        """
        keep = np.ones(len(self.frame), dtype=bool)
        if window is not None:
            keep = (self.frame["t"] == window).to_numpy(dtype=bool, na_value=False)
        arms = self.arms if (window is None if by_arm is None else by_arm) else None
        labels = self._group_of_each if arms is None else arms
        names = list(groups) if arms is None else list(dict.fromkeys(labels))
        rows = np.array([names.index(label) for label in labels], dtype=np.int64)
        of = np.arange(len(names), dtype=np.int64)
        if arms is not None:
            of[rows] = [list(groups).index(name) for name in self._group_of_each]
        at = rows[keep]
        weight = totals(self.total[keep], at, len(names))
        first = totals(self.gram[keep, 0], at, len(names))
        return Statistics(
            groups=tuple(groups),
            of=of,
            n=totals(self.n[keep], at, len(names)),
            gram=totals(self.gram[keep], at, len(names)),
            moment=totals(self.moment[keep], at, len(names)),
            square=totals(self.square[keep], at, len(names)),
            means=first / np.maximum(weight, 1e-300)[:, None],
            weights=None if self.weights is None else weight,
            arms=None if arms is None else tuple(names),
        )

    @cached_property
    def _group_of_each(self) -> list[str]:
        return [str(name) for name in self.frame["g"]]

    @cached_property
    def arms(self) -> list[str] | None:
        """The name of the arm of each cell, different in different groups; None without arms.

        Where the same arms serve several groups, the name has the arm and the group. If a group
        then has a single arm, arms say nothing about groups, and are not used.
        """
        if "a" not in self.frame:
            return None
        pairs = self.frame[["g", "a"]].astype(str).drop_duplicates()
        if not pairs["a"].duplicated().any():
            return self.frame["a"].astype(str).tolist()
        if (pairs.groupby("g").size() < 2).any():
            return None
        names = self.frame["a"].astype(str) + " in " + self.frame["g"].astype(str)
        if names.nunique() < len(pairs):  # "x" in "b in c", and "x in b" in "c"
            return [f"{a!r} in {g!r}" for a, g in self.frame[["a", "g"]].astype(str).to_numpy()]
        return names.tolist()

    @cached_property
    def places(self) -> dict[str, tuple[str, str]]:
        """The group and the arm as the log has them, by the name of the arm here."""
        names = self.arms
        if names is None:
            return {}
        there = self.frame[["g", "a"]].astype(str).to_numpy()
        return {
            name: (str(group), str(arm)) for name, (group, arm) in zip(names, there, strict=True)
        }

    def constant(self, centres: Array) -> list[int]:
        """The features, by number, that have the same value in every row, up to rounding."""
        total = self.total.sum()
        mean = self.gram[:, 0].sum(axis=0) / total
        square = np.einsum("ckk->k", self.gram) / total
        size = np.maximum(np.abs(centres), np.abs(mean))
        # Against the size of the numbers and not of their spread, of which only rounding is left
        # here.
        alike = np.sqrt(np.maximum(square - mean**2, 0.0)) <= 1e-12 * size
        return np.flatnonzero((alike | (square == 0.0))[1:]).tolist()

    def without(self, features: Sequence[int]) -> Cells:
        """The sums without these features."""
        keep = np.setdiff1d(np.arange(self.gram.shape[1]), np.asarray(features, dtype=int) + 1)
        return replace(
            self,
            gram=self.gram[:, keep][:, :, keep],
            moment=self.moment[:, keep],
            kept=tuple(self.kept[i - 1] for i in keep[1:]),
        )

    def ends(self, features: Sequence[DesignColumn]) -> tuple[Array, Array]:
        """The least and the largest value of each feature."""
        centres = np.array([feature.centre for feature in features])
        low = self.frame[[f"least{i}" for i in self.kept]].to_numpy(dtype=np.float64)
        high = self.frame[[f"most{i}" for i in self.kept]].to_numpy(dtype=np.float64)
        return low.min(axis=0) + centres, high.max(axis=0) + centres

    def far(self) -> tuple[Bools, bool]:
        """Whether the centres of features, and that of the reward, are far from their means.

        Then digits are lost, and another centre would help.
        """
        total = self.total.sum()
        mean = self.gram[:, 0].sum(axis=0) / total
        square = np.einsum("ckk->k", self.gram) / total
        spread = np.sqrt(np.maximum(square - mean**2, 0.0))
        off = np.abs(mean[1:]) > FAR * spread[1:]
        y, yy = self.moment[:, 0].sum() / total, self.square.sum() / total
        return off & (mean[1:] != 0.0), bool(y**2 > FAR**2 * max(yy - y**2, 0.0) > 0.0)

    def means(self) -> Array:
        """The means of the features and, last, of the reward, about their centres."""
        total = self.total.sum()
        means: Array = np.append(self.gram[:, 0].sum(axis=0), self.moment[:, 0].sum()) / total
        return means


def make_cells(frame: pd.DataFrame, p: int) -> Cells:
    """The engine's sums, as matrices."""
    d, rows = p + 1, len(frame)
    weighted = "w" in frame
    gram, moment = np.zeros((rows, d, d)), np.zeros((rows, d))

    def column(name: str) -> Array:
        values: Array = frame[name].to_numpy(dtype=np.float64)
        return values

    gram[:, 0, 0] = column("w" if weighted else "n")
    moment[:, 0] = column("wy" if weighted else "y")
    for i in range(p):
        gram[:, 0, i + 1] = gram[:, i + 1, 0] = column(f"z{i}")
        moment[:, i + 1] = column(f"zy{i}")
        for j in range(i, p):
            gram[:, i + 1, j + 1] = gram[:, j + 1, i + 1] = column(f"z{i}_{j}")
    square = np.maximum(column("wyy" if weighted else "yy"), 0.0)
    weights = column("w") if weighted else None
    return Cells(frame, gram, moment, square, weights, tuple(range(p)))
