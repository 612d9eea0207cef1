"""True rewards with attributes, groups by round and arms that come once."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand._compile import compiled
from evenhand._membership import membership
from evenhand.policies.pooled._blend import blank_blend, evidence
from evenhand.policies.pooled._layout import OF_TRUTH
from evenhand.policies.pooled.mixed._layout import OF_MIXED_TRUTH
from evenhand.policies.pooled.mixed._posterior import (
    Variances,
    add_in_units,
    blank_data,
    blank_posterior,
    work_out,
)
from evenhand.policies.pooled.mixed._truth import after_truth, blend_in
from evenhand.policies.saving import _checksum, from_dict, to_dict
from evenhand.recording._replay import checksum
from evenhand.simulation._loop import run
from evenhand.simulation._rounds import each_round

D = 2
SEX = {"sex": ["F", "M"]}
BOTH = {"sex": ["F", "M"], "age": ["old", "young"]}
TABLE = {"sex": ["F", "F", "M", "M", "F", "M", "M"], "age": ["o", "y", "o", "y", "o", "y", "y"]}


def crossed(**more: Any) -> eh.PooledGroupFair:
    reference = {"sex": "M", "age": "y"}
    return eh.PooledGroupFair(
        eh.Groups.of_attributes(TABLE), D, **{"seed": 3, "reference": reference, **more}
    )


def by_round(**more: Any) -> eh.PooledGroupFair:
    groups = eh.Groups.per_round(4, SEX)
    return eh.PooledGroupFair(groups, D, **{"seed": 3, "reference": "M", **more})


def once(**more: Any) -> eh.PooledGroupFair:
    return by_round(arms="once", **more)


def crossed_once(**more: Any) -> eh.PooledGroupFair:
    return crossed(arms="once", **more)


FORMS = [crossed, by_round, once, crossed_once]


def some_groups(policy: eh.PooledGroupFair, rng: np.random.Generator) -> Any:
    """Labels, None and probabilities for the candidates of a round, where they come with it."""
    if not policy.groups.changes:
        return None
    chance = float(rng.random())
    kinds: list[Any] = ["F", "M", None, {"F": chance, "M": 1.0 - chance}]
    return [kinds[kind] for kind in rng.integers(4, size=policy.n_arms)]


# The posterior -----------------------------------------------------------------------------------


@compiled
def _after_truth(sums, of_arms, true, of_true, kinds, variances, ref, free, sigma2, kappa2):  # type: ignore[no-untyped-def]
    d, n, size = variances.v.size, of_arms.shape[0], kinds.size * variances.v.size
    data, truth = blank_data(n, size, d), blank_data(n, size, d)
    add_in_units(data, sums, of_arms, np.ones(d), 1.0)
    add_in_units(truth, true, of_true, np.ones(d), 1.0)
    post, out = blank_posterior(n, size, d), blank_blend(size, size - d, d, free)
    work_out(data, kinds, variances, post)
    blend_in(data, kinds, variances, post, truth, ref, sigma2, kappa2, out)
    M, e = np.empty(size), np.empty(out.n.size)
    after_truth(out, post.M, M, e)
    return out, M, e, evidence(out.N, out.n, size - d, kappa2), post


def _dense(design, variances, rows, reference, kappa2, free, sigma2, recurs, n_arms):  # type: ignore[no-untyped-def]
    """Condition the joint normal of (M, eta, psi_0, delta) on all rewards at once."""
    q, v = design.kinds.size, variances.v
    blocks = 2 * q + n_arms  # M; psi_0 in the place of eta of the first column, then eta; delta
    prior = np.zeros((blocks * D, blocks * D))

    def at(block: int) -> slice:
        return slice(block * D, (block + 1) * D)

    omega = np.zeros((D, D))
    for kind in range(variances.along.size):
        along, across = variances.along[kind], variances.across[kind]
        block = across * np.eye(D) + (along - across) * np.outer(v, v)
        for column in np.flatnonzero(design.kinds == kind):
            prior[at(column), at(column)] = block
        if 0 < kind < variances.along.size - 1:
            omega += block
    prior[at(q), at(q)] = omega if free else 0.0
    for column in range(1, q):
        prior[at(q + column), at(q + column)] = kappa2 * np.eye(D)
    for i in range(n_arms):
        prior[at(2 * q + i), at(2 * q + i)] = variances.tau2[0] * np.eye(D) if recurs else 0.0
    H, noise, values = [], [], []
    for i, x, weights, value, is_true in rows:
        row = np.zeros((blocks, D))
        row[:q] = np.outer(reference if is_true else weights, x)
        if is_true:
            row[q : 2 * q] = np.outer(weights - reference, x)
            row[q] = -x
        row[2 * q + i] = x
        H.append(row.ravel())
        noise.append(sigma2 if is_true else variances.sigma2[0])
        values.append(value)
    matrix, y = np.array(H), np.array(values)
    covariance = matrix @ prior @ matrix.T + np.diag(noise)
    gain = prior @ matrix.T @ np.linalg.inv(covariance)
    likelihood = -0.5 * (np.linalg.slogdet(covariance)[1] + y @ np.linalg.solve(covariance, y))
    return gain @ y, prior - gain @ matrix @ prior, likelihood


@pytest.mark.parametrize("kappa2", [0.0, 0.05, 2.0])
@pytest.mark.parametrize("reference", ["named", "mean"])
@pytest.mark.parametrize("form", FORMS)
def test_the_posterior_is_that_of_all_rewards_at_once(
    form: Any, reference: str, kappa2: float
) -> None:
    """M, e, what is the arms' own, covariance and likelihood, beside dense conditioning."""
    policy = form() if reference == "named" else form(reference="mean")
    rng, rows, design = np.random.default_rng(5), [], policy._design
    free = reference == "mean"
    for _ in range(90):
        arm, x, value = int(rng.integers(policy.n_arms)), rng.normal(size=D) + 1.0, rng.normal()
        given, is_true = some_groups(policy, rng), bool(rng.random() < 0.3) and arm != 1
        levels = design.levels
        if given is not None:
            levels = membership(policy.groups, given, policy.n_arms)
        row = np.concatenate([x, levels[arm]]) if given is not None else x
        if is_true:
            policy._teach_true(
                policy._rule, policy._state, arm, 0, row, value, np.nan, len(rows) + 1, True
            )
        else:
            policy._teach(policy._rule, policy._state, arm, 0, row, value, len(rows) + 1, True)
        rows.append((arm, x, design.weights(levels[arm : arm + 1])[0], value, is_true))
    kinds = design.cells.shape[1] + 2
    v = np.array([0.6, 0.8])
    variances = Variances(
        np.array([0.7]), np.array([0.3]), np.linspace(4.0, 0.5, kinds), np.linspace(2.0, 0.4, kinds), v
    )
    recurs, weights = policy.arms == "recurring", policy._weights
    own = policy._state.own
    sums, of_arms = own.settled + own.fresh, own.settled_arms + own.fresh_arms
    out, M, e, gain, post = _after_truth(
        sums, of_arms, own.true, own.true_arms, design.kinds, variances, weights, free, 1.3, kappa2
    )
    mean, left, likely = _dense(
        design, variances, rows, weights, kappa2, free, 1.3, recurs, policy.n_arms
    )
    size, etas = M.size, M.size - D
    np.testing.assert_allclose(M, mean[:size], atol=1e-9)
    np.testing.assert_allclose(e[:etas], mean[size + D : 2 * size], atol=1e-9)
    if free:
        np.testing.assert_allclose(e[etas:], mean[size : size + D], atol=1e-9)
    # The covariance of M and e, with psi_0 behind eta.
    order = [*range(size), *range(size + D, 2 * size), *(range(size, size + D) if free else ())]
    R, X, H = out.R, out.X, out.H.copy()
    joint = np.block([[R + X @ H @ X.T, -X @ H], [-(X @ H).T, H]])
    to_psi = np.eye(len(joint))
    if free:
        to_psi[-D:, -D:] = out.root
    np.testing.assert_allclose(
        to_psi @ joint @ to_psi.T, left[np.ix_(order, order)], atol=1e-9
    )
    at_0 = _dense(design, variances, rows, weights, 0.0, free, 1.3, recurs, policy.n_arms)[2]
    before = _after_truth(
        sums, of_arms, own.true, own.true_arms, design.kinds, variances, weights, free, 1.3, 0.0
    )[3]
    assert gain - before == pytest.approx(likely - at_0, abs=1e-8)
