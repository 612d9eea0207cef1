"""Which directions the contexts of a regression have shown, whatever the features' scales."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.bias.statistics import Array, Bools, Whole

# Sums that are exact to a part p of their size show directions down to 1000 p of theirs.
ROOM = 1000.0
# A context leaves the directions seen if more than this part of it lies outside of them.
OUTSIDE = 1e-6


@dataclass(frozen=True, eq=False)
class Designs:
    """X'X of several regressions, solved: what can be told from each, and how exactly.

    `inverse` is (X'X)^-1, or a generalised one where directions are missing. Everything is done
    after every feature has been scaled to unit length, so units do not matter.
    """

    inverse: Array  # (rows, d, d)
    rank: Whole  # (rows,)
    scale: Array  # (rows, d): the length of each feature, 1 where it is always zero
    absent: Bools  # (rows, d): features that are always zero
    missing: Array  # (rows, d, d): the projection on what is missing, of scaled features

    def reaches(self, contexts: Array) -> Bools:
        """Whether each regression says something about each context: (rows, contexts)."""
        reached = np.ones((len(self.rank), len(contexts)), dtype=np.bool_)
        for row in np.flatnonzero(self.rank < contexts.shape[1]):
            scaled = contexts / self.scale[row]
            left = np.linalg.norm(scaled @ self.missing[row], axis=1)
            inside = left <= OUTSIDE * np.linalg.norm(scaled, axis=1)
            reached[row] = inside & ~(contexts[:, self.absent[row]] != 0.0).any(axis=1)
        return reached

    def partners(self, row: int, features: Whole) -> Whole:
        """The features that are collinear with one of these in a regression, these included."""
        linked = (np.abs(self.missing[row][features]) > OUTSIDE).any(axis=0)
        return np.flatnonzero(linked).astype(np.int64)

    def sets(self, row: int) -> list[list[int]]:
        """The sets of collinear features in a regression, each linked by what is missing."""
        from scipy.sparse.csgraph import connected_components  # 0.06 s, and rarely needed

        links = np.abs(self.missing[row]) > OUTSIDE
        _, label = connected_components(links, directed=False)
        sets = [np.flatnonzero(label == one).tolist() for one in dict.fromkeys(label)]
        return [one for one in sets if links[one].any()]


def solve_designs(gram: Array, precision: float) -> Designs:
    """Solve X'X of several regressions.

    A direction of the scaled features counts as seen if it holds more than 1000 times the
    precision of their sum of squares: with sums of doubles, if no feature is matched by the others
    to within one part in 100,000.
    """
    d = gram.shape[1]
    sizes = np.einsum("ikk->ik", gram)
    absent = sizes <= 0.0
    scale = np.sqrt(np.where(absent, 1.0, sizes))
    held, directions = np.linalg.eigh(gram / (scale[:, :, None] * scale[:, None, :]))
    seen = held > ROOM * precision * d
    inside = directions * np.where(seen, 1.0 / np.sqrt(np.where(seen, held, 1.0)), 0.0)[:, None]
    root = inside / scale[:, :, None]
    outside = directions * ~seen[:, None]
    outside = np.where(absent[:, :, None], 0.0, outside)  # `absent` says it for these
    return Designs(
        inverse=root @ root.transpose(0, 2, 1),
        rank=seen.sum(axis=1),
        scale=scale,
        absent=absent,
        missing=outside @ outside.transpose(0, 2, 1),
    )
