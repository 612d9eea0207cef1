"""The bias report against closed forms: estimates, errors, totals, differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bias_rows import NUMBERS, frame, rows_of, statistics
from evenhand.bias import bias_report


def test_two_means_are_welchs_test():
    """With an intercept alone the report is the t-test that everyone knows."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(1.0, 1.0, 9), rng.normal(0.0, 3.0, 14)
    known = stats.ttest_ind(a, b, equal_var=False)
    report = bias_report(
        statistics(np.ones((23, 1)), np.append(a, b), ["F"] * 9 + ["M"] * 14), reference="M"
    )
    row = report.to_frame().iloc[0]
    low, high = known.confidence_interval(0.95)
    assert row[["estimate", "freedom", "p_value", "low", "high"]].tolist() == pytest.approx(
        [a.mean() - b.mean(), known.df, known.pvalue, low, high], rel=1e-9
    )


def test_by_hand():
    """F: 1 2 2 3, M: 5 6 6 7. Variances 2/3 each, so the error is sqrt(2 / 3 / 2), with 6 degrees.

    Against the mean of the groups everything is half of that.
    """
    rewards = [1.0, 2.0, 2.0, 3.0, 5.0, 6.0, 6.0, 7.0]
    sums = statistics(np.ones((8, 1)), rewards, ["F"] * 4 + ["M"] * 4)
    reach = 2.446912 * np.sqrt(1.0 / 3.0)
    row = bias_report(sums, reference="M").to_frame().iloc[0]
    expected = [-4.0, np.sqrt(1.0 / 3.0), 6.0, -4.0 - reach, -4.0 + reach]
    assert row[NUMBERS[:5]].tolist() == pytest.approx(expected, rel=1e-6)
    halves = bias_report(sums, reference="mean").to_frame()
    assert halves["estimate"].tolist() == pytest.approx([-2.0, 2.0])
    assert halves["standard_error"].tolist() == pytest.approx([expected[1] / 2] * 2)
    # One comparison, not two: the second is the first with the other sign.
    assert halves["simultaneous_low"].tolist() == pytest.approx(halves["low"].tolist())


def test_interactions_of_a_pooled_regression():
    """psi_1 - psi_2 is the interaction with the group in one regression on everything.

    With that regression's noise given, its textbook errors are the report's as well.
    """
    x, y, groups, _ = rows_of(labels=("F", "F", "M", "M"), d=4)
    female = (groups == "F")[:, None]
    design = np.hstack([x, x * female])
    inverse = np.linalg.inv(design.T @ design)
    together = inverse @ design.T @ y
    sigma = np.sqrt(np.sum((y - design @ together) ** 2) / (len(y) - 8))
    report = bias_report(statistics(x, y, groups), reference="M", noise=sigma)
    row = frame(report, "estimate", "standard_error", "freedom").loc["F"]
    assert row["estimate"].to_numpy() == pytest.approx(together[4:], rel=1e-9)
    errors = sigma * np.sqrt(np.diag(inverse))[4:]
    assert row["standard_error"].to_numpy() == pytest.approx(errors, rel=1e-9)
    assert (row["freedom"] == np.inf).all()


def own_fits(x, y, labels):
    """(label, coefficients, (X'X)^-1, residual sum of squares, n) by NumPy alone."""
    for label in dict.fromkeys(labels):
        a, b = x[labels == label], y[labels == label]
        vector = np.linalg.lstsq(a, b)[0]
        yield label, vector, np.linalg.inv(a.T @ a), np.sum((b - a @ vector) ** 2), len(b)


@pytest.mark.parametrize("weighting", ["pulls", "arms"])
@pytest.mark.parametrize("reference", [None, "M"])
def test_both_weightings_by_numpy(weighting, reference):
    x, y, groups, arms = rows_of(2)
    d, names = x.shape[1], list(dict.fromkeys(groups))
    vectors, covariances, freedom = {}, {}, {}
    if weighting == "pulls":
        for name, vector, inverse, left, n in own_fits(x, y, groups):
            vectors[name], freedom[name] = vector, n - d
            covariances[name] = left / (n - d) * inverse
    else:
        for name in names:
            inside = groups == name
            parts = list(own_fits(x[inside], y[inside], arms[inside]))
            freedom[name] = sum(n for *_, n in parts) - d * len(parts)
            variance = sum(left for *_, left, _ in parts) / freedom[name]
            vectors[name] = np.mean([vector for _, vector, *_ in parts], axis=0)
            inverses = sum(inverse for _, _, inverse, *_ in parts)
            covariances[name] = variance * inverses / len(parts) ** 2
    report = bias_report(statistics(x, y, groups, arms), reference, 0.9, weighting)
    for name in [other for other in names if other != reference]:
        weights = dict.fromkeys(names, -1.0 / 3.0) if reference is None else {"M": -1.0}
        weights[name] = weights.get(name, 0.0) + 1.0
        parts = [weights[k] ** 2 * np.diag(covariances[k]) for k in weights]
        variance = sum(parts)
        degrees = variance**2 / sum(p**2 / freedom[k] for p, k in zip(parts, weights, strict=True))
        estimate = sum(weights[k] * vectors[k] for k in weights)
        rows = report.to_frame().query("group == @name")
        assert rows["estimate"].to_numpy() == pytest.approx(estimate, rel=1e-9)
        assert rows["standard_error"].to_numpy() == pytest.approx(np.sqrt(variance), rel=1e-9)
        assert rows["freedom"].to_numpy() == pytest.approx(degrees, rel=1e-9)
        alone = stats.t.isf(0.05, degrees) * np.sqrt(variance)
        assert rows["high"].to_numpy() == pytest.approx(estimate + alone, rel=1e-9)
        # Three groups against their mean are 3 d comparisons, two against the third 2 d.
        many = d * (3 if reference is None else 2)
        together = stats.t.isf(0.05 / many, degrees) * np.sqrt(variance)
        assert rows["simultaneous_low"].to_numpy() == pytest.approx(estimate - together, rel=1e-9)
        p = 2.0 * stats.t.sf(np.abs(estimate) / np.sqrt(variance), degrees)
        assert rows["p_value"].to_numpy() == pytest.approx(p, rel=1e-7)
        assert rows["simultaneous_p_value"].to_numpy() == pytest.approx(
            np.minimum(many * p, 1.0), rel=1e-7
        )


def test_the_reference_is_zero_by_definition():
    report = bias_report(statistics(*rows_of()), reference="M")
    own = report.to_frame().query("group == 'M'")
    assert (own[["estimate", "standard_error", "low", "high"]] == 0.0).all(axis=None)
    assert own["p_value"].isna().all()
    assert set(own["why"]) == {"the reference"}


def test_how_far_the_weightings_are_apart():
    """The difference is a sum over arms of (W_i - 1 / p) b_i, W_i = (X'X)^-1 X_i'X_i."""
    x, y, groups, arms = rows_of(3, labels=("F", "F", "F", "M", "M"))
    d, difference, variance = x.shape[1], 0.0, 0.0
    for name, sign in (("F", 1.0), ("M", -1.0)):
        inside = groups == name
        whole = np.linalg.inv(x[inside].T @ x[inside])
        parts = list(own_fits(x[inside], y[inside], arms[inside]))
        sigma2 = sum(p[3] for p in parts) / sum(p[4] - d for p in parts)
        for _, vector, inverse, *_ in parts:
            weight = whole @ np.linalg.inv(inverse) - np.eye(d) / len(parts)
            difference = difference + sign * weight @ vector
            variance = variance + sigma2 * np.diag(weight @ inverse @ weight.T)
    report = bias_report(statistics(x, y, groups, arms), reference="M", weighting="pulls")
    table = report.weightings().query("group == 'F'")
    assert table["difference"].to_numpy() == pytest.approx(difference, rel=1e-9)
    assert table["standard_error"].to_numpy() == pytest.approx(np.sqrt(variance), rel=1e-6)
    other = bias_report(statistics(x, y, groups, arms), reference="M", weighting="arms")
    gap = report.to_frame()["estimate"] - other.to_frame()["estimate"]
    assert gap[table.index].to_numpy() == pytest.approx(difference, abs=1e-12)


def test_groups_that_depend_on_each_other():
    """Var(F - M) = Vf + Vm - C - C', and Fieller's ratio with a covariance, each by hand."""
    x, y, groups, _ = rows_of(11, labels=("F", "M"))
    rng, d = np.random.default_rng(2), x.shape[1]
    root = rng.normal(size=(2 * d, 2 * d)) / 30.0
    whole = root @ root.T
    parts = {"F": whole[:d, :d], "M": whole[d:, d:]}
    report = bias_report(
        statistics(x, y + 20.0, groups),
        reference="M",
        covariances=parts,
        freedom={"F": 9.0, "M": 5.0},
        between={("F", "M"): whole[:d, d:]},
    )
    contrast = np.hstack([np.eye(d), -np.eye(d)])
    errors = np.sqrt(np.diag(contrast @ whole @ contrast.T))
    rows = report.to_frame().query("group == 'F'")
    assert rows["standard_error"].to_numpy() == pytest.approx(errors, rel=1e-9)
    assert (rows["freedom"] == 5.0).all()
    ratio, at = report.ratio(), report.overall
    levels = {g: float(at @ report._fit.vectors[i]) for i, g in enumerate(report.groups)}
    t = stats.t.ppf(0.975, 5.0)
    for end in (ratio.low, ratio.high):
        turn = np.concatenate([at, -end * at])
        if ratio.lower == "M":
            turn = np.concatenate([-end * at, at])
        size = t * np.sqrt(turn @ whole @ turn)
        assert abs(levels[ratio.lower] - end * levels[ratio.higher]) == pytest.approx(size)


def test_arms_that_differ_and_are_chosen_unequally_disagree():
    """Coefficients 2 and 8 against 5 and 5: equal averages, no bias, and a fit that leans to 8."""
    rng = np.random.default_rng(4)
    arms = rng.choice(4, size=800, p=[0.05, 0.45, 0.25, 0.25])
    x = np.column_stack([np.ones(800), rng.random(800)])
    y = 5.0 + x[:, 1] * np.array([2.0, 8.0, 5.0, 5.0])[arms] + rng.normal(size=800)
    sums = statistics(x, y, np.array(["F", "F", "M", "M"])[arms], arms)
    pulls, plain = bias_report(sums, reference="M", weighting="pulls"), bias_report(sums, "M")
    assert frame(pulls, "disagrees").loc["F", "disagrees"].tolist() == [False, True]
    assert any('(weighting="arms")' in warning for warning in pulls.warnings)
    assert plain.weighting == "arms"
    assert any(
        "chosen: x2 (" in warning and "they count equally" in warning for warning in plain.warnings
    )
    row = frame(plain, "low", "high").loc[("F", "x2")]
    assert row["low"] < 0.0 < row["high"]
    assert frame(pulls, "low").loc[("F", "x2"), "low"] > 1.0  # sure, and wrong


def test_arms_with_the_same_contexts_agree_exactly():
    """Then both weightings are the same numbers, and rounding must not look like a difference."""
    x = np.random.default_rng(5).normal(size=(20, 3))
    rows, arms = np.vstack([x] * 4), np.repeat(np.arange(4), 20)
    y = 1e3 * arms + np.random.default_rng(6).normal(size=80)
    report = bias_report(statistics(rows, y, np.array(list("FFMM"))[arms], arms))
    assert not report.to_frame()["disagrees"].any()


# Contributions, totals, candidates ----------------------------------------------------------------


def test_contributions_add_up_to_the_total():
    x, y, groups, _ = rows_of(7)
    report = bias_report(statistics(x, y, groups))
    table, totals = report.to_frame(), report.totals().set_index(["context", "group"])
    for name in report.groups:
        own = table[table["group"] == name]
        mean = x[groups == name].mean(axis=0)
        assert own["mean"].to_numpy() == pytest.approx(mean)
        assert own["contribution"].sum() == pytest.approx(totals.loc[("own", name), "estimate"])
        assert (own["contribution_low"] <= own["contribution"]).all()
        assert (own["contribution"] <= own["contribution_high"]).all()
        everyone = x.mean(axis=0)
        at = report.at(np.vstack([mean, everyone]), [name, name])
        for kind, row in (("own", 0), ("overall", 1)):
            asked = totals.loc[(kind, name), NUMBERS].to_numpy(dtype=float)
            assert at.loc[row, NUMBERS].to_numpy(dtype=float) == pytest.approx(asked)


def test_the_error_of_a_total_is_that_of_the_sum():
    x, y, groups, _ = rows_of(8, labels=("F", "F", "M", "M"))
    place, variance = x.mean(axis=0), 0.0
    for _, _, inverse, left, n in own_fits(x, y, groups):
        variance += left / (n - 3) * place @ inverse @ place
    totals = bias_report(statistics(x, y, groups), reference="M").totals()
    row = totals.query("group == 'F' and context == 'overall'").iloc[0]
    assert row["standard_error"] == pytest.approx(np.sqrt(variance))


def test_an_average_of_ones_own():
    x, y, groups, _ = rows_of(9)
    place = np.array([1.0, 0.5, -2.0])
    report = bias_report(statistics(x, y, groups), average=place)
    at = report.at(np.tile(place, (3, 1)), list(report.groups))["estimate"].tolist()
    assert report.totals()["estimate"].tolist() == pytest.approx(at + at)
    each = np.vstack([place, 2 * place, 3 * place])
    own = bias_report(statistics(x, y, groups), average=each).totals()["estimate"][:3]
    assert own.tolist() == pytest.approx([at[0], 2 * at[1], 3 * at[2]])


def test_features_that_were_standardised_are_reported_in_their_own_units():
    x, y, groups, _ = rows_of(36)
    deviations = np.append(1.0, x[:, 1:].std(axis=0))
    plain = bias_report(statistics(x, y, groups), "M")
    scaled = bias_report(statistics(x / deviations, y, groups), "M", scales=deviations)
    columns = [*NUMBERS, "mean", "contribution"]
    expected = plain.to_frame()[columns].to_numpy(dtype=float)
    np.testing.assert_allclose(scaled.to_frame()[columns], expected, rtol=1e-8, atol=1e-12)
    assert scaled.at(x[:1], "F")["low"][0] == pytest.approx(plain.at(x[:1], "F")["low"][0])
    assert scaled.units == plain.units
    with pytest.raises(ValueError, match="scales has 0; allowed are numbers above 0"):
        bias_report(statistics(x, y, groups), scales=[1.0, 0.0, 1.0])


def test_the_largest_difference_and_the_ratio():
    """At an intercept alone they are those of the groups' means."""
    rng = np.random.default_rng(10)
    groups = np.repeat(["F", "M", "X"], [20, 30, 40])
    y = rng.normal(size=90) + np.repeat([4.0, 8.0, 5.0], [20, 30, 40])
    report = bias_report(statistics(np.ones((90, 1)), y, groups))
    mean = {name: y[groups == name].mean() for name in "FMX"}
    error = {name: stats.sem(y[groups == name]) for name in "FMX"}
    gap = report.difference()
    assert (gap.lower, gap.higher, gap.why) == ("F", "M", "")
    assert gap.estimate == pytest.approx(mean["M"] - mean["F"])
    variance = error["M"] ** 2 + error["F"] ** 2
    degrees = variance**2 / (error["M"] ** 4 / 29 + error["F"] ** 4 / 19)
    reach = stats.t.isf(0.025 / 3, degrees) * np.sqrt(variance)  # three pairs
    assert (gap.low, gap.high) == pytest.approx((gap.estimate - reach, gap.estimate + reach))
    ratio = report.ratio()
    assert (ratio.lower, ratio.higher) == ("F", "M")
    assert ratio.estimate == pytest.approx(mean["F"] / mean["M"])
    t = stats.t.isf(0.025 / 3, 19)
    for end in (ratio.low, ratio.high):  # where Fieller's test just fails
        left = mean["F"] - end * mean["M"]
        assert abs(left) == pytest.approx(t * np.hypot(error["F"], end * error["M"]))
    assert ratio.low < ratio.estimate < ratio.high
    doubled = report.difference([2.0])
    assert doubled.estimate == pytest.approx(2.0 * gap.estimate)


def test_no_ratio_of_feedback_that_may_be_negative():
    x, y, groups, _ = rows_of(11)
    ratio = bias_report(statistics(x, y - y.mean(), groups)).ratio()
    assert np.isnan(ratio.estimate)
    assert "not positive beyond doubt" in ratio.why


def test_covariances_from_elsewhere():
    """The sandwich of White, computed from rows, in the place of the report's own covariance."""
    x, y, groups, _ = rows_of(12, labels=("F", "F", "M", "M"))
    robust = {}
    for name, vector, inverse, *_ in own_fits(x, y, groups):
        own = groups == name
        scores = x[own] * (y[own] - x[own] @ vector)[:, None]
        robust[name] = inverse @ scores.T @ scores @ inverse
    sums = statistics(x, y, groups)
    report = bias_report(sums, "M", covariances=robust, freedom={"F": 10.0, "M": 20.0})
    parts = np.diag(robust["F"]), np.diag(robust["M"])
    row = frame(report, "standard_error", "freedom").loc["F"]
    assert row["standard_error"].to_numpy() == pytest.approx(np.sqrt(parts[0] + parts[1]))
    degrees = (parts[0] + parts[1]) ** 2 / (parts[0] ** 2 / 10 + parts[1] ** 2 / 20)
    assert row["freedom"].to_numpy() == pytest.approx(degrees)
    plain = frame(bias_report(sums, "M"), "estimate")
    assert frame(report, "estimate").equals(plain)
