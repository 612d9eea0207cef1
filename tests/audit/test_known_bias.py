"""The audit of logs whose bias is known, and of cases where nothing can be known."""

from __future__ import annotations

import numpy as np
import pytest

import evenhand as eh
from audit_logs import made_log
from bare_audits import bias_of

LEVEL = 0.95


@pytest.mark.slow
@pytest.mark.parametrize(("d", "count", "rounds"), [(2, 2, 100), (10, 6, 30), (40, 3, 10)])
def test_intervals_cover_the_bias_that_was_put_in(d, count, rounds):
    """Single intervals at their rate, all of a report at once at least at theirs.

    Rows of a report depend on each other, so what is counted is reports and not rows. The bound of
    single intervals is 4 standard errors from the rate: a false alarm in 15,000. Too few reports
    that hold at once come by chance once in 27,000, 1,700 and 970 sets of seeds; a rate of 80 %
    would be noticed in 87 %, 39 % and 12 % of sets.
    """
    groups = tuple("ABCDEF"[:count])
    rng = np.random.default_rng(d)
    bias = rng.normal(size=(count, d + 1)) * (rng.random((count, d + 1)) < 0.3)
    bias[-1] = 0.0
    single, whole = [], []
    for seed in range(rounds):
        log = made_log(1000 + seed, n=150 * count + 20 * d, d=d, groups=groups, bias=bias)
        log["arm"] = log["group"] + rng.choice(["1", "2", "3"], size=len(log), p=[0.6, 0.3, 0.1])
        table = bias_of(log, [f"x{k}" for k in range(d)], groups[-1]).to_frame()
        table = table[table["group"] != groups[-1]]
        truth = bias[:-1].ravel()
        single.append(np.mean((table["low"] <= truth) & (truth <= table["high"])))
        inside = (table["simultaneous_low"] <= truth) & (truth <= table["simultaneous_high"])
        whole.append(bool(inside.all()))
    error = np.std(single) / np.sqrt(rounds)
    assert abs(np.mean(single) - LEVEL) < 4.0 * error
    assert np.sum(whole) >= {100: 85, 30: 24, 10: 7}[rounds]


@pytest.mark.slow
def test_without_bias_false_alarms_stay_below_the_level():
    """200 logs; with 5 % alarms, more than 23 of them come once in 13,000 sets of seeds, and 15 %
    would be noticed in 90 % of sets."""
    alarms = 0
    for seed in range(200):
        log = made_log(seed, n=300, d=5, groups=("A", "B", "C"))
        table = bias_of(log, [f"x{k}" for k in range(5)], "C").to_frame()
        alarms += bool((table["simultaneous_p_value"] < 1.0 - LEVEL).any())
    assert alarms <= 23


@pytest.mark.slow
def test_clusters_cover_where_plain_errors_do_not():
    """Persons with 8 rows and a noise of their own that is as large as a row's: 100 logs.

    With clusters, more than 15 misses come once in 27,000 sets of seeds. Without, intervals miss in
    about 35 %, and fewer than 20 misses come once in 2,900.
    """
    misses = {"person": 0, None: 0}
    for seed in range(100):
        rng = np.random.default_rng(seed)
        persons = 200
        of = rng.integers(2, size=persons)
        level = rng.normal(size=persons)
        trait = rng.normal(size=persons)
        person = np.repeat(np.arange(persons), 8)
        log = made_log(seed, n=len(person), d=1)
        log["group"] = np.array(["F", "M"], dtype=object)[of[person]]
        log["x0"] = trait[person]
        log["reward"] = log["x0"] + level[person] + rng.normal(size=len(person))
        log["person"] = person
        for cluster in misses:
            table = bias_of(log, ["x0"], "M", cluster).to_frame()
            row = table.set_index(["group", "feature"]).loc[("F", "x0")]
            misses[cluster] += not row["low"] <= 0.0 <= row["high"]
    assert misses["person"] <= 15
    assert misses[None] >= 20


def test_collinear_features_have_no_number_and_the_others_do():
    log = made_log(41, shift=30.0)
    log["double"] = 2.0 * log["x1"] + 7.0
    audit = eh.audit(log, reference="M")
    table = audit.bias.to_frame().set_index(["group", "feature"])
    plain = eh.audit(log.drop(columns="double"), reference="M").bias
    without = plain.to_frame().set_index(["group", "feature"])
    assert table.loc[("F", "x1"), "why"].startswith("not identified: collinear with")
    assert "double" in table.loc[("F", "x1"), "why"]
    assert np.isnan(table.loc[("F", "double"), "estimate"])
    for name in ("x0", "x2"):
        assert table.loc[("F", name), "estimate"] == pytest.approx(
            without.loc[("F", name), "estimate"], rel=1e-7
        )
    assert audit.bias.by_group.loc["F", "estimate"] == pytest.approx(
        plain.by_group.loc["F", "estimate"], rel=1e-7
    )
    assert "collinear" in audit.to_words()


def test_a_feature_that_is_constant_in_a_group_is_not_known():
    log = made_log(42)
    log.loc[log["group"] == "F", "x1"] = 5.0
    table = eh.audit(log, reference="M").bias.to_frame().set_index(["group", "feature"])
    assert table.loc[("F", "x1"), "why"] == "not identified: collinear with intercept in group F"
    assert np.isnan(table.loc[("F", "intercept"), "estimate"])
    assert np.isfinite(table.loc[("F", "x0"), "estimate"])
    log.loc[log["group"] == "F", "x1"] = 0.0
    table = eh.audit(log, reference="M").bias.to_frame().set_index(["group", "feature"])
    assert table.loc[("F", "x1"), "why"] == "not identified: x1 is always 0 in group F"
    assert np.isfinite(table.loc[("F", "intercept"), "estimate"])


def test_a_group_with_too_few_rows_is_said_to_be_unknown():
    log = made_log(43)
    log.loc[:2, "group"] = "X"
    audit = eh.audit(log, reference="M")
    row = audit.bias.by_group.loc["X"]
    assert np.isnan(row["estimate"]) and "too few observations" in row["why"]
    assert "X" in audit.to_words()


def test_what_no_log_can_show_is_said():
    audit = eh.audit(made_log(44))
    limits = " ".join(audit.limits)
    for words in ("Equal averages.", "Selection.", "Straight lines.", "Independence."):
        assert words in limits
    assert "this log cannot show" in limits and "equally good on average" in audit.to_words()


def test_true_averages_that_differ_are_counted_as_bias_and_the_report_says_so():
    """M is truly 1 better: 20,000 rows, and the interval has to hold -1 (chance of not: 5 %)."""
    log = made_log(45, n=20_000, d=2)
    log["true_reward"] = log["reward"]  # no bias at all
    log.loc[log["group"] == "M", ["reward", "true_reward"]] += 1.0
    audit = eh.audit(log, reference="M")
    row = audit.bias.by_group.loc["F"]
    assert row["low"] < -1.0 < row["high"]
    assert "bias and true difference together" in audit.to_words()
    # The metrics have both rewards, which is where the difference can be seen to be a true one.
    gaps = audit.metrics.difference()["estimate"]
    assert gaps["mean_true_reward"] == pytest.approx(gaps["mean_reward"], rel=1e-9)


def test_clusters_that_cross_groups_are_told():
    log = made_log(46)
    log["judge"] = np.arange(len(log)) % 40
    assert (
        "40 clusters have rows in more than one group" in eh.audit(log, cluster="judge").to_words()
    )


def test_a_few_rows_with_all_the_weight_are_told():
    log = made_log(47)
    log["w"] = 1.0
    log.loc[:3, "w"] = 1e5
    assert "carry most of the weight" in eh.audit(log, weight="w").to_words()
