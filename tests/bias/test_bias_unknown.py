"""Where the bias report must not know, and says so; and mistakes of its caller."""

from __future__ import annotations

import numpy as np
import pytest

import evenhand as eh
from bias_rows import NUMBERS, frame, rows_of, statistics
from evenhand.bias import Statistics, bias_report


def not_known(report, group, feature):
    row = frame(report, *NUMBERS, "simultaneous_low", "contribution", "why").loc[(group, feature)]
    assert row.drop("why").isna().all()
    assert row["why"].startswith("not identified: ")
    return row["why"].removeprefix("not identified: ")


def test_collinear_features_are_named_and_the_others_known():
    """x3 = x1 + x2 with x1 the intercept; x4 is on its own, and so is every average context."""
    x, _, groups, arms = rows_of(18)
    x = np.column_stack([x[:, :2], x[:, 0] + x[:, 1], x[:, 2]])
    y = x @ [1.0, 2.0, 0.0, 3.0] + np.random.default_rng(1).normal(size=len(x))
    report = bias_report(statistics(x, y, groups, arms))
    assert not_known(report, "F", "x1") == "collinear with x2, x3 in group F"
    assert not_known(report, "F", "x2") == "collinear with x1, x3 in group F"
    assert not_known(report, "F", "x3") == "collinear with x1, x2 in group F"
    without = bias_report(statistics(np.delete(x, 2, axis=1), y, groups, arms))
    for name in report.groups:
        kept = frame(report, *NUMBERS[:3]).loc[(name, "x4")]
        alone = frame(without, *NUMBERS[:3]).loc[(name, "x3")]
        assert kept.tolist() == pytest.approx(alone.tolist(), rel=1e-6)
    totals = report.totals()["estimate"].to_numpy()
    assert totals == pytest.approx(without.totals()["estimate"].to_numpy(), rel=1e-6)
    assert report.warnings[0].startswith("In all groups x1, x2, x3 are collinear")
    inside, outside = report.at([[1.0, 2.0, 3.0, 1.0], [1.0, 2.0, 0.0, 1.0]], "F").to_dict(
        "records"
    )
    assert np.isfinite(inside["estimate"]) and inside["why"] == ""
    assert np.isnan(outside["estimate"])
    assert "x1, x2, x3 are collinear in group F" in outside["why"]


def test_a_constant_feature_beside_an_intercept():
    x, y, groups, _ = rows_of(19)
    x = np.column_stack([x, np.full(len(x), 7.0)])
    report = bias_report(statistics(x, y, groups), feature_names=["one", "a", "b", "seven"])
    assert not_known(report, "M", "seven") == "collinear with one in group M"
    assert not_known(report, "M", "one") == "collinear with seven in group M"
    assert frame(report, "estimate").loc[("M", "a")].notna().all()


def test_two_sets_of_collinear_features_are_kept_apart():
    x, y, groups, _ = rows_of(20, d=4)
    x = np.column_stack([x, 3.0 * x[:, 1], x[:, 2] - x[:, 3]])
    report = bias_report(statistics(x, y, groups))
    assert not_known(report, "F", "x2") == "collinear with x5 in group F"
    assert not_known(report, "F", "x3") == "collinear with x4, x6 in group F"
    assert len(report.warnings) == 2


def test_collinear_in_one_group_only():
    """Nobody in F varies in x3: the mean of the groups needs it, a comparison of M and X not."""
    x, y, groups, _ = rows_of(21)
    x[groups == "F", 2] = 0.0
    sums = statistics(x, y, groups)
    assert not_known(bias_report(sums), "F", "x3") == "x3 is always 0 in group F"
    assert not_known(bias_report(sums), "M", "x3") == "x3 is always 0 in group F"
    known = frame(bias_report(sums, reference="X"), "estimate", "why")
    assert known.loc[("M", "x3"), "why"] == ""
    assert np.isnan(known.loc[("F", "x3"), "estimate"])
    assert bias_report(sums).warnings == (
        "In group F x3 is always 0: the bias on it is not identified.",
    )


def test_a_group_that_was_never_chosen():
    policy = eh.UniformRandom(["F", "F", "M", "M", "X", "X"], n_features=1, seed=1)
    policy.absorb([0, 1, 0, 1, 2, 3, 2, 3], np.ones((8, 1)), [1, 2, 2, 3, 5, 6, 6, 7])
    report = policy.bias()
    assert not_known(report, "X", "x1") == "group X was never chosen"
    assert frame(report, "estimate").loc["F"].iloc[0, 0] == pytest.approx(-2.0)
    assert report.warnings == (
        "Group X was never chosen: the bias of group X is not identified, and it is left out of "
        "the mean that the others are compared with.",
    )
    totals = report.totals().set_index(["group", "context"])["why"]
    assert (
        totals["X", "own"] == totals["X", "overall"] == "not identified: group X was never chosen"
    )
    assert totals["F", "own"] == ""
    against = policy.bias(reference="X")
    assert not_known(against, "F", "x1") == "group X was never chosen, and the reference needs it"
    assert against.difference().why == "without group X"
    nothing = eh.UniformRandom(["F", "F", "M", "M"], n_features=2).bias(reference="mean")
    assert nothing.to_frame()["estimate"].isna().all()
    assert nothing.to_words().startswith("The bias of no group is identified.")
    assert "fewer than two groups" in nothing.difference([1.0, 1.0]).why


def test_fewer_observations_than_features():
    x, y, groups, _ = rows_of(22, n=60, d=10)
    keep = np.flatnonzero((groups != "F") | (np.cumsum(groups == "F") <= 4))
    report = bias_report(statistics(x[keep], y[keep], groups[keep]))
    reason = "group F has too few observations: 4 observations of 10 features"
    assert not_known(report, "F", "x1") == reason
    assert frame(report, "estimate").loc["M"].notna().all(axis=None)


def test_as_many_observations_as_features_leave_no_noise_to_see():
    x, y, groups, _ = rows_of(23, n=200)
    keep = np.flatnonzero((groups != "F") | (np.cumsum(groups == "F") <= 3))
    sums = statistics(x[keep], y[keep], groups[keep])
    report = bias_report(sums)
    assert (
        not_known(report, "F", "x1")
        == "group F has too few observations to estimate its noise as well"
    )
    known = bias_report(sums, noise=1.0)
    assert frame(known, "standard_error").loc["F"].notna().all(axis=None)
    given_one = bias_report(sums, covariances={"F": np.eye(3)})
    assert frame(given_one, "standard_error").loc["F"].notna().all(axis=None)


def test_a_group_of_one_arm():
    x, y, groups, arms = rows_of(24, labels=("F", "M", "M", "X", "X"))
    report = bias_report(statistics(x, y, groups, arms))
    reason = "group F has a single arm, whose worth cannot be told apart from bias"
    assert not_known(report, "F", "x1") == reason
    # The others are compared with each other.
    inside = groups != "F"
    rest = statistics(x[inside], y[inside], groups[inside], arms[inside])
    alone = bias_report(rest, reference="mean")
    for name in "MX":
        ours = frame(report, "estimate").loc[name, "estimate"]
        assert ours.tolist() == pytest.approx(
            frame(alone, "estimate").loc[name, "estimate"].tolist()
        )
    # Where rows are not arms, nobody says that there is only one.
    assert bias_report(statistics(x, y, groups)).to_frame()["estimate"].notna().all()


def test_one_group_has_nothing_to_be_compared_with():
    x, y, *_ = rows_of(25)
    report = bias_report(statistics(x, y, ["all"] * len(y)))
    assert not_known(report, "all", "x1") == "no other group to compare with"


def test_balancing_needs_every_arm():
    x, y, groups, arms = rows_of(26, labels=("F", "F", "M", "M"))
    keep = np.flatnonzero((arms != 1) | (np.cumsum(arms == 1) <= 2))
    sums = statistics(x[keep], y[keep], groups[keep], arms[keep])
    reason = "arm 1 of group F has too few observations: 2 observations of 3 features"
    assert not_known(bias_report(sums, weighting="arms"), "F", "x1") == reason
    pulls = bias_report(sums)
    assert pulls.weighting == "pulls"
    assert pulls.warnings[0].startswith(
        f"Arms count by how often they were chosen, because {reason}"
    )
    assert pulls.to_frame()["estimate"].notna().all()
    assert pulls.to_frame()["disagrees"].isna().all()
    policy = eh.UniformRandom(["F", "F", "M", "M"], n_features=1, seed=1)
    policy.absorb([0, 0, 2, 2, 3, 3], np.ones((6, 1)), [1, 2, 2, 3, 5, 6])
    assert (
        not_known(policy.bias(weighting="arms"), "F", "x1") == "arm 1 of group F was never chosen"
    )


def test_collinear_in_one_arm():
    x, y, groups, arms = rows_of(27, labels=("F", "F", "M", "M"))
    x[arms == 0, 2] = 2.0 * x[arms == 0, 1]
    report = bias_report(statistics(x, y, groups, arms), weighting="arms")
    assert not_known(report, "F", "x2") == "collinear with x3 in arm 0 of group F"
    auto = bias_report(statistics(x, y, groups, arms))
    assert auto.weighting == "pulls" and auto.to_frame()["estimate"].notna().all()
    assert any(
        "because arm 0 of group F has features that vary in" in warning for warning in auto.warnings
    )


def test_scales_are_not_collinearity():
    """Features of 1e-8 and 1e8 with an intercept, and a year: all of them are known."""
    x, y, groups, _ = rows_of(28, d=4)
    scales = np.array([1.0, 1e-8, 1e8, 1.0])
    x[:, 3] += 2015.0
    plain = bias_report(statistics(x, y, groups)).to_frame()
    scaled = bias_report(statistics(x * scales, y, groups)).to_frame()
    assert plain["estimate"].notna().all()
    expected = plain["estimate"] / np.tile(scales, 3)
    assert scaled["estimate"].to_numpy() == pytest.approx(expected.to_numpy(), rel=1e-5)


def test_rewards_without_any_noise_are_not_taken_for_certainty():
    """What is left over is rounding; it must not become a discovery."""
    x, _, groups, _ = rows_of(29)
    y = x @ [1e3, 2e3, 3e3]
    report = bias_report(statistics(x, y, groups))
    assert (report.to_frame()["simultaneous_p_value"] > 0.05).all()


def test_a_huge_ridge_costs_digits_and_the_report_knows():
    x, y, _, arms = rows_of(30, labels=("F", "F", "M", "M"))
    policy = eh.TopInterval(["F", "F", "M", "M"], 3, ridge=1e14, seed=1)
    policy.absorb(arms, x, y)
    report = policy.bias(reference="M")
    assert frame(report, "estimate").loc["F"].isna().all(axis=None)
    assert any("after a large ridge" in warning for warning in report.warnings)
    assert not any("ridge" in warning for warning in policy.clone(ridge=1.0).bias().warnings)


def test_groups_that_hardly_overlap():
    rng = np.random.default_rng(31)
    groups = np.repeat(["F", "M"], 200)
    age = rng.normal(size=400) + np.repeat([3.0, 0.0], 200)
    x = np.column_stack([np.ones(400), age, rng.normal(size=400)])
    report = bias_report(statistics(x, age + rng.normal(size=400), groups), "M")
    why = frame(report, "why")["why"]
    pooled = np.sqrt((age[:200].var() + age[200:].var()) / 2.0)
    apart = (age[:200].mean() - age[200:].mean()) / pooled
    assert why["F", "x2"] == (
        f"weak overlap: on average {apart:.1f} standard deviations more than in group M"
    )
    assert why["F", "x1"] == why["F", "x3"] == ""
    assert report.totals()["why"][0] == "weak overlap in x2"
    assert "rests on the linear model" in report.warnings[0]
    assert report.to_frame()["estimate"].notna().all()


# Mistakes of the caller ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reference": "Z"}, "reference is 'Z'; allowed is one of"),
        ({"level": 95}, "level is 95; allowed is a number between 0 and 1"),
        ({"weighting": "rows"}, "weighting is 'rows'; allowed is one of auto, pulls, arms"),
        ({"noise": 0.0}, "noise is 0.0; allowed is a finite number above 0"),
        ({"feature_names": ["a", "b"]}, "allowed are 3 different names"),
        ({"feature_names": ["a", "a", "b"]}, "allowed are 3 different names"),
        ({"feature_names": "abc"}, "feature_names is 'abc'; allowed are 3"),
        ({"units": {"income": 10}}, "units has 'income', which is not a feature; allowed are x1"),
        ({"units": {"x1": -1}}, "units of x1 is -1; allowed is"),
        ({"average": [1.0, 2.0]}, r"average has shape \(2,\); allowed is \(3,\), or \(3, 3\)"),
        ({"average": [1.0, np.nan, 0.0]}, "average has a NaN"),
        ({"covariances": {"Z": np.eye(3)}}, "allowed are groups: "),
        ({"covariances": {"F": np.eye(2)}}, r"covariances of group F has shape \(2, 2\)"),
        ({"covariances": {"F": -np.eye(3)}}, "covariances of group F is not a covariance matrix"),
        (
            {"covariances": {"F": np.eye(3)}, "between": {("F", "F"): np.eye(3)}},
            "allowed are pairs of different groups",
        ),
        ({"freedom": {"F": 3.0}}, "freedom is given for F; allowed are groups"),
        ({"covariances": {"F": np.eye(3)}, "freedom": {"F": 0.0}}, "freedom of group F is 0.0"),
    ],
)
def test_bad_questions(changes, words):
    with pytest.raises(ValueError, match=words):
        bias_report(statistics(*rows_of()), **changes)


def test_bad_contexts_and_groups_of_at():
    report = bias_report(statistics(*rows_of()))
    with pytest.raises(ValueError, match=r"contexts has shape \(1, 2\); allowed is \(rows, 3\)"):
        report.at([1.0, 2.0], "F")
    with pytest.raises(ValueError, match="groups has 'Z'; allowed is one for each of the 1"):
        report.at([1.0, 2.0, 3.0], "Z")
    with pytest.raises(ValueError, match="groups has 1 names; allowed is one for each of the 2"):
        report.at(np.ones((2, 3)), ["F"])
    with pytest.raises(ValueError, match="contexts has a NaN"):
        report.at([1.0, np.nan, 3.0], "F")
    assert len(report.at(np.empty((0, 3)), "F")) == 0


def test_arms_are_needed_to_balance_over_them():
    x, y, groups, _ = rows_of()
    with pytest.raises(ValueError, match="weighting is 'arms' without arms"):
        bias_report(statistics(x, y, groups), weighting="arms")
    assert bias_report(statistics(x, y, groups)).weightings()["why"].str.contains("arms").all()
    with pytest.raises(ValueError, match="statistics is a str; allowed are Statistics"):
        bias_report("F")


GOOD = {
    "groups": ("F", "M"),
    "of": [0, 1],
    "n": [2.0, 2.0],
    "gram": [[[2.0]], [[2.0]]],
    "moment": [[1.0], [1.0]],
    "square": [1.0, 1.0],
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"groups": ("F", "F")}, "groups is .* allowed are different names"),
        ({"of": [0, 2]}, "of has numbers outside 0 to 1"),
        ({"of": [0.5, 1.0]}, "of is .* allowed is the number of a group"),
        ({"n": [2.0]}, r"n has shape \(1,\); allowed is \(2,\)"),
        ({"n": [2.0, -1.0]}, "n has -1; allowed are numbers of at least 0"),
        ({"gram": [[[2.0]], [[np.inf]]]}, "gram has a NaN or an infinity"),
        ({"moment": [["a"], [1.0]]}, "moment is not a table of numbers"),
        ({"means": [[1.0]]}, r"means has shape \(1, 1\); allowed is \(2, 1\)"),
        ({"arms": ("a", "a")}, "arms has 2 names; allowed are 2 different names"),
    ],
)
def test_bad_statistics(changes, words):
    Statistics(**GOOD)
    with pytest.raises(ValueError, match=words):
        Statistics(**{**GOOD, **changes})


def test_statistics_of_others_are_not_added():
    x, y, groups, arms = rows_of()
    with pytest.raises(ValueError, match="other groups, arms or features cannot be added"):
        statistics(x, y, groups) + statistics(x, y, groups, arms)
    skewed = np.array([[1.0, 2.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="gram is not symmetric"):
        Statistics(("F",), [0], [1.0], [skewed], [[1.0, 1.0]], [1.0])


def test_bad_rows():
    with pytest.raises(ValueError, match="arms has '0' in more than one group"):
        Statistics.from_rows(np.ones((2, 1)), [1, 2], ["F", "M"], [0, 0])
    with pytest.raises(ValueError, match="groups has 1 labels; allowed are 2"):
        Statistics.from_rows(np.ones((2, 1)), [1, 2], ["F"])
    with pytest.raises(ValueError, match="groups has no label in row 1"):
        Statistics.from_rows(np.ones((2, 1)), [1, 2], ["F", None])
    with pytest.raises(
        ValueError, match=r"contexts has shape \(2,\); allowed is \(rows, features\)"
    ):
        Statistics.from_rows([1.0, 2.0], [1, 2], ["F", "M"])
    with pytest.raises(ValueError, match="rewards has shape"):
        Statistics.from_rows(np.ones((2, 1)), [1], ["F", "M"])


def test_groups_apart_in_a_combination_of_features():
    """Each feature overlaps well; their difference does not. The distance is Mahalanobis's."""
    rng = np.random.default_rng(31)
    n = 400
    common, group = rng.normal(0.0, 3.0, size=n), np.repeat(["F", "M"], n // 2)
    x = np.column_stack([np.ones(n), common + 0.3 * rng.normal(size=n), common])
    x[:, 1] += 1.0 * (group == "F")
    report = bias_report(statistics(x, rng.normal(size=n), group))
    inside = [np.cov(x[group == name, 1:].T, bias=True) for name in ("F", "M")]
    gap = x[group == "F", 1:].mean(axis=0) - x[group == "M", 1:].mean(axis=0)
    expected = np.sqrt(gap @ np.linalg.solve((inside[0] + inside[1]) / 2.0, gap))
    assert report._contexts.together[0, 1] == pytest.approx(expected, rel=1e-6)
    assert f"({expected:.1f} standard deviations apart)" in " ".join(report.warnings)
    x[:, 1] -= 1.0 * (group == "F")
    near = bias_report(statistics(x, rng.normal(size=n), group))
    assert not any("in common" in warning for warning in near.warnings)


def test_arms_at_contexts_of_their_own():
    rng = np.random.default_rng(32)
    arms = rng.integers(4, size=800)
    x = np.column_stack([np.ones(800), rng.normal(size=800)])
    x[arms == 1, 1] += 4.0
    sums = statistics(x, rng.normal(size=800), np.array(list("FFMM"))[arms], arms)
    told = [warning for warning in bias_report(sums).warnings if warning.startswith("Some arms")]
    assert len(told) == 1 and "arm 1 of group F (x2, 1." in told[0] and "arm 0" not in told[0]
    by_pulls = bias_report(sums, weighting="pulls")
    assert not any(warning.startswith("Some arms") for warning in by_pulls.warnings)


def test_a_reason_that_groups_share_is_said_once():
    """Tiny groups are named together, and one with a reason of its own by itself."""
    x = np.column_stack([np.ones(43), np.arange(43.0), np.arange(43.0) % 3])
    groups = ["M"] * 37 + ["A", "A", "B", "C", "C", "C"]
    stats = Statistics.from_rows(x, np.arange(43.0) % 5, groups)
    words = bias_report(stats, reference="M").to_words()
    said = [line for line in words.splitlines() if "groups is not identified" in line]
    assert len(said) == 1 and said[0].count("too few observations") == 2
    assert (
        "of 3 groups is not identified: groups A, B have too few observations, group C has"
        in said[0]
    )
