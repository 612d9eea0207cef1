"""What the target would have earned more than the log had: by hand, pairing, words.

Whether the intervals cover is in test_value_coverage.py.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from bandit_logs import GOOD, LABELS, Bandit
from evenhand.offpolicy import Logged, evaluate


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
