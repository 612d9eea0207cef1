"""Do the intervals of a bias report hold what they promise, and how often do they cry wolf.

Designs are fixed and noise is normal, so the rates are exact up to Welch's approximation. Seeds are
fixed: a test passes always or never, and its comment says how often it would fail with another seed
though the library is right.
"""

from __future__ import annotations

import numpy as np
import pytest

import evenhand as eh
from evenhand.bias import Statistics, bias_report

pytestmark = pytest.mark.slow  # thousands of data sets

LEVEL = 0.95


def below(rate, nominal, replications, errors=3.0):
    """Whether a rate is below its nominal one by more than chance would have it."""
    return rate < nominal - errors * np.sqrt(nominal * (1.0 - nominal) / replications)


def correlated(rng, rows, d):
    """Contexts with an intercept and neighbours that are correlated by 0.7."""
    x = rng.normal(size=(rows, d))
    for k in range(1, d):
        x[:, k] = 0.7 * x[:, k - 1] + np.sqrt(1.0 - 0.49) * x[:, k]
    x[:, 0] = 1.0
    return x


class Study:
    """Groups of unequal numbers of arms, chosen unequally often, on fixed contexts.

    `sizes` are arms by group; arms are alike unless `spread`; `noise` differs by group.
    """

    def __init__(self, d, sizes, per_arm, spread=0.0, seed=0):
        rng = np.random.default_rng([seed, d, len(sizes)])
        self.names = tuple(f"g{g}" for g in range(len(sizes)))
        self.of = np.repeat(np.arange(len(sizes)), sizes)
        counts = per_arm * rng.integers(1, 4, size=self.of.size)
        self.arms = np.repeat(np.arange(self.of.size), counts)
        self.x = correlated(rng, self.arms.size, d)
        self.bias = rng.normal(size=(len(sizes), d))
        self.beta = spread * rng.normal(size=(self.of.size, d))
        for g in range(len(sizes)):  # equal true averages
            self.beta[self.of == g] -= self.beta[self.of == g].mean(axis=0)
        self.beta += rng.normal(size=d)
        self.sigma = np.linspace(1.0, 2.0, len(sizes))
        self.counts, self.ends = counts.astype(float), np.cumsum(counts)[:-1]
        parts = np.split(self.x, self.ends)
        self.gram = np.array([a.T @ a for a in parts])
        self.means = np.array([a.mean(axis=0) for a in parts])

    def pull_weighted(self):
        """What the fit to all data of a group estimates: bias and its arms' average by pulls."""
        vectors = []
        for g, bias in enumerate(self.bias):
            own = self.of == g
            moment = np.einsum("aij,aj->i", self.gram[own], self.beta[own] + bias)
            vectors.append(np.linalg.solve(self.gram[own].sum(axis=0), moment))
        return np.array(vectors)

    def reports(self, replications, seed, biased=True, **choices):
        rng = np.random.default_rng(seed)
        bias = self.bias if biased else 0.0 * self.bias
        mean = np.sum(self.x * (self.beta + bias[self.of])[self.arms], axis=1)
        sigma = self.sigma[self.of[self.arms]]
        for _ in range(replications):
            y = mean + sigma * rng.standard_normal(mean.size)
            parts = np.split(self.x * y[:, None], self.ends)
            sums = Statistics(
                self.names,
                self.of,
                self.counts,
                self.gram,
                np.array([a.sum(axis=0) for a in parts]),
                np.add.reduceat(y * y, np.append(0, self.ends)),
                self.means,
                arms=tuple(str(arm) for arm in range(self.of.size)),
            )
            yield bias_report(sums, **{"reference": "mean", "level": LEVEL, **choices})


def against_the_mean(vectors):
    return (vectors - vectors.mean(axis=0)).ravel()


def rates(study, truth, replications, seed, **choices):
    """How often intervals cover, one by one, and how often all of them do."""
    alone = together = 0.0
    for number, report in enumerate(study.reports(replications, seed, **choices)):
        rows = report._by_feature
        alone += np.mean((rows.low <= truth) & (truth <= rows.high))
        together += np.all((rows.all_low <= truth) & (truth <= rows.all_high))
        if number < 3:  # an interval excludes zero if and only if its p value says so
            holds = (rows.all_low <= 0.0) & (rows.all_high >= 0.0)
            clear = np.abs(rows.all_p_value - (1.0 - LEVEL)) > 1e-6
            np.testing.assert_array_equal(holds[clear], rows.all_p_value[clear] > 1.0 - LEVEL)
    return alone / replications, together / replications


STUDIES = [
    (2, (2, 3), 6, 600),
    (2, (2, 5, 3), 4, 400),
    (10, (2, 2), 14, 300),
    (10, (3, 2, 4), 12, 200),
    (10, (2, 2, 3, 2, 2, 4), 12, 120),
    (40, (2, 3), 45, 100),
    (40, (2, 2, 3, 2, 2, 2), 45, 60),
]


@pytest.mark.parametrize("weighting", ["pulls", "arms"])
@pytest.mark.parametrize(("d", "sizes", "per_arm", "replications"), STUDIES)
def test_intervals_cover(d, sizes, per_arm, replications, weighting):
    """Arms alike: both weightings estimate the same, and single intervals have just their level.

    The mean over rows varies less than one row does, so three errors of a single row are left by
    chance in fewer than 1 of 230 cases; all rows at once hold more often than the level, so in
    fewer again. 60 replications would see 81 % and 600 would see 91 %.
    """
    study = Study(d, sizes, per_arm)
    truth = against_the_mean(study.bias)
    alone, together = rates(study, truth, replications, 1, weighting=weighting)
    assert not below(alone, LEVEL, replications)
    assert not below(1.0 - alone, 1.0 - LEVEL, replications)  # nor wider than need be
    assert not below(together, LEVEL, replications)


@pytest.mark.parametrize(("d", "sizes", "per_arm", "replications"), STUDIES[1::2])
def test_no_false_alarms_without_bias(d, sizes, per_arm, replications):
    """Any interval at all excludes zero in at most 5 % of reports: 1 of 230 by chance."""
    study = Study(d, sizes, per_arm, seed=1)
    alarms = sum(
        bool((report._by_feature.all_p_value < 1.0 - LEVEL).any())
        for report in study.reports(replications, 2, biased=False)
    )
    assert not below(1.0 - alarms / replications, LEVEL, replications)


@pytest.mark.parametrize("noise", [None, 1.5])
def test_a_named_reference_and_known_noise(noise):
    """1 of 390 by chance, as above."""
    study = Study(3, (2, 2, 3), 6)
    if noise is not None:
        study.sigma[:] = noise
    truth = (study.bias - study.bias[1]).ravel()
    alone, together = rates(study, truth, 300, 3, reference="g1", noise=noise)
    assert not below((3.0 * alone - 1.0) / 2.0, LEVEL, 300)  # the reference's rows always cover
    assert not below(together, LEVEL, 300)


def test_few_degrees_of_freedom():
    """Two groups with 3 and 9 residuals: Welch's degrees keep the level. 1 of 430 by chance."""
    rng = np.random.default_rng(4)
    x = np.column_stack([np.ones(16), rng.normal(size=16)])
    hits = 0.0
    for _ in range(1000):
        y = x @ [1.0, 2.0] + np.repeat([1.0, 3.0], [5, 11]) * rng.standard_normal(16)
        rows = bias_report(Statistics.from_rows(x, y, ["F"] * 5 + ["M"] * 11), "M")._by_feature
        hits += np.mean((rows.low[:2] <= 0.0) & (rows.high[:2] >= 0.0))
    assert not below(hits / 1000, LEVEL, 1000)


def test_totals_and_candidates_cover():
    """At the average contexts, and at contexts that were never seen. 1 of 390 by chance."""
    study = Study(4, (2, 3, 2), 8)
    truth = study.bias - study.bias.mean(axis=0)
    places = np.random.default_rng(5).normal(size=(3, 4))
    at = np.sum(places * truth, axis=1)
    own = hits = 0.0
    for report in study.reports(300, 6):
        totals = report.totals()[:3]
        exact = np.sum(report.average * truth, axis=1)
        own += np.mean((totals["low"] <= exact) & (exact <= totals["high"]))
        table = report.at(places, list(study.names))
        hits += np.mean((table["low"] <= at) & (at <= table["high"]))
    assert not below(own / 300, LEVEL, 300)
    assert not below(hits / 300, LEVEL, 300)


def test_the_largest_difference_covers_though_it_was_picked():
    """Six groups without bias: the pair that is furthest apart is still covered. 1 of 390."""
    study = Study(2, (2, 2, 2, 2, 2, 2), 5)
    hits = ratios = 0
    study.beta[:, 0] += 10.0  # far from zero, so that a ratio makes sense
    for report in study.reports(300, 7, biased=False):
        gap, ratio = report.difference(), report.ratio()
        hits += gap.low <= 0.0 <= gap.high
        ratios += ratio.low <= 1.0 <= ratio.high
    assert not below(hits / 300, LEVEL, 300)
    assert not below(ratios / 300, LEVEL, 300)


# Arms that differ -------------------------------------------------------------------------------


def test_arms_that_differ():
    """By arms the bias is covered; by pulls what pulls weigh is, and the bias is not.

    The first two fail in 1 of 700 cases by chance. The noise of a group's own fit holds the
    differences of its arms, so intervals by pulls are wider than need be.
    """
    study = Study(3, (3, 2), 200, spread=2.0)
    bias, leaning = against_the_mean(study.bias), against_the_mean(study.pull_weighted())
    balanced, all_balanced = rates(study, bias, 400, 8, weighting="arms")
    assert not below(balanced, LEVEL, 400)
    assert not below(all_balanced, LEVEL, 400)
    by_pulls, _ = rates(study, leaning, 400, 8, weighting="pulls")
    assert not below(by_pulls, LEVEL, 400)
    _, wrong = rates(study, bias, 100, 8, weighting="pulls")
    assert wrong < 0.2


def test_the_report_notices_when_the_weightings_disagree():
    """Alarms at the level where arms are alike (1 of 700 by chance), always where they differ."""

    def alarms(spread, replications):
        study = Study(3, (3, 2), 20, spread=spread)
        flags = [any(report._disagrees) for report in study.reports(replications, 9)]
        return np.mean(flags)

    assert not below(1.0 - alarms(0.0, 400), LEVEL, 400)
    assert alarms(2.0, 50) == 1.0


# Contexts and pulls that are not fixed beforehand -----------------------------------------------


def test_data_of_a_bandit():
    """A bandit's pulls depend on its rewards, so nothing here is exact; by arms it still covers.

    Measured with 600 runs of this and three more policies: 93 to 96 % one by one. By pulls it is
    0 %, because the arm of 8 is chosen far more often than the arm of 2. The first would fail in
    1 of 700 cases by chance if the rate were 93 %.
    """
    groups, runs, rounds = eh.Groups(["F", "F", "M", "M"], sensitive="F"), 60, 400
    means = np.array([[0.0, 0.0], [6.0, 6.0], [5.0, 5.0], [5.0, 5.0]])  # F lowered by 2
    arms = pulls = 0.0
    for run in range(runs):
        rng = np.random.default_rng([10, run])
        policy = eh.TopInterval(groups, 2, horizon=rounds, seed=run)
        contexts, noise = rng.random((rounds, 4, 2)), rng.standard_normal(rounds)
        for t in range(rounds):
            decision = policy.select(contexts[t])
            policy.update(decision, decision.context @ means[decision.arm] + noise[t])
        for weighting in ("pulls", "arms"):
            rows = policy.bias("M", weighting=weighting)._by_feature
            hit = np.mean((rows.low[:2] <= -2.0) & (rows.high[:2] >= -2.0))
            arms, pulls = arms + hit * (weighting == "arms"), pulls + hit * (weighting == "pulls")
    assert not below(arms / runs, 0.93, runs)
    assert pulls / runs < 0.2
