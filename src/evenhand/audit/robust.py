"""Errors that do not trust equal noise, or that allow for rows that belong together.

One more query: with residuals e of the fit, the sums of squares of the scores, of single rows
(w e x) or of clusters (their sums). The covariance is A^-1 B A^-1 with A = X'WX and these sums B,
times the correction that is usual for one regression with all groups in it (HC1 and CR1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.audit.sources import Source
from evenhand.audit.summing import fetch_by
from evenhand.audit.values import number
from evenhand.bias.designs import solve_designs
from evenhand.bias.fitting import by_arms, by_pulls
from evenhand.bias.statistics import Array, Statistics

CLASSICAL, ROBUST, CLUSTERED = "classical", "robust", "cluster"


@dataclass(frozen=True, eq=False)
class Errors:
    """Covariances of the groups' vectors about the centres, by group, and degrees of freedom."""

    kind: str
    covariances: dict[str, Array] | None = None
    freedom: dict[str, float] | None = None
    clusters: dict[str, int] | None = None
    crossing: int = 0  # clusters with rows in more than one group


def robust(source: Source, rows: Any, stats: Statistics, weighting: str) -> Errors:
    """The covariances from squared residuals of single rows."""
    of_arms = weighting == "arms"
    fit = (by_arms if of_arms else by_pulls)(stats, 1.0)
    gram = stats.gram if of_arms else _by_group(stats.gram, stats)
    designs = solve_designs(gram, stats.precision)
    moment = stats.moment if of_arms else _by_group(stats.moment, stats)
    vectors = np.einsum("pij,pj->pi", designs.inverse, moment)
    keys = ["g", "a"] if of_arms else ["g"]
    scored = _with_residuals(rows, keys, _labels(stats, of_arms), vectors)
    x = [number(1.0), *(scored[f"z{i}"] for i in range(gram.shape[1] - 1))]
    weight = scored["e"] * scored["e"]
    asked = {
        f"s{i}_{j}": (weight * x[i] * x[j]).sum() for i in range(len(x)) for j in range(i, len(x))
    }
    frame = fetch_by(source, scored, keys, asked)
    n, k = stats.n.sum(), designs.rank.sum()
    meat = _matrices(frame, keys, _labels(stats, of_arms), gram.shape[1])
    parts = designs.inverse @ meat @ designs.inverse * n / max(n - k, 1.0)
    if of_arms:
        sizes = np.maximum(np.bincount(stats.of, minlength=len(stats.groups)), 1.0)
        parts = _by_group(parts, stats) / sizes[:, None, None] ** 2
    freedom = np.bincount(stats.of, stats.n, len(stats.groups)) - fit.vectors.shape[1]
    usable = np.flatnonzero(freedom > 0.0)
    return Errors(
        ROBUST,
        {stats.groups[g]: _symmetric(parts[g]) for g in usable},
        {stats.groups[g]: float(freedom[g]) for g in usable},
    )


def clustered(source: Source, rows: Any, stats: Statistics) -> Errors:
    """The covariances from the sums of scores of clusters."""
    gram, moment = _by_group(stats.gram, stats), _by_group(stats.moment, stats)
    designs = solve_designs(gram, stats.precision)
    vectors = np.einsum("pij,pj->pi", designs.inverse, moment)
    scored = _with_residuals(rows, ["g"], _labels(stats, False), vectors)
    d = gram.shape[1]
    scores = {f"s{i + 1}": (scored["e"] * scored[f"z{i}"]).sum() for i in range(d - 1)}
    each = scored.group_by(["g", "c"]).aggregate(s0=scored["e"].sum(), **scores)
    asked = {
        f"s{i}_{j}": (each[f"s{i}"] * each[f"s{j}"]).sum() for i in range(d) for j in range(i, d)
    }
    frame = fetch_by(source, each, ["g"], {**asked, "clusters": each.count()})
    found = dict(zip(frame["g"].astype(str), frame["clusters"].astype(int), strict=True))
    alone = [name for name, many in found.items() if many < 2]
    if alone:
        raise ValueError(
            f"cluster: group {alone[0]} has a single cluster; errors need several in every group: "
            "leave --cluster out, or name another column"
        )
    spread = each.group_by("c").aggregate(groups=each.count())
    total = source.fetch(
        spread.aggregate(all=spread.count(), crossing=(spread.groups > 1).cast("int32").sum())
    ).iloc[0]
    n, k, many = stats.n.sum(), designs.rank.sum(), float(total["all"])
    factor = many / (many - 1.0) * (n - 1.0) / max(n - k, 1.0)
    meat = _matrices(frame, ["g"], _labels(stats, False), d)
    parts = designs.inverse @ meat @ designs.inverse * factor
    names = [name for name in stats.groups if name in found]
    return Errors(
        CLUSTERED,
        {name: _symmetric(parts[stats.groups.index(name)]) for name in names},
        {name: found[name] - 1.0 for name in names},
        found,
        int(total["crossing"]),
    )


def _with_residuals(
    rows: Any, keys: list[str], labels: list[tuple[str, ...]], vectors: Array
) -> Any:
    """The rows with w e in a column e: what is left over, times the weight."""
    import ibis

    branches = []
    for label, vector in zip(labels, vectors, strict=True):
        here = rows[keys[0]] == label[0]
        for key, value in zip(keys[1:], label[1:], strict=True):
            here = here & (rows[key] == value)
        fitted = number(vector[0])
        for i, value in enumerate(vector[1:]):
            fitted = fitted + number(value) * rows[f"z{i}"]
        branches.append((here, fitted))
    left = rows["y"] - ibis.cases(*branches)
    return rows.mutate(e=rows["w"] * left if "w" in rows.columns else left)


def _labels(stats: Statistics, of_arms: bool) -> list[tuple[str, ...]]:
    if not of_arms:
        return [(name,) for name in stats.groups]
    groups = [stats.groups[g] for g in stats.of]
    return [
        (group, (arm or "").removesuffix(f" in {group}"))
        for arm, group in zip(stats.arms or (), groups, strict=True)
    ]


def _matrices(frame: Any, keys: list[str], labels: list[tuple[str, ...]], d: int) -> Array:
    found = np.zeros((len(labels), d, d))
    for row in frame.to_dict(orient="records"):
        at = labels.index(tuple(str(row[key]) for key in keys))
        for i in range(d):
            for j in range(i, d):
                found[at, i, j] = found[at, j, i] = row[f"s{i}_{j}"]
    return found


def _by_group(values: Array, stats: Statistics) -> Array:
    total = np.zeros((len(stats.groups), *values.shape[1:]))
    np.add.at(total, stats.of, values)
    return total


def _symmetric(matrix: Array) -> Array:
    found: Array = (matrix + matrix.T) / 2.0
    return found
