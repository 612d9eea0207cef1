"""Logs with logistic chances, and logistic models of statsmodels for all groups at once."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from statsmodels.tools.sm_exceptions import SpecificationWarning

from audit_logs import made_log


def chances(seed=0, n=900, groups=("F", "M"), scale=(1.0, 1.0, 1.0), shift=0.0):
    """Rewards of 0 and 1 with a logistic chance and features in any units."""
    log = made_log(seed, n=n, groups=groups)
    rng = np.random.default_rng(seed + 1000)
    names = ["x0", "x1", "x2"]
    log[names] = (log[names] - log[names].mean()) / log[names].std()
    log.loc[log["group"] == groups[0], names] += shift
    eta = -0.4 + log[names] @ [1.0, -0.7, 0.4]
    log["reward"] = (rng.random(n) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
    log[names] = log[names] * list(scale)
    return log, names


def assert_alike(models, other, tolerance=1e-7):
    """Two results of logistic models, number by number."""
    assert models.fits == other.fits and models.without == other.without
    for mine, theirs in ((models.by_group, other.by_group), (models.by_feature, other.by_feature)):
        numbers = theirs.select_dtypes(float).columns
        np.testing.assert_allclose(mine[numbers], theirs[numbers], rtol=tolerance, atol=tolerance)
        assert mine.drop(columns=numbers).equals(theirs.drop(columns=numbers))
    assert models.linear_p_value == pytest.approx(other.linear_p_value, rel=1e-6)
    assert models.logistic_p_value == pytest.approx(other.logistic_p_value, rel=1e-6)


@dataclass
class Reference:
    """A model of all groups at once: coefficients, their covariance, and average gaps."""

    names: list[str]
    vectors: np.ndarray  # (groups, d)
    covariance: np.ndarray  # of all vectors in a row
    contexts: np.ndarray
    weights: np.ndarray

    def gap(self, group, reference):
        """The mean over all rows of p under one group less p under the other, and its error."""
        d = self.contexts.shape[1]
        gradient, means = np.zeros(len(self.covariance)), []
        for name, sign in ((group, 1.0), (reference, -1.0)):
            g = self.names.index(name)
            p = 1.0 / (1.0 + np.exp(-self.contexts @ self.vectors[g]))
            means.append(np.average(p, weights=self.weights))
            slopes = np.average(
                (p * (1.0 - p))[:, None] * self.contexts, axis=0, weights=self.weights
            )
            gradient[g * d : (g + 1) * d] = sign * slopes
        return means[0] - means[1], np.sqrt(gradient @ self.covariance @ gradient)

    def contrast(self, group, reference, context):
        """The log of the odds ratio at a context, and its error."""
        d = self.contexts.shape[1]
        gradient = np.zeros(len(self.covariance))
        for name, sign in ((group, 1.0), (reference, -1.0)):
            g = self.names.index(name)
            gradient[g * d : (g + 1) * d] = sign * np.asarray(context, dtype=float)
        return gradient @ self.vectors.ravel(), np.sqrt(gradient @ self.covariance @ gradient)


def fitted(log, features, group, reward, kind="robust", cluster=None, weight=None):
    """GLM Binomial with the corrections that an audit states: HC1 and CR1 of one model of all.

    The solution does not depend on units, and statsmodels finds it better in like ones.
    """
    names = sorted(log[group].astype(str).unique())
    x = np.column_stack([np.ones(len(log)), log[features].to_numpy(dtype=float)])
    blocks = np.hstack([x * (log[group].astype(str) == name).to_numpy()[:, None] for name in names])
    n, d = blocks.shape
    weights = np.ones(n) if weight is None else log[weight].to_numpy(dtype=float)
    scale = np.sqrt(np.mean(blocks**2, axis=0))
    y = log[reward].to_numpy(dtype=float)
    model = sm.GLM(y, blocks / scale, family=sm.families.Binomial(), var_weights=weights)
    how, factor = {"cov_type": "nonrobust"}, 1.0
    if kind == "robust":
        how, factor = {"cov_type": "HC0"}, n / (n - d)
    if kind == "cluster":
        codes = pd.factorize(log[cluster])[0]
        many = codes.max() + 1
        how = {"cov_type": "cluster", "cov_kwds": {"groups": codes, "use_correction": False}}
        factor = many / (many - 1) * (n - 1) / (n - d)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpecificationWarning)  # of other families with weights
        model_fit = model.fit(tol=1e-14, maxiter=200, **how)
    covariance = factor * model_fit.cov_params() / np.outer(scale, scale)
    vectors = (model_fit.params / scale).reshape(len(names), -1)
    return Reference(names, vectors, covariance, x, weights)


# What audits of one log are asked for in every engine.
CHOICES = (
    {"leave_out": ["person", "weight"]},
    {"cluster": "person", "weight": "weight"},
)


def roled(seed=31):
    """A log with chances, persons in both groups, and weights."""
    log, _ = chances(seed, groups=("A", "B", "C"), shift=0.5)
    log = log.drop(columns="x2")
    rng = np.random.default_rng(seed)
    log["person"] = rng.integers(150, size=len(log))
    return log.assign(weight=rng.uniform(0.5, 3.0, size=len(log)))
