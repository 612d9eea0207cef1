"""The paper's claims, checked against made-up numbers."""

import numpy as np
import pandas as pd
import pytest

from evenhand.experiments._claims import CLAIMS, FAILS, HOLDS, PARTLY, REAL_CLAIMS, MeansByPoint
from evenhand.experiments.bundled import paper_experiments


def made_up(change=lambda runs: runs):
    """Made-up runs in which every claim holds."""
    rows = []
    for name, experiment in paper_experiments().items():
        values = experiment.sweep.values
        for i, x in enumerate(values):
            end = i / (len(values) - 1)
            for policy in experiment.policies:
                share = {"GroupFairTopInterval": 0.5, "NaiveFair": 0.5}.get(policy, 0.4 - 0.2 * end)
                if name == "ratio" and policy == "GroupFairTopInterval":
                    share = x / 10
                if name == "arms" and policy == "IntervalChaining":
                    share = 0.2 + 0.2 * end
                true = {"GroupFairTopInterval": 3.0, "NaiveFair": 9.0}.get(policy, 4 + 3 * end)
                perceived = {"TopInterval": 3.0, "NaiveFair": 9.0}.get(policy, 5.0)
                if policy == "IntervalChaining":
                    perceived = 4.0
                if name == "arms" and policy == "IntervalChaining":
                    true, perceived = 5 + 20 * end, 5 + 20 * end
                if name == "rate":
                    true = 5 * x ** (-0.4)
                rows.append((name, policy, x, share, perceived, true))
    columns = ["experiment", "policy", "x", "share", "perceived_regret", "true_regret"]
    return MeansByPoint(change(pd.DataFrame(rows, columns=columns)))


def test_claims_hold_for_numbers_that_say_so():
    verdicts = {claim.says: claim.check(made_up()).verdict for claim in CLAIMS}
    assert set(verdicts.values()) == {HOLDS}, verdicts


def test_claims_fail_for_numbers_that_deny_them():
    def deny(runs):
        # All policies alike, with shares far from fair and regret that grows with T.
        return runs.assign(
            share=0.9,
            perceived_regret=3.0,
            true_regret=np.where(runs["experiment"] == "rate", 5.0, 3.0 + (runs["x"] % 7)),
        )

    verdicts = {claim.says: claim.check(made_up(deny)).verdict for claim in CLAIMS}
    failed = [says for says, verdict in verdicts.items() if verdict == FAILS]
    assert len(failed) >= len(CLAIMS) - 2, verdicts
    assert set(verdicts.values()) <= {FAILS, PARTLY, HOLDS}


def real(share_of_fair, regret_of_fair, regret_of_naive):
    """Runs on real data, in two panels: true regret is missing in all of them."""
    rows = [
        (name, panel, policy, x, share, regret, np.nan)
        for name in ("family-income", "compas")
        for panel, share_here in zip(("delta = 0.1", "delta = 0.2"), share_of_fair, strict=True)
        for x in (20, 400)
        for policy, share, regret in (
            ("TopInterval", 0.3, 100.0),
            ("GroupFairTopInterval", share_here if x == 400 else 0.7, regret_of_fair),
            ("NaiveFair", 0.5, regret_of_naive),
        )
    ]
    names = ["experiment", "panel", "policy", "x", "share", "perceived_regret", "true_regret"]
    return MeansByPoint(pd.DataFrame(rows, columns=names))


@pytest.mark.parametrize(
    ("numbers", "verdicts"),
    [
        (((0.50, 0.51), 110.0, 130.0), (HOLDS, HOLDS, HOLDS)),  # 20 points of share for 10 %
        (((0.50, 0.60), 110.0, 130.0), (PARTLY, HOLDS, HOLDS)),
        (((0.60, 0.60), 140.0, 150.0), (FAILS, FAILS, FAILS)),  # 30 points for 40 %
        (((0.20, 0.20), 90.0, 90.0), (FAILS, FAILS, FAILS)),  # no share gained, and no gap
    ],
)
def test_claims_about_real_data(numbers, verdicts):
    means = real(*numbers)
    for name in ("family-income", "compas"):
        of_name = [claim for claim in REAL_CLAIMS if claim.experiment == name]
        assert tuple(claim.check(means).verdict for claim in of_name) == verdicts, name


def test_every_claim_is_about_a_bundled_experiment():
    from evenhand.experiments.bundled import names

    assert {claim.experiment for claim in (*CLAIMS, *REAL_CLAIMS)} <= set(names())
