"""Numbers about runs: intervals of means, shares, and the price of fairness, by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

import evenhand as eh
from evenhand.metrics import price_of_fairness, prices, shares, summarise


def test_summary_intervals_are_students():
    values = [1.0, 2.0, 4.0, 9.0]
    table = pd.DataFrame({"policy": "a", "share": values})
    row = summarise(table, ["policy"], "share", level=0.9).iloc[0]
    low, high = t.interval(0.9, 3, np.mean(values), np.std(values, ddof=1) / 2)
    np.testing.assert_allclose([row["low"], row["high"]], [low, high])


def test_price_of_fairness_and_shares():
    assert price_of_fairness(5.0, 4.0, 0.3, 0.5) != price_of_fairness(5.0, 4.0, 0.3, 0.5)  # NaN
    assert price_of_fairness(5.0, 4.0, 0.5, 0.3) == pytest.approx(1 / 20)
    with pytest.raises(ValueError, match="outside"):
        shares([0, 7], eh.Groups(["a", "b"]))


def test_a_summary_counts_what_is_there_and_keeps_the_order():
    table = pd.DataFrame({"policy": ["b", "a", "b"], "share": [0.2, 0.5, np.nan]})
    rows = summarise(table, ["policy"], "share")
    assert rows["policy"].tolist() == ["b", "a"]
    assert rows["n"].tolist() == [1, 1]
    assert rows[["sd", "low", "high"]].isna().all(axis=None)  # nothing is known from one value
    with pytest.raises(ValueError, match="level is 1; allowed is a number between 0 and 1"):
        summarise(table, ["policy"], "share", level=1)


def test_shares_beside_parity():
    """Five choices, one of them of the only arm of group F."""
    table = shares([0, 1, 2, 3, 3], eh.Groups(["F", "M", "M", "M"])).set_index("group")
    assert table.loc["F"].tolist() == [1.0, 0.2, 0.25, 0.5]
    assert table.loc["M"].tolist() == [4.0, 0.8, 0.75, 0.5]
    assert shares([], eh.Groups(["F", "M"]))["share"].tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="arms has numbers that are not whole"):
        shares([0.5], eh.Groups(["F", "M"]))


def test_prices_are_paired_and_missing_where_nothing_was_bought():
    # By hand: replication 1 and 2 of three policies.
    runs = _runs({"TopInterval": [(0.2, 1.0), (0.4, 3.0)], "A": [(0.5, 2.0), (0.7, 4.0)]})
    row = prices(runs).iloc[0]
    assert row["policy"] == "A"
    np.testing.assert_allclose([row["share_gained"], row["regret_paid"]], [0.3, 1.0])
    np.testing.assert_allclose([row["share_reach"], row["regret_reach"]], [0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(row["price"], 1.0 / 30.0)
    worse = _runs({"TopInterval": [(0.2, 1.0), (0.4, 3.0)], "A": [(0.1, 2.0), (0.2, 4.0)]})
    assert np.isnan(prices(worse).iloc[0]["price"])
    unsure = _runs({"TopInterval": [(0.2, 1.0), (0.4, 3.0)], "A": [(0.9, 2.0), (0.41, 4.0)]})
    assert np.isnan(prices(unsure).iloc[0]["price"])  # the interval contains zero
    with pytest.raises(ValueError, match="reference is 'B'; the runs have"):
        prices(runs, reference="B")


def _runs(values):
    rows = [
        (policy, number, share, regret)
        for policy, pairs in values.items()
        for number, (share, regret) in enumerate(pairs)
    ]
    return pd.DataFrame(rows, columns=["policy", "replication", "share", "perceived_regret"])
