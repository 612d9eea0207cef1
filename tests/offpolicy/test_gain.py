"""What the target would have earned more than the log had: coverage, pairing, words.

Seeds are fixed: a test passes always or never, and its comment says how often it would fail with
another seed though the library is right.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from bandit_logs import GOOD, LABELS, LEVEL, Bandit, below, draw
from evenhand.bias import Statistics, bias_report
from evenhand.offpolicy import Logged, evaluate

KEYS = [("value", "all"), *((q, g) for q in ("contribution", "within") for g in ("F", "M"))]


def truths(bandit):
    """Target less log, each a sum over the two kinds of rounds."""
    before = Bandit(bandit.log, bandit.log, bandit.mean)
    found = {("value", "all"): bandit.truth()[0] - before.truth()[0]}
    for g, name in enumerate(["F", "M"]):
        for k, quantity in enumerate(["contribution", "within"]):
            found[quantity, name] = bandit.truth(g)[k] - before.truth(g)[k]
    return found


def covered(bandit, n, replications, seed, **choices):
    rng, truth, found = np.random.default_rng(seed), truths(bandit), {}
    for _ in range(replications):
        log, target = bandit.draw(rng, n)
        for (_, name, *key), row in evaluate(log, target, **choices).gain().iterrows():
            good = row["low"] <= truth[tuple(key)] <= row["high"]
            found.setdefault((name, *key), []).append(good)
    return {key: np.mean(good) for key, good in found.items()}


def test_four_rows_by_hand():
    """Weights 1.6, 0.4, 1.6, 0.4; rewards 1, 2, 3, 4. IPS has 2.2, the log 2.5."""
    log = Logged([1, 0, 1, 0], [1.0, 2.0, 3.0, 4.0], [0.5] * 4, ["F", "M"])
    gain = evaluate(log, np.tile([0.2, 0.8], (4, 1))).gain()
    row = gain.loc[("observed", "ips", "value", "all")]
    assert row["estimate"] == pytest.approx(2.2 - 2.5)
    # (w - 1) r in every row: 0.6, -1.2, 1.8, -2.4
    assert row["standard_error"] == pytest.approx(np.std([0.6, -1.2, 1.8, -2.4], ddof=1) / 2.0)
    # within M both have the rows 1 and 3: IPS 6.4 / (4 * 0.8) = 2, the log 4 / 2 = 2
    row = gain.loc[("observed", "ips", "within", "M")]
    influence = [(1.6 - 2 * 0.8) / 0.8, -2.0, (4.8 - 2 * 0.8) / 0.8, -2.0]
    logged = [(1 - 2) / 0.5, 0.0, (3 - 2) / 0.5, 0.0]
    error = np.sqrt(np.sum(np.subtract(influence, logged) ** 2) / 12.0)
    assert row["estimate"] == pytest.approx(0.0, abs=1e-12)
    assert row["standard_error"] == pytest.approx(error)


@pytest.mark.slow
def test_intervals_of_the_gain_cover():
    """A world in closed form. 15 rates, three standard errors each: a false alarm in 50 seeds."""
    rates = covered(GOOD, 1000, 250, seed=21)
    assert sorted(rates) == sorted((name, *key) for name in ("ips", "snips", "dr") for key in KEYS)
    for key, rate in rates.items():
        assert not below(rate, LEVEL, 250), key
        assert rate < 0.99, key


@pytest.mark.slow
def test_bootstrap_intervals_of_the_gain_cover():
    """15 rates: a false alarm once in 50 seeds. A bootstrap with 200 draws is good to a point."""
    rates = covered(GOOD, 200, 100, seed=22, interval="bootstrap", resamples=200)
    for key, rate in rates.items():
        assert not below(rate, LEVEL - 0.01, 100), key


def test_bernstein_intervals_of_the_gain_hold():
    """Rewards of 0 and 1. Proven for any number of rows: not a single miss is expected."""
    rng = np.random.default_rng(23)
    bandit = Bandit(GOOD.log, GOOD.target, mean=[[0.2, 0.5, 0.7, 0.1], [0.5, 0.2, 0.3, 0.9]])
    truth = truths(bandit)
    for _ in range(20):
        kind = (rng.random(2000) < 0.4).astype(int)
        arms = draw(rng, bandit.log[kind])
        rewards = (rng.random(2000) < bandit.mean[kind, arms]).astype(float)
        log = Logged(
            arms, rewards, bandit.log[kind, arms], LABELS, all_propensities=bandit.log[kind]
        )
        how = {"interval": "bernstein", "reward_range": (0, 1)}
        gain = evaluate(log, bandit.target[kind], **how).gain()
        for (_, _, *key), row in gain.iterrows():
            assert row["low"] <= truth[tuple(key)] <= row["high"]
            assert row["high"] - row["low"] < 3.0  # wide, and yet they say something


@pytest.mark.slow
def test_the_gain_in_corrected_reward_covers():
    """A bias learned from the same log: its error is in the interval. 9 rates: once in 80 seeds."""
    rng, psi = np.random.default_rng(24), np.array([-2.0, 1.0])
    bandit = Bandit(GOOD.log, GOOD.target, [[1.0, 2.0, 2.0, 1.0], [3.0, 1.0, 1.0, 3.0]])
    truth, found = truths(bandit), {}
    for _ in range(60):
        log, target = bandit.draw(rng, 400)
        marked = log.rewards + np.where(log.of == 0, log.contexts @ psi, 0.0)
        labels = np.array(["F", "M"])[log.of]
        sums = Statistics.from_rows(log.contexts, marked, labels, [f"a{a}" for a in log.arms])
        bias = bias_report(sums, reference="M", weighting="arms")
        biased = Logged(log.arms, marked, log.propensities, LABELS, log.contexts)
        gain = evaluate(biased, target, bias=bias).gain()
        for kind in ("observed", "corrected"):
            for name in ("ips", "snips", "dr"):
                for key in (("value", "all"), ("within", "F"), ("within", "M")):
                    row = gain.loc[(kind, name, *key)]
                    good = row["low"] <= truth[key] <= row["high"]
                    found.setdefault((kind, name, *key), []).append(good)
    for (kind, *key), good in found.items():
        if kind == "corrected":
            assert not below(np.mean(good), LEVEL, 60), key
    assert np.mean(found["observed", "dr", "value", "all"]) < 0.9  # the bias matters


def test_the_pairing_counts():
    """A target close to the log: the two go up and down together, and their difference does not."""
    rng = np.random.default_rng(25)
    close = Bandit(GOOD.log, 0.9 * GOOD.log + 0.1 * GOOD.target)
    for _ in range(20):
        report = evaluate(*close.draw(rng, 500))
        table = report.overall["standard_error"]["observed"]
        gain = report.gain()["standard_error"]["observed"]
        for name in ("ips", "snips", "dr"):
            apart = np.hypot(table[name], table["logged"])
            assert gain[name, "value", "all"] < (0.75 if name == "dr" else 0.5) * apart, name


def test_the_logging_policy_gains_nothing():
    rng = np.random.default_rng(26)
    log, _ = GOOD.draw(rng, 300)
    report = evaluate(log, GOOD.log[log.contexts[:, 1].astype(int)])
    for name in ("ips", "snips"):
        row = report.gain().loc[("observed", name, "value", "all")]
        assert row[["estimate", "low", "high"]].tolist() == pytest.approx([0, 0, 0], abs=1e-12)
        assert row["evidence"] == "sufficient"
    table, gain = report.overall["estimate"]["observed"], report.gain()["estimate"]["observed"]
    assert gain["dr", "value", "all"] == pytest.approx(table["dr"] - table["logged"])


def test_laws():
    """It is the difference of the two, adds up over groups, and has the units of the reward."""
    rng = np.random.default_rng(27)
    log, target = GOOD.draw(rng, 400)
    report = evaluate(log, target, bias={"F": [-1.0, 2.0], "M": 0.0})
    everything = report.to_frame().set_index(["reward", "estimator", "quantity", "group"])
    gain = report.gain()
    for kind, name, *key in gain.index:
        expected = (
            everything["estimate"][kind, name, *key] - everything["estimate"][kind, "logged", *key]
        )
        assert gain["estimate"][kind, name, *key] == pytest.approx(expected)
    for kind in ("observed", "corrected"):
        for name in ("ips", "snips", "dr"):
            parts = gain["estimate"][kind, name, "contribution"].sum()
            assert parts == pytest.approx(gain["estimate"][kind, name, "value", "all"])
    scaled = Logged(log.arms, 10 * log.rewards, log.propensities, LABELS, log.contexts)
    ends = ["estimate", "low", "high"]
    tenfold = evaluate(scaled, target).gain().loc["observed", ends]
    np.testing.assert_allclose(tenfold, 10 * gain.loc["observed", ends], rtol=1e-9)


def test_weak_overlap_and_what_is_not_known_are_told():
    rng = np.random.default_rng(28)
    log, _ = GOOD.draw(rng, 200)
    few = evaluate(log.rows(np.arange(200) < 60), np.zeros(60, dtype=int)).gain()
    assert few.loc[("observed", "snips", "value", "all"), "evidence"] == "weak overlap"
    row = few.loc[("observed", "ips", "within", "M")]
    assert row["evidence"] == "not known" and np.isnan(row["estimate"])
    assert row["why"] == "the target never chooses it"
    only = log.rows(log.of == 0)
    row = evaluate(only, np.full((only.n, 4), 0.25)).gain().loc[("observed", "dr", "within", "M")]
    assert row["evidence"] == "not known" and row["why"] == "the log has no decision there"


def gain_said(mean, n=2000, seed=29):
    bandit = Bandit(GOOD.log, GOOD.target, mean)
    report = evaluate(*bandit.draw(np.random.default_rng(seed), n))
    row = report.gain().loc[("observed", "dr", "value", "all")]
    return report.to_words().split("\n")[1], row, report


def test_words():
    said, row, report = gain_said(None)
    assert row["low"] > 0.0
    start = f"In observed reward the target would have earned {row['estimate']:.4g} more per round"
    ends = f"{row['low']:.4g} to {row['high']:.4g}"
    assert said.startswith(f"{start} than the log, by DR (95 % interval {ends}). Per decision")
    values = report.overall.loc["observed"]
    first = report.to_words().split("\n")[0]
    for name, of in (("ips", "would have earned "), ("snips", ""), ("dr", "and ")):
        assert f"{of}{values.loc[name, 'estimate']:.4g} by {name.upper()} (" in first
    assert f"; the log earned {values.loc['logged', 'estimate']:.4g} (" in first
    within = report.gain().loc[("observed", "dr", "within", "F")]
    size = f"{abs(within['estimate']):.4g} {'less' if within['estimate'] < 0 else 'more'}"
    assert f"Per decision that goes to group F: {size} (" in said and "; to group M: " in said
    said, row, _ = gain_said(-GOOD.mean)
    assert row["high"] < 0.0
    ends = f"{-row['high']:.4g} to {-row['low']:.4g}"
    assert f"earned {-row['estimate']:.4g} less per round than the log, by DR (95 % int" in said
    assert f"interval {ends})" in said
    said, row, _ = gain_said(np.ones((2, 4)), 1000)
    assert row["low"] < 0.0 < row["high"]
    ends = f"{-row['low']:.4g} less to {row['high']:.4g} more"
    assert f"(95 % interval {ends}; this could be no difference)" in said
    plain = json.loads(report.to_json(), parse_constant=lambda word: pytest.fail(word))
    assert len(plain["gain"]) == len(report.gain()) == 15
    assert isinstance(report.gain(), pd.DataFrame)


def test_rounding_is_no_gain():
    """A target that is the log's earns what the log did, but for the last digits."""
    rng = np.random.default_rng(31)
    chances = rng.dirichlet(np.ones(4), 300) * 0.9 + 0.025
    arms = np.array([rng.choice(4, p=row / row.sum()) for row in chances])
    propensities = chances[np.arange(300), arms] * (1.0 + 1e-15)
    log = Logged(arms, rng.normal(size=300), propensities, LABELS)
    report = evaluate(log, chances / chances.sum(axis=1, keepdims=True), estimators=["snips"])
    value = report.gain().loc[("observed", "snips", "value", "all")]
    assert 0.0 < abs(value["estimate"]) < 1e-13
    said = report.to_words().split("\n")[1]
    start = "In observed reward the target would have earned no more and no less per round than the"
    assert said.startswith(f"{start} log, by SNIPS. Per decision that goes to group F: no more")
    assert "e-1" not in said
    small = evaluate(  # and what is small beside nothing else is no rounding
        Logged(arms, 1e-14 * log.rewards, propensities, LABELS), np.full((300, 4), 0.25)
    )
    assert "no more and no less" not in small.to_words() and "e-1" in small.to_words()
