"""The compiled regressions against fresh solves: by hand, in exact fractions, with NumPy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand import compiled
from evenhand.leastsquares import (
    LANES,
    absorb,
    coefficients,
    counts,
    listed,
    noise_variance,
    padded,
    rank_of,
    regressions,
    room_for,
    solve_each,
    solve_shared,
)
from evenhand.leastsquares._saved import from_saved, to_saved

KINDS = [("infinite", 0.0), ("pseudo-inverse", 0.0), ("ridge", 1e-8), ("ridge", 1.0)]
GRID = 2.0**30


# What the tests run ---------------------------------------------------------------------------


@compiled
def absorb_rows(fits, which, rows, rewards):
    for k in range(rewards.size):
        absorb(fits, which[k], rows[k], rewards[k])


@compiled
def ask_each(fits, contexts):
    """Estimate and variance of all regressions, each at its own (padded) context."""
    out = np.empty((2 + fits.n_features, contexts.shape[0]))
    solve_each(fits, np.empty(room_for(fits.n_features)), contexts, out, 0, 1)
    return out[:2]


@compiled
def ask_shared(fits, g, contexts, arms):
    out = np.full((2 + fits.n_features, contexts.shape[0]), -7.0)
    solve_shared(fits, g, np.empty(room_for(fits.n_features)), contexts, arms, out, 0, 1)
    return out[:2]


def fitted(rows, rewards, singular="infinite", ridge=0.0, shared=False):
    """One regression on all rows. The third of three: not the first lane, not a full block."""
    rows, rewards = np.asarray(rows, dtype=float), np.asarray(rewards, dtype=float)
    fits = regressions(3, rows.shape[1], singular, ridge, shared)
    absorb_rows(fits, np.full(rewards.size, 2), rows, rewards)
    return fits


def answers(fits, contexts):
    """Estimates and variances of the regression of `fitted` at any number of contexts."""
    pairs = [ask_each(fits, np.tile(x, (LANES, 1)))[:, 2] for x in np.asarray(contexts, float)]
    return np.array(pairs).reshape(-1, 2).T


def residuals(fits):
    """The residual sum of squares and its degrees of freedom."""
    variance, freedom = noise_variance(fits)
    return (variance * freedom if freedom else 0.0), freedom


# What they are compared with --------------------------------------------------------------------


def on_grid(values):
    """Rounded to multiples of 2^-30, so that whole numbers hold the sums exactly."""
    return np.round(np.asarray(values) * GRID) / GRID


def exact_products(left, right):
    """left' right for values on the grid, without any rounding."""
    whole = [np.array((side * GRID).astype(int).tolist(), dtype=object) for side in (left, right)]
    return [[Fraction(int(v), int(GRID) ** 2) for v in row] for row in whole[0].T @ whole[1]]


def exact_solve(matrix, right):
    """matrix^-1 right in fractions, by elimination; the matrix is positive definite."""
    d = len(matrix)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for k in range(d):
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for i in range(d):
            if i != k:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[d] for row in rows]


def exact_answers(rows, rewards, ridge, contexts):
    """x . beta_hat and x (X'X + ridge)^-1 x' to the last digit."""
    products = exact_products(rows, np.column_stack([rows, rewards]))
    return exact_answers_from(products, ridge, contexts)


def exact_answers_from(products, ridge, contexts):
    """The same, from X' (X, y)."""
    gram, moment = [row[:-1] for row in products], [row[-1] for row in products]
    for k in range(len(gram)):
        gram[k][k] += Fraction(ridge)
    beta = exact_solve(gram, moment)
    points = [[Fraction(float(value)) for value in x] for x in contexts]
    estimates = [sum(a * b for a, b in zip(beta, x, strict=True)) for x in points]
    solved = [exact_solve(gram, x) for x in points]
    variances = [
        sum(a * b for a, b in zip(half, x, strict=True))
        for half, x in zip(solved, points, strict=True)
    ]
    return np.array([estimates, variances], dtype=float), np.array(beta, dtype=float)


def spanned(rows):
    """An orthonormal basis of the rows' span, one per column. Well apart from what is not in it."""
    rows = np.asarray(rows, dtype=float)
    _, lengths, directions = np.linalg.svd(rows, full_matrices=False)
    return directions[lengths > 1e-9 * max(lengths, default=0.0)].T


def pinv_answers(rows, rewards, contexts):
    """The minimum-norm fit and its variances by the pseudo-inverse of all rows at once."""
    inverse = np.linalg.pinv(rows, rcond=1e-9)
    estimates = contexts @ inverse @ rewards
    return estimates, np.sum((contexts @ inverse) ** 2, axis=1), inverse @ rewards


# By hand ----------------------------------------------------------------------------------------


def test_one_feature_by_hand():
    fits = fitted([[1.0], [1.0]], [3.0, 5.0])
    assert coefficients(fits, 2) == pytest.approx([4.0])
    estimates, variances = answers(fits, [[1.0], [-3.0], [0.0]])
    assert estimates == pytest.approx([4.0, -12.0, 0.0])
    assert variances == pytest.approx([0.5, 4.5, 0.0])
    assert residuals(fits) == pytest.approx((2.0, 1.0))


def test_two_features_by_hand():
    """X'X = [2 1; 1 2], its inverse [2 -1; -1 2] / 3, X'y = (3, 5)."""
    fits = fitted([[1, 0], [1, 1], [0, 1]], [1.0, 2.0, 3.0])
    assert coefficients(fits, 2) == pytest.approx([1 / 3, 7 / 3])
    estimates, variances = answers(fits, [[1, 0], [0, 1], [1, 1], [1, -1]])
    assert estimates == pytest.approx([1 / 3, 7 / 3, 8 / 3, -2])
    assert variances == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2])
    assert residuals(fits) == pytest.approx((4 / 3, 1.0))


def test_ridge_by_hand():
    """One row (1, 0) with y = 3 and a ridge of 2: beta_hat = (1, 0), fitted 1, residual 2."""
    fits = fitted([[1, 0]], [3.0], "ridge", 2.0)
    assert coefficients(fits, 2) == pytest.approx([1.0, 0.0])
    estimates, variances = answers(fits, [[1, 0], [0, 1]])
    assert estimates == pytest.approx([1.0, 0.0])
    assert variances == pytest.approx([1 / 3, 1 / 2])
    # The trace of H is x (X'X + ridge)^-1 x' = 1/3, so 2/3 of a degree is left.
    assert residuals(fits) == pytest.approx((4.0, 2 / 3))


# Against a fresh solve --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many_rows():
    """Rows, rewards and contexts; and the exact sums of products, which take a second or two."""
    rng = np.random.default_rng(1)
    scale = np.array([1.0, 1e2, 1e4, 1e6])
    rows = on_grid(rng.random((100_000, 4)) * scale)
    rewards = on_grid(rows @ (30.0 / scale) + rng.standard_normal(100_000))
    contexts = on_grid(rng.random((5, 4)) * scale)
    return rows, rewards, contexts, exact_products(rows, np.column_stack([rows, rewards]))


@pytest.mark.slow
@pytest.mark.parametrize("ridge", [0.0, 1e-8, 1e-4, 1.0, 10.0])
def test_100_000_updates_with_features_from_one_to_a_million(many_rows, ridge):
    """Where an updated inverse loses every digit, rotations keep twelve."""
    rows, rewards, contexts, products = many_rows
    expected, beta = exact_answers_from(products, ridge, contexts)
    fits = fitted(rows, rewards, "ridge" if ridge else "infinite", ridge)
    np.testing.assert_allclose(answers(fits, contexts), expected, rtol=1e-12)
    np.testing.assert_allclose(coefficients(fits, 2), beta, rtol=1e-12)


@pytest.mark.parametrize("ridge", [1e-8, 1e-4, 1.0, 10.0])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 20])
def test_few_rows_with_features_from_one_to_a_million(count, ridge):
    """With fewer rows than features only the ridge holds the fit: X'X has condition 1e20."""
    rng = np.random.default_rng(count)
    scale = np.array([1.0, 1e2, 1e4, 1e6])
    rows = on_grid(rng.random((count, 4)) * scale)
    rewards = on_grid(rows @ (30.0 / scale) + rng.standard_normal(count))
    contexts = on_grid(rng.random((5, 4)) * scale)
    expected, _ = exact_answers(rows, rewards, ridge, contexts)
    np.testing.assert_allclose(
        answers(fitted(rows, rewards, "ridge", ridge), contexts), expected, rtol=1e-10
    )


@pytest.mark.parametrize("singular", ["infinite", "pseudo-inverse"])
@pytest.mark.parametrize("count", [4, 5, 20])
def test_without_a_ridge_from_full_rank_on(count, singular):
    rng = np.random.default_rng(count)
    scale = np.array([1.0, 1e2, 1e3, 1e4])  # nearer together: rank is judged by the row's length
    rows = on_grid(rng.random((count, 4)) * scale)
    rewards = on_grid(rows @ (30.0 / scale) + rng.standard_normal(count))
    contexts = on_grid(rng.random((5, 4)) * scale)
    expected, beta = exact_answers(rows, rewards, 0.0, contexts)
    fits = fitted(rows, rewards, singular)
    np.testing.assert_allclose(answers(fits, contexts), expected, rtol=1e-10)
    np.testing.assert_allclose(coefficients(fits, 2), beta, rtol=1e-8)


@pytest.mark.parametrize("n_features", [1, 2, 3, 7, 40])
@pytest.mark.parametrize(("singular", "ridge"), KINDS)
def test_any_number_of_features_against_numpy(n_features, singular, ridge):
    rng = np.random.default_rng(n_features)
    rows = rng.standard_normal((200, n_features))
    rewards = rows @ rng.standard_normal(n_features) + rng.standard_normal(200)
    contexts = rng.standard_normal((6, n_features))
    # A ridge is the same as that many rows of its root and reward 0.
    more = np.vstack([rows, np.sqrt(ridge) * np.eye(n_features)])
    beta = np.linalg.lstsq(more, np.append(rewards, np.zeros(n_features)), rcond=None)[0]
    half = np.linalg.solve(np.linalg.qr(more)[1].T, contexts.T)
    fits = fitted(rows, rewards, singular, ridge)
    estimates, variances = answers(fits, contexts)
    np.testing.assert_allclose(estimates, contexts @ beta, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(variances, np.sum(half**2, axis=0), rtol=1e-11)
    np.testing.assert_allclose(coefficients(fits, 2), beta, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("singular", "ridge"), KINDS)
def test_regressions_side_by_side_do_not_mix(singular, ridge):
    """Nine regressions in three blocks, rows in turns: as if each were alone."""
    rng = np.random.default_rng(2)
    which, rows = rng.integers(0, 8, 300), rng.standard_normal((300, 3))
    rewards = rng.standard_normal(300)
    fits = regressions(9, 3, singular, ridge)
    absorb_rows(fits, which, rows, rewards)
    contexts = rng.standard_normal((padded(9), 3))
    estimates, variances = ask_each(fits, contexts)
    assert counts(fits).tolist() == np.bincount(which, minlength=9).tolist()
    for i in range(8):
        alone = fitted(rows[which == i], rewards[which == i], singular, ridge)
        estimate, variance = answers(alone, contexts[[i]])
        assert (estimates[i], variances[i]) == (estimate[0], variance[0])
        assert coefficients(fits, i).tolist() == coefficients(alone, 2).tolist()
    # The ninth has seen nothing.
    assert estimates[8] == 0.0
    cold = np.inf if singular != "ridge" else contexts[8] @ contexts[8] / ridge
    assert variances[8] == pytest.approx(cold)


@pytest.mark.parametrize("n_features", [2, 5, 9])
@pytest.mark.parametrize(("singular", "ridge"), KINDS)
def test_every_rank_beside_every_other(n_features, singular, ridge):
    """Neighbours that have seen nothing, a little or everything leave no trace, to the bit."""
    rng = np.random.default_rng(n_features)
    sizes = rng.permutation(np.repeat(np.arange(n_features + 3), 2))
    fits = regressions(sizes.size, n_features, singular, ridge)
    which = rng.permutation(np.repeat(np.arange(sizes.size), sizes))
    rows, rewards = rng.standard_normal((which.size, n_features)), rng.standard_normal(which.size)
    absorb_rows(fits, which, rows, rewards)
    contexts = rng.standard_normal((padded(sizes.size), n_features))
    given = ask_each(fits, contexts)
    for i, size in enumerate(sizes):
        alone = fitted(rows[which == i], rewards[which == i], singular, ridge)
        assert rank_of(fits, i) == (min(size, n_features) if singular != "ridge" else n_features)
        assert given[:, [i]].tolist() == answers(alone, contexts[[i]]).tolist()
        assert coefficients(fits, i).tolist() == coefficients(alone, 2).tolist()


def test_counts_are_whole_numbers_per_regression():
    fits = regressions(6, 2)
    assert counts(fits).tolist() == [0] * 6
    absorb_rows(fits, np.array([5, 0, 5]), np.zeros((3, 2)), np.zeros(3))
    assert counts(fits).tolist() == [1, 0, 0, 0, 0, 2]
    shared = regressions(2, 2, shared=True)
    absorb_rows(shared, np.array([1, 1]), np.ones((2, 2)), np.zeros(2))
    assert counts(shared).tolist() == [0, 2]
    assert counts(shared).dtype == np.int64


def test_absorbing_leaves_the_callers_row_alone():
    row = np.array([1.0, 2.0])
    for singular, ridge in KINDS:
        fits = regressions(1, 2, singular, ridge)
        for _ in range(3):
            absorb(fits, 0, row, 1.0)
        assert row.tolist() == [1.0, 2.0]


# Nothing seen, or not everything ----------------------------------------------------------------


@pytest.mark.parametrize("ridge", [1e-8, 1e-4, 1.0, 10.0])
def test_a_cold_ridge_has_its_prior_variance(ridge):
    contexts = np.array([[1.0, 2.0], [-3.0, 0.5], [0.0, 0.0], [1e6, 1.0]])
    fits = regressions(3, 2, "ridge", ridge)
    estimates, variances = answers(fits, contexts)
    assert estimates.tolist() == [0.0] * 4
    np.testing.assert_allclose(variances, np.sum(contexts**2, axis=1) / ridge, rtol=1e-14)
    assert coefficients(fits, 2).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("singular", ["infinite", "pseudo-inverse"])
def test_an_unseen_arm_has_an_infinite_variance(singular):
    fits = regressions(3, 2, singular)
    estimates, variances = answers(fits, [[1.0, 2.0], [1e-9, 0.0]])
    assert estimates.tolist() == [0.0, 0.0]
    assert variances.tolist() == [np.inf, np.inf]
    assert coefficients(fits, 2).tolist() == [0.0, 0.0]


small_rows = st.integers(1, 4).flatmap(
    lambda d: st.lists(st.lists(st.integers(-2, 2), min_size=d, max_size=d), min_size=1, max_size=9)
)


@pytest.mark.slow
@settings(max_examples=300)
@given(rows=small_rows, seed=st.integers(0, 2**32 - 1))
def test_singular_designs_of_small_whole_numbers(rows, seed):
    """Duplicate rows, collinear features and zero contexts turn up here all the time."""
    rng = np.random.default_rng(seed)
    rows = np.array(rows, dtype=float)
    n, d = rows.shape
    rewards = rng.standard_normal(n)
    basis = spanned(rows)
    rank = basis.shape[1]
    contexts = rng.integers(-2, 3, (12, d)).astype(float)
    contexts[:4] = rng.standard_normal((4, n)) @ rows  # these lie inside of what was seen
    outside = np.linalg.norm(contexts - contexts @ basis @ basis.T, axis=1) > 1e-6
    estimates, variances, beta = pinv_answers(rows, rewards, contexts)
    for singular in ("infinite", "pseudo-inverse"):
        fits = fitted(rows, rewards, singular)
        assert rank_of(fits, 2) == rank
        given_estimates, given_variances = answers(fits, contexts)
        assert residuals(fits)[1] == n - rank
        left = np.sum((rewards - rows @ beta) ** 2)
        assert residuals(fits)[0] == pytest.approx(left, rel=1e-9, abs=1e-12)
        np.testing.assert_allclose(coefficients(fits, 2), beta, atol=1e-11)
        np.testing.assert_allclose(given_estimates, estimates, atol=1e-10)
        if rank == 0:  # only zero contexts: as good as nothing
            continue
        wanted = np.where(outside & (singular == "infinite"), np.inf, variances)
        np.testing.assert_allclose(given_variances, wanted, rtol=1e-10, atol=1e-13)


def test_pseudo_inverse_of_zero_contexts_alone_is_zero():
    """pinv(0) = 0: the authors' code has width 0 for an arm seen at zero contexts only."""
    fits = fitted(np.zeros((2, 2)), [1.0, 2.0], "pseudo-inverse")
    assert answers(fits, np.eye(2)).tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("singular", ["infinite", "pseudo-inverse"])
def test_collinear_features_for_ever(singular):
    """Three features in a plane, up to rounding, for 100,000 rows: the rank stays two.

    The third is the sum of the first two in decimals, which binary numbers do not hold, so every
    row leaves the plane by some 1e-16 of its length.
    """
    rng = np.random.default_rng(3)
    rows = rng.random((100_000, 3))
    rows[:, 2] = 0.1 * rows[:, 0] + 0.7 * rows[:, 1]
    rewards = rows @ [1.0, 2.0, 3.0] + rng.standard_normal(100_000)
    contexts = rows[:5].copy()
    contexts[4] = [0.0, 0.0, 1.0]  # not in the plane
    fits = fitted(rows, rewards, singular)
    estimates, variances, beta = pinv_answers(rows, rewards, contexts)
    given_estimates, given_variances = answers(fits, contexts)
    assert rank_of(fits, 2) == 2
    np.testing.assert_allclose(coefficients(fits, 2), beta, rtol=1e-11)
    np.testing.assert_allclose(given_estimates, estimates, rtol=1e-11)
    np.testing.assert_allclose(given_variances[:4], variances[:4], rtol=1e-11)
    wanted = np.inf if singular == "infinite" else variances[4]
    assert given_variances[4] == pytest.approx(wanted, rel=1e-11)
    left, freedom = residuals(fits)
    assert freedom == 100_000 - 2
    assert left == pytest.approx(np.sum((rewards - rows @ beta) ** 2), rel=1e-10)


@pytest.mark.parametrize("singular", ["infinite", "pseudo-inverse"])
@pytest.mark.parametrize("angle", [1e-3, 1e-5, 1e-7])
def test_nearly_parallel_rows_span_a_plane_and_no_more(angle, singular):
    """The second direction is a small difference of rows, and must be square to the first.

    If it were not, a third row in their plane would seem to leave it. A feature is always zero.
    """
    rng = np.random.default_rng(6)
    for _ in range(50):
        rows = np.zeros((6, 3))
        rows[:, :2] = rng.standard_normal((6, 2))
        rows[1] = rows[0] + angle * rows[1]
        rewards = rng.standard_normal(6)
        fits = fitted(rows, rewards, singular)
        assert rank_of(fits, 2) == 2
        estimates, variances, beta = pinv_answers(rows, rewards, rows)
        np.testing.assert_allclose(answers(fits, rows), [estimates, variances], rtol=1e-7)
        np.testing.assert_allclose(coefficients(fits, 2), beta, rtol=1e-7, atol=1e-9)


def test_a_ridge_takes_collinear_features_as_they_come():
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((50, 3))
    rows[:, 2] = 2.0 * rows[:, 0]
    rewards, contexts = rng.standard_normal(50), rng.standard_normal((5, 3))
    inverse = np.linalg.inv(rows.T @ rows + 0.5 * np.eye(3))
    estimates, variances = answers(fitted(rows, rewards, "ridge", 0.5), contexts)
    np.testing.assert_allclose(estimates, contexts @ inverse @ rows.T @ rewards, rtol=1e-10)
    np.testing.assert_allclose(
        variances, np.einsum("ij,jk,ik->i", contexts, inverse, contexts), rtol=1e-10
    )


def test_a_new_direction_far_along():
    """Full rank after a long time in a plane: the fold into the features' own coordinates."""
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((1_000, 4))
    rows[:900, 1] = rows[:900, 0]
    rows[:950, 3] = -rows[:950, 2]
    rewards = rows @ [1.0, 2.0, 3.0, 4.0] + rng.standard_normal(1_000)
    contexts = rng.standard_normal((5, 4))
    for count, rank in ((900, 2), (901, 3), (950, 3), (951, 4), (1_000, 4)):
        seen, given = rows[:count], rewards[:count]
        fits = fitted(seen, given, "pseudo-inverse")
        assert rank_of(fits, 2) == rank
        estimates, variances, beta = pinv_answers(seen, given, contexts)
        np.testing.assert_allclose(answers(fits, contexts), [estimates, variances], rtol=1e-9)
        left = np.sum((given - seen @ beta) ** 2)
        assert residuals(fits) == pytest.approx((left, count - rank), rel=1e-10)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("singular", ["infinite", "pseudo-inverse"])
@pytest.mark.parametrize("count", [1, 4, 23, 56, 57, 58, 90])
def test_many_features_before_and_after_full_rank(count, singular, shared):
    """57 features, as the family income data have: singular for most arms all the time."""
    rng = np.random.default_rng(count)
    rows, rewards = rng.random((count, 57)), rng.standard_normal(count)
    fits = fitted(rows, rewards, singular, shared=shared)
    assert rank_of(fits, 2) == min(count, 57)
    contexts = np.vstack([rng.standard_normal((2, count)) @ rows, rng.random((2, 57))])
    estimates, variances, beta = pinv_answers(rows, rewards, contexts)
    if singular == "infinite" and count < 57:
        variances[2:] = np.inf  # they leave what was seen
    given = ask_shared(fits, 2, contexts, np.arange(4)) if shared else answers(fits, contexts)
    np.testing.assert_allclose(given[0], estimates, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(given[1], variances, rtol=1e-8)
    np.testing.assert_allclose(coefficients(fits, 2), beta, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("count", [1, 10, 40, 56])
def test_outside_is_told_from_inside_whatever_the_features_scales(count):
    """Features from 1 to 100,000: the large ones hide how far a context is from what was seen.

    A context w X, with X of full row rank, has the variance w w'.
    """
    rng = np.random.default_rng(count)
    scale = 10.0 ** np.linspace(0.0, 5.0, 57)
    rows = rng.random((count, 57)) * scale
    weights = rng.standard_normal((5, count))
    fits = fitted(rows, rng.standard_normal(count))
    inside = answers(fits, weights @ rows)[1]
    np.testing.assert_allclose(inside, np.sum(weights**2, axis=1), rtol=1e-6)
    assert np.isinf(answers(fits, rng.random((5, 57)) * scale)[1]).all()
    # One small feature off is outside, though by less than a millionth of the length.
    nudged = weights @ rows
    nudged[:, 3] += 0.01
    assert np.isinf(answers(fits, nudged)[1]).all()


def test_rows_of_zeros_and_ones():
    """Indicators of categories: rotations with zeros are left out."""
    rng = np.random.default_rng(8)
    rows = np.eye(11)[rng.integers(0, 11, 60)]
    rows[:, 0] = rng.integers(0, 2, 60)
    rewards, contexts = rng.standard_normal(60), rng.standard_normal((5, 11))
    for count in (1, 5, 12, 60):
        estimates, variances, beta = pinv_answers(rows[:count], rewards[:count], contexts)
        fits = fitted(rows[:count], rewards[:count], "pseudo-inverse")
        np.testing.assert_allclose(answers(fits, contexts), [estimates, variances], rtol=1e-11)
        np.testing.assert_allclose(coefficients(fits, 2), beta, rtol=1e-11, atol=1e-13)


# Residuals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [1e-8, 1e-2, 1.0, 10.0])
@pytest.mark.parametrize("count", [1, 2, 3, 10, 2_000])
@pytest.mark.parametrize(("n_features", "shared"), [(3, False), (10, False), (10, True)])
def test_residuals_and_freedom_of_a_ridge(n_features, shared, count, ridge):
    """||y - X beta_hat||^2, without the penalty, and n - tr(H)."""
    rng = np.random.default_rng(count)
    rows = rng.random((count, n_features))
    rewards = rows @ np.linspace(30.0, 40.0, n_features) + rng.standard_normal(count)
    more = np.vstack([rows, np.sqrt(ridge) * np.eye(n_features)])
    q = np.linalg.qr(more)[0]
    beta = np.linalg.lstsq(more, np.append(rewards, np.zeros(n_features)), rcond=None)[0]
    left, freedom = residuals(fitted(rows, rewards, "ridge", ridge, shared))
    expected = count - np.sum(q[:count] ** 2)
    if expected < 0.5:
        assert freedom == 0.0  # nothing to estimate the noise from
    else:
        assert freedom == pytest.approx(expected, rel=1e-9)
        assert left == pytest.approx(np.sum((rewards - rows @ beta) ** 2), rel=1e-8)


def test_noise_is_pooled_over_regressions():
    """Two arms by hand: residuals 2 on one degree and 8 on one degree; a third has none."""
    fits = regressions(3, 1)
    which, rewards = np.array([0, 0, 1, 1, 2]), np.array([3.0, 5.0, 0.0, 4.0, 9.0])
    absorb_rows(fits, which, np.ones((5, 1)), rewards)
    assert noise_variance(fits) == pytest.approx((5.0, 2.0))


def test_noise_is_unknown_without_residuals():
    assert noise_variance(regressions(2, 2)) == (np.inf, 0.0)
    assert noise_variance(fitted(np.eye(2), [1.0, 2.0])) == (np.inf, 0.0)


# Shared regressions -----------------------------------------------------------------------------


@pytest.mark.parametrize(("singular", "ridge"), KINDS)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 30])
@pytest.mark.parametrize("n_features", [3, 10])
def test_shared_equals_unshared(n_features, count, singular, ridge):
    """The same numbers, bit for bit, at full rank or not, for the arms that are wanted."""
    rng = np.random.default_rng(count)
    rows, rewards = rng.standard_normal((count, n_features)), rng.standard_normal(count)
    alone = fitted(rows, rewards, singular, ridge)
    shared = fitted(rows, rewards, singular, ridge, shared=True)
    contexts = rng.standard_normal((12, n_features))
    for arms in ([], [11], [1, 8, 10], [0, 2, 3, 9], [1, 4, 5, 7, 8, 11], list(range(12))):
        wanted = np.isin(np.arange(12), arms)
        given = ask_shared(shared, 2, contexts, listed(wanted))
        assert given[:, : len(arms)].tolist() == answers(alone, contexts[wanted]).tolist()
        assert (given[:, listed(wanted).size :] == -7.0).all()  # the others are left as they are
    assert coefficients(shared, 2).tolist() == coefficients(alone, 2).tolist()
    assert noise_variance(shared) == noise_variance(alone)
    # Its neighbours have learned nothing.
    assert counts(shared).tolist() == [0, 0, count]
    assert coefficients(shared, 1).tolist() == [0.0] * n_features


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 9),
    st.lists(st.integers(0, 5), min_size=8, max_size=8),
    st.lists(st.sampled_from(["outside", "inside", "zero"]), min_size=8, max_size=8),
)
def test_few_directions_at_once_equal_the_general_way(seed, n_features, seen, where):
    """Contexts that leave at most four directions have a shorter way: the same bits as shared ones,
    which do not take it, and infinite exactly where they are outside."""
    rng = np.random.default_rng(seed)
    apart, shared = regressions(8, n_features), regressions(8, n_features, shared=True)
    contexts = rng.standard_normal((8, n_features))
    for i, number in enumerate(seen):
        for row, reward in zip(rng.random((number, n_features)), rng.random(number), strict=True):
            absorb(apart, i, row, reward)
            absorb(shared, i, row, reward)
            if where[i] == "inside":
                contexts[i] = 2.0 * row
        if where[i] == "zero":
            contexts[i] = 0.0
    together = ask_each(apart, contexts)
    for i in range(8):
        alone = ask_shared(shared, i, contexts, listed(np.arange(8) == i))[:, 0]
        assert together[:, i].tolist() == alone.tolist()
        inside = seen[i] > 0 and where[i] != "outside"
        assert np.isfinite(together[1, i]) == (inside or seen[i] >= n_features)


# Saved tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("singular", "ridge"), KINDS)
@pytest.mark.parametrize("n_features", [1, 3, 4, 6])
def test_a_saved_table_is_what_its_page_says(n_features, singular, ridge, shared):
    """docs/reference/saved-policy.md: R by columns, z, 1 / diagonal, four numbers, directions."""
    d, rng = n_features, np.random.default_rng(n_features)
    fits = regressions(5, d, singular, ridge, shared)
    which, rows = rng.integers(0, 4, 3 * d), rng.standard_normal((3 * d, d))
    rewards = rng.standard_normal(3 * d)
    absorb_rows(fits, which, rows, rewards)
    saved = to_saved(fits)
    tail, directions = d * (d + 1) // 2 + 2 * d, 0 if singular == "ridge" else d * d
    assert saved.shape == (5 if shared else 2, tail + 4 + directions, LANES)
    for i in range(5):
        column = saved[i, :, 0] if shared else saved[i // LANES, :, i % LANES]
        mine, count = which == i, np.sum(which == i)
        rank = d if singular == "ridge" else min(count, d)
        root = np.zeros((d, d))
        for k in range(d):
            root[: k + 1, k] = column[k * (k + 1) // 2 :][: k + 1]
        assert column[tail : tail + 4 : 3].tolist() == [count, rank]
        np.testing.assert_allclose(
            column[tail - d :][:rank] * np.diag(root)[:rank], 1.0, rtol=1e-14
        )
        assert not column[tail - d : tail][rank:].any()
        if rank < d:
            root = root @ column[tail + 4 :].reshape(d, d)
        gram = rows[mine].T @ rows[mine] + ridge * np.eye(d)
        np.testing.assert_allclose(root.T @ root, gram, atol=1e-12)
        moment = root.T @ column[tail - 2 * d : tail - d]
        np.testing.assert_allclose(moment, rows[mine].T @ rewards[mine], atol=1e-12)
    if shared:
        assert (saved == saved[:, :, :1]).all()
    elif singular != "ridge":
        assert not saved[1, :, 1:].any()  # lanes without a regression


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("singular", "ridge"), KINDS)
@pytest.mark.parametrize("number", [0, 1, 4, 6])
def test_a_saved_table_gives_the_same_regressions(number, singular, ridge, shared):
    """To the last bit, and they go on learning alike."""
    rng = np.random.default_rng(number)
    fits, again = (regressions(number, 5, singular, ridge, shared) for _ in range(2))
    for _ in range(2):
        which = rng.integers(0, max(number, 1), 7 * number)
        rows, rewards = rng.standard_normal((which.size, 5)), rng.standard_normal(which.size)
        absorb_rows(fits, which, rows, rewards)
        from_saved(again, to_saved(fits))
        assert (again.table == fits.table).all()
        assert (to_saved(again) == to_saved(fits)).all()


def test_what_was_learned_does_not_change_by_asking():
    rng = np.random.default_rng(5)
    for count in (2, 30):
        fits = fitted(rng.random((count, 6)), rng.random(count))
        before = fits.table.copy()
        answers(fits, rng.random((3, 6)))
        assert (fits.table == before).all()


# Promises ---------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(0, 40),
    n_features=st.integers(1, 6),
    kind=st.sampled_from(KINDS),
)
def test_order_does_not_matter(seed, count, n_features, kind):
    """Standardised data in any order agree to 1e-8."""
    rng = np.random.default_rng(seed)
    rows, rewards = rng.standard_normal((count, n_features)), rng.standard_normal(count)
    contexts = rng.standard_normal((3, n_features))
    order = rng.permutation(count)
    here = fitted(rows, rewards, *kind)
    there = fitted(rows[order], rewards[order], *kind)
    for ours, others in zip(answers(here, contexts), answers(there, contexts), strict=True):
        assert ours == pytest.approx(others, rel=1e-8, abs=1e-8)
    assert coefficients(here, 2) == pytest.approx(coefficients(there, 2), rel=1e-8, abs=1e-8)
    assert residuals(here) == pytest.approx(residuals(there), rel=1e-8, abs=1e-8)


@settings(max_examples=100)
@given(rows=small_rows, kind=st.sampled_from([k for k in KINDS if k[0] != "pseudo-inverse"]))
def test_variance_shrinks_with_data(rows, kind):
    """At any fixed context, weakly with every row, whatever the row is.

    Not so with the pseudo-inverse: in a direction never seen its variance is 0, and then grows.
    """
    rows = np.array(rows, dtype=float)
    contexts = np.vstack([rows, np.eye(rows.shape[1])])
    fits = fitted(rows[:0], [], *kind)
    before = answers(fits, contexts)[1]
    for row in rows:
        absorb(fits, 2, row, 1.0)
        after = answers(fits, contexts)[1]
        assert (after >= 0.0).all()
        assert (after <= before * (1.0 + 1e-12)).all()
        before = after


@pytest.mark.parametrize("singular", ["infinite", "pseudo-inverse"])
def test_variance_in_one_direction_is_one_over_the_count(singular):
    x = np.array([3.0, -4.0, 12.0])
    fits = regressions(3, 3, singular)
    for count in range(1, 50):
        absorb(fits, 2, x, 1.0)
        assert answers(fits, [2.0 * x])[1] == pytest.approx([4.0 / count], rel=1e-13)


def wild_number(sign, digits, exponent):
    return sign * digits * 10.0**exponent


wild = st.builds(
    wild_number, st.sampled_from([-1, 0, 1]), st.floats(1.0, 9.0), st.integers(-30, 30)
)


@settings(max_examples=300)
@given(
    rows=st.lists(st.tuples(wild, wild, wild), min_size=1, max_size=8),
    reward=wild,
    kind=st.sampled_from(KINDS),
)
def test_wild_contexts_never_give_nan(rows, reward, kind):
    """Features of 1e-30 beside 1e30 need not give anything useful, but numbers they must give."""
    rows = np.array(rows)
    estimates, variances = answers(fitted(rows, np.full(len(rows), reward), *kind), rows)
    assert not np.isnan(estimates).any()
    assert (variances >= 0.0).all()  # which is false for NaN


@pytest.mark.parametrize(("singular", "ridge"), KINDS)
def test_huge_contexts_never_give_nan(singular, ridge):
    """A context is allowed any finite number."""
    rows = np.array([[1.0, 2.0], [3.0, 1.0], [1e200, 1e200], [1.0, 1.0]])
    estimates, variances = answers(fitted(rows, np.ones(4), singular, ridge), rows)
    assert not np.isnan(estimates).any()
    assert (variances >= 0.0).all()


@pytest.mark.parametrize("singular", ["infinite", "pseudo-inverse"])
def test_a_variance_too_large_to_hold_is_infinite(singular):
    """1e100 along a direction that was seen at 1e-100 only, at rank one of three and of one."""
    for d in (1, 3):
        rows, context = np.zeros((1, d)), np.zeros((1, d))
        rows[0, 0], context[0, 0] = 1e-100, 1e100
        estimates, variances = answers(fitted(rows, [0.0], singular), context)
        assert not np.isnan(estimates).any()
        assert variances.tolist() == [np.inf]


@pytest.mark.parametrize("singular", ["infinite", "pseudo-inverse"])
def test_tiny_features_never_give_nan(singular):
    rows = np.array([[0.0, 1.0], [1.0, 1e-200]])
    estimates, variances = answers(fitted(rows, np.ones(2), singular), rows)
    assert not np.isnan(estimates).any()
    assert (variances >= 0.0).all()
