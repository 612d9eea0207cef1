"""PooledGroupFair and the floor in the paper's experiments: what is run, shown and claimed."""

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.experiments._claims import FAILS, HOLDS, PARTLY, MeansByPoint
from evenhand.experiments._pooled_in_paper import (
    FEWER,
    OWN_CLAIMS,
    PROPORTIONAL,
    SWEEPS,
    beside,
    known_share,
    shown,
)
from evenhand.experiments.bundled import paper_experiments


def test_all_seven_sweeps_are_run_in_the_same_worlds():
    paper = paper_experiments()
    own = {experiment.beside: experiment for experiment in beside(list(paper.values()))}
    assert tuple(own) == SWEEPS == tuple(name for name in paper if name != "rate")
    for name, experiment in own.items():
        assert experiment.lines == ("PooledGroupFair", "floor")
        assert experiment.conventions == ("PAPER",) and not experiment.in_paper
        assert experiment.seed == paper[name].seed
        assert experiment.replications == paper[name].replications // FEWER.get(name, 1)
        its_points = {point.x: point for point in paper[name].points(eh.PAPER)}
        points = list(experiment.points(eh.PAPER))
        assert len(points) == len(its_points) // (4 if name in FEWER else 1)
        for mine in points:
            its = its_points[mine.x]
            assert (mine.x, mine.horizon, mine.settings) == (its.x, its.horizon, its.settings)
            assert mine.world.fingerprint() == its.world.fingerprint()


def runs_of(experiment, policies, panels, replications):
    return pd.DataFrame(
        [
            (experiment, reading, panel, policy, i, 8.0)
            for reading in ("AUTHORS_CODE", "PAPER")
            for panel in panels
            for policy in policies
            for i in range(replications)
        ],
        columns=["experiment", "conventions", "panel", "policy", "replication", "x"],
    )


def test_figures_show_the_papers_runs_of_the_same_rounds():
    paper = paper_experiments()["d"]
    own = beside([paper])[0].with_(seeds=2)
    others = runs_of("d", ["TopInterval", "NaiveFair"], ["delta = 0.1", "delta = 0.2"], 4)
    mine = runs_of("d-beyond", ["PooledGroupFair"], [""], 2)
    mine = mine[mine["conventions"] == "PAPER"]
    table = shown(own, pd.concat([others, mine, others.assign(experiment="T")]))
    assert table["policy"].tolist() == [
        name for name in ("TopInterval", "NaiveFair", "PooledGroupFair") for _ in range(2)
    ]
    assert table["replication"].tolist() == [0, 1] * 3
    assert set(table["conventions"]) == {"PAPER"} and set(table["panel"]) == {""}
    assert len(shown(paper, others)) == len(others)  # the reproduction stays as it is


def means(share=0.5, regret=1.0):
    """Runs of PooledGroupFair with this share, or proportional, and fixed ones of others."""
    rows = []
    for experiment in dict.fromkeys(claim.experiment for claim in OWN_CLAIMS):
        for x in (2, 8):
            fair = x / 10 if experiment.startswith("ratio") else 0.5
            rows += [
                (experiment, "GroupFairTopInterval", x, 0.6, 3.0, 3.0),
                (experiment, "PooledGroupFair", x, fair + share - 0.5, regret, regret),
                (experiment, PROPORTIONAL, x, fair + share - 0.5, regret, regret),
                (experiment, "floor", x, fair, np.nan, 0.6),
            ]
    columns = ["experiment", "policy", "x", "share", "perceived_regret", "true_regret"]
    return MeansByPoint(pd.DataFrame(rows, columns=columns))


@pytest.mark.parametrize(
    ("numbers", "fair", "cheap", "near"),
    [
        ({}, HOLDS, HOLDS, HOLDS),
        ({"share": 0.509}, HOLDS, HOLDS, HOLDS),
        ({"share": 0.54, "regret": 1.3}, FAILS, HOLDS, FAILS),
        ({"regret": 3.1}, HOLDS, FAILS, FAILS),
    ],
)
def test_our_own_claims_follow_the_numbers(numbers, fair, cheap, near):
    for claim in OWN_CLAIMS:
        words = claim.says
        expected = fair if "the share is" in words else near if "twice" in words else cheap
        assert claim.check(means(**numbers)).verdict == expected, claim.says


def test_a_claim_about_every_point_can_hold_in_part():
    table = means()
    row = ("T-beyond", "", "PooledGroupFair", 2)
    table._table.loc[row, ["share", "true_regret"]] = 0.52, 3.5
    verdicts = [claim.check(table) for claim in OWN_CLAIMS if claim.experiment == "T-beyond"]
    assert [verdict.verdict for verdict in verdicts] == [PARTLY, PARTLY, HOLDS]
    assert verdicts[0].numbers.startswith("at 1 of 2 points; from 3.50 to 1.00 a round")
    assert "the largest distance is 2.0 points, at T = 2, and 0.0" in verdicts[1].numbers


@pytest.mark.parametrize(("sensitive", "share"), [("F", 0.625), ("M", 0.375)])
def test_the_share_of_perfect_knowledge_need_not_be_a_half(sensitive, share):
    """Minus their group's mean, coefficients are -4 and 4 for F, 0 and 0 for M; contexts 1 or 2.

    F's second arm wins if its context is 2, and otherwise only if both of M have 1: 1/2 + 1/2 1/4.
    """
    people = pd.DataFrame(
        {"g": list("FFMM") * 40, "arm": list("abab") * 40, "x": np.repeat([1.0, 2.0], 80)}
    )
    observed = (people["g"] + people["arm"]).map({"Fa": 5.0, "Fb": 13.0, "Ma": 30.0, "Mb": 30.0})
    people["reward"] = observed * people["x"]
    columns = {"group": "g", "arms": "arm", "reward": "reward", "features": ["x"]}
    world = eh.TableWorld(people, sensitive=sensitive, **columns)
    assert known_share(world) == pytest.approx(share, abs=0.015)  # 4 standard errors
