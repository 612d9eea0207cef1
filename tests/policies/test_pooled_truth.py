"""True rewards that come later: the posterior they lead to, and when they are learned."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand._compile import compiled
from evenhand.policies.pooled._posterior import Data, Variances, blank_posterior, work_out
from evenhand.policies.pooled._truth import (
    Truth,
    blank_blend,
    blank_seen,
    corrected,
    evidence,
    look,
    work_out_blend,
)


@compiled
def _posterior_after_truth(data, variances, truth, weights, kappa2, free, sigma2):  # type: ignore[no-untyped-def]
    m, d = data.sizes.size, data.b.shape[1]
    post = blank_posterior(data.number.size, m, d)
    work_out(data, variances, post)
    seen, out = blank_seen(m, d), blank_blend(m, d, free)
    look(data, variances, post, truth, sigma2, seen)
    work_out_blend(post, variances, weights, seen, kappa2, out)
    means, shifted, correction = np.empty(m * d), np.empty(m * d), np.empty(m * d)
    for k in range(m * d):
        means[k] = post.m[k // d, k % d]
    corrected(out, weights, means, m, d, free, shifted, correction)
    return out, shifted, correction, evidence(out.N, out.n, m * d, kappa2)


def _dense(variances, rows, weights, kappa2, free, sigma2, of):  # type: ignore[no-untyped-def]
    """Condition the joint normal of (mu, psi, delta, eta, psi_0, rewards) on all rewards at once.

    Returns the posterior of the means, of -psi_g, and the log-likelihood of all rewards.
    """
    n, m = len(of), len(weights)
    d = variances.omega_inverse.shape[0]
    blocks = 1 + m + n + m + 1  # mu, the groups' deviations, the arms' ones, eta, psi_0
    prior = np.zeros((blocks * d, blocks * d))

    def at(block: int) -> slice:
        return slice(block * d, (block + 1) * d)

    prior[at(0), at(0)] = np.linalg.inv(variances.lambda_inverse)
    for g in range(m):
        prior[at(1 + g), at(1 + g)] = np.linalg.inv(variances.omega_inverse)
        prior[at(1 + m + n + g), at(1 + m + n + g)] = kappa2 * np.eye(d)
    for i in range(n):
        prior[at(1 + m + i), at(1 + m + i)] = variances.tau2[of[i]] * np.eye(d)
    if free:
        prior[at(blocks - 1), at(blocks - 1)] = np.linalg.inv(variances.omega_inverse)

    def mean_of(g: int) -> np.ndarray:
        picked = np.zeros((d, blocks * d))
        picked[:, at(0)] = picked[:, at(1 + g)] = np.eye(d)
        return picked

    def bias_of(g: int) -> np.ndarray:
        picked = mean_of(g) - sum(weights[h] * mean_of(h) for h in range(m))
        picked[:, at(1 + m + n + g)] -= np.eye(d)
        for h in range(m):
            picked[:, at(1 + m + n + h)] += weights[h] * np.eye(d)
        picked[:, at(blocks - 1)] += np.eye(d)
        return picked

    design, noise, values = [], [], []
    for i, x, value, is_true in rows:
        picked = mean_of(of[i])
        picked[:, at(1 + m + i)] += np.eye(d)
        if is_true:
            picked = picked - bias_of(of[i])
        design.append(x @ picked)
        noise.append(sigma2 if is_true else variances.sigma2[0])
        values.append(value)
    H, y = np.array(design), np.array(values)
    covariance = H @ prior @ H.T + np.diag(noise)
    x = prior @ H.T @ np.linalg.solve(covariance, y)
    left = prior - prior @ H.T @ np.linalg.solve(covariance, H @ prior)
    means = np.concatenate([mean_of(g) @ x for g in range(m)])
    B = np.concatenate([bias_of(g) for g in range(m)])
    likelihood = -0.5 * (np.linalg.slogdet(covariance)[1] + y @ np.linalg.solve(covariance, y))
    return means, -B @ x, B @ left @ B.T, likelihood


def _case(seed: int, weights: list[float]):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    m, d = len(weights), 2
    of = np.array([i % m for i in range(3 * m)])
    n = len(of)
    sums = [np.zeros((n, d, d)), np.zeros((n, d)), np.zeros(n), np.zeros(n)]
    true = [np.zeros((n, d, d)), np.zeros((n, d)), np.zeros(n), np.zeros(n)]
    rows = []
    for _ in range(60):
        i, x, value = rng.integers(n), rng.normal(size=d) + 1.0, rng.normal()
        is_true = bool(rng.random() < 0.3) and i != 1
        A, b, squares, count = true if is_true else sums
        A[i] += np.outer(x, x)
        b[i] += x * value
        squares[i] += value**2
        count[i] += 1
        rows.append((i, x, value, is_true))
    data = Data(*sums, of, np.bincount(of).astype(float))
    omega, shared = np.array([[0.5, 0.1], [0.1, 0.3]]), np.array([[2.0, 0.3], [0.3, 1.0]])
    least = [1.0 / np.linalg.eigvalsh(matrix)[-1] for matrix in (omega, shared)]
    variances = Variances(
        np.array([0.7]),
        np.linspace(0.2, 0.4, m),
        np.linalg.inv(omega),
        np.linalg.inv(shared),
        np.array(least),
    )
    return data, Truth(*true), variances, rows, of, np.array(weights)


@pytest.mark.parametrize("kappa2", [0.0, 0.05, 2.0])
@pytest.mark.parametrize("weights", [[0.0, 1.0], [0.25, 0.75, 0.0], [1 / 3, 1 / 3, 1 / 3]])
def test_the_posterior_is_that_of_all_rewards_at_once(weights: list[float], kappa2: float) -> None:
    """Means, bias, covariance and likelihood, beside dense conditioning of the joint normal."""
    free = min(weights) > 0.0
    data, truth, variances, rows, of, shares = _case(3, weights)
    found, means, correction, gain = _posterior_after_truth(
        data, variances, truth, shares, kappa2, free, 1.3
    )
    dense = _dense(variances, rows, shares, kappa2, free, 1.3, of)
    np.testing.assert_allclose(means, dense[0], atol=1e-10)
    np.testing.assert_allclose(correction, dense[1], atol=1e-10)
    m, d = len(weights), 2
    size = m * d
    to_bias = np.zeros((size, size + found.n.size))
    for g in range(m):
        for h in range(m):
            at = slice(g * d, (g + 1) * d)
            share = (1.0 if g == h else 0.0) - weights[h]
            to_bias[at, h * d : (h + 1) * d] += share * np.eye(d)
            to_bias[at, size + h * d : size + (h + 1) * d] -= share * np.eye(d)
        if free:
            to_bias[g * d : (g + 1) * d, 2 * size :] += found.root
    R, X, H = found.R, found.X, found.H
    joint = np.block([[R + X @ H @ X.T, -X @ H], [-(X @ H).T, H]])
    np.testing.assert_allclose(to_bias @ joint @ to_bias.T, dense[2], atol=1e-10)
    equal, at_0 = (
        _dense(variances, rows, shares, 0.0, free, 1.3, of),
        _posterior_after_truth(data, variances, truth, shares, 0.0, free, 1.3)[3],
    )
    assert gain - at_0 == pytest.approx(dense[3] - equal[3], abs=1e-9)
