"""What a bias report owes to symmetry: permuting, scaling, adding up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_rows import NUMBERS, frame, rows_of, statistics
from evenhand.bias import Statistics, bias_report


def values(report, columns=(*NUMBERS, "simultaneous_low", "simultaneous_high")):
    table = report.to_frame().set_index(["group", "feature"])
    return table.sort_index()[list(columns)].to_numpy(dtype=float)


seeds = st.integers(0, 10_000)
weightings = st.sampled_from(["pulls", "arms"])


@settings(max_examples=30)
@given(seeds, weightings, st.permutations(range(3)))
def test_permuting_features_permutes(seed, weighting, order):
    x, y, groups, arms = rows_of(seed, n=150)
    names = np.array(["a", "b", "c"])
    plain = bias_report(statistics(x, y, groups, arms), weighting=weighting, feature_names=names)
    turned = bias_report(
        statistics(x[:, order], y, groups, arms), weighting=weighting, feature_names=names[order]
    )
    np.testing.assert_allclose(values(turned), values(plain), rtol=1e-7, atol=1e-9)


@settings(max_examples=30)
@given(seeds, weightings, st.permutations(["F", "M", "X"]))
def test_permuting_groups_permutes(seed, weighting, names):
    x, y, groups, arms = rows_of(seed, n=150)
    order = np.argsort([names.index(name) for name in groups], kind="stable")
    plain = bias_report(statistics(x, y, groups, arms), weighting=weighting)
    turned = bias_report(
        statistics(x[order], y[order], groups[order], arms[order]), weighting=weighting
    )
    assert turned.groups == tuple(names)
    np.testing.assert_allclose(values(turned), values(plain), rtol=1e-7, atol=1e-9)


@settings(max_examples=30)
@given(seeds, weightings, st.sampled_from([-3.0, 1e-6, 1e6]))
def test_scaling_rewards_scales(seed, weighting, scale):
    x, y, groups, arms = rows_of(seed, n=150)
    columns = ["estimate", "standard_error", "low", "high"]
    plain = values(bias_report(statistics(x, y, groups, arms), weighting=weighting), columns)
    scaled = values(
        bias_report(statistics(x, scale * y, groups, arms), weighting=weighting), columns
    )
    if scale < 0.0:
        plain = plain[:, [0, 1, 3, 2]]
    np.testing.assert_allclose(
        scaled, plain * [scale, abs(scale), scale, scale], rtol=1e-6, atol=1e-9 * abs(scale)
    )


@settings(max_examples=30)
@given(seeds, weightings, st.lists(st.sampled_from([1e-6, 0.5, 1e4]), min_size=3, max_size=3))
def test_scaling_features_scales_back(seed, weighting, scales):
    x, y, groups, arms = rows_of(seed, n=150)
    plain = bias_report(statistics(x, y, groups, arms), weighting=weighting)
    scaled = bias_report(statistics(x * scales, y, groups, arms), weighting=weighting)
    columns = ["estimate", "standard_error", "low", "high"]
    expected = values(plain, columns) / np.tile(scales, 3)[:, None]
    np.testing.assert_allclose(values(scaled, columns) / expected, 1.0, rtol=1e-5)
    np.testing.assert_allclose(
        scaled.totals()["estimate"], plain.totals()["estimate"], rtol=1e-6, atol=1e-9
    )


@settings(max_examples=30)
@given(seeds, st.integers(1, 149))
def test_statistics_add_up(seed, cut):
    """Two halves of a log give what the whole gives, if both know all arms."""
    x, y, groups, arms = rows_of(seed, n=150)
    whole = statistics(x, y, groups, arms)
    places = np.array([whole.arms.index(str(arm)) for arm in arms])

    def part(rows):
        empty = [np.flatnonzero(places[rows] == i) for i in range(len(whole.arms))]
        own = [(x[rows][i], y[rows][i]) for i in empty]
        return Statistics(
            whole.groups,
            whole.of,
            n=[len(b) for _, b in own],
            gram=[a.T @ a for a, _ in own],
            moment=[a.T @ b for a, b in own],
            square=[b @ b for _, b in own],
            means=[a.mean(axis=0) if len(a) else np.zeros(3) for a, _ in own],
            arms=whole.arms,
        )

    both = part(slice(None, cut)) + part(slice(cut, None))
    np.testing.assert_allclose(values(bias_report(both)), values(bias_report(whole)), rtol=1e-8)
    np.testing.assert_allclose(both.means, whole.means, rtol=1e-9, atol=1e-12)


@settings(max_examples=30)
@given(seeds)
def test_moving_a_reference_moves_everything_alike(seed):
    """Differences between groups do not depend on what they are compared with."""
    x, y, groups, arms = rows_of(seed, n=150)
    sums = statistics(x, y, groups, arms)
    mean, named = bias_report(sums), bias_report(sums, reference="M")
    gaps = [frame(report, "estimate")["estimate"].unstack() for report in (mean, named)]
    np.testing.assert_allclose(
        gaps[0].sub(gaps[0].loc["M"]), gaps[1].loc[gaps[0].index], rtol=1e-6, atol=1e-9
    )
    assert gaps[0].sum().to_numpy() == pytest.approx(0.0, abs=1e-9)
    assert mean.difference() == named.difference()


@settings(max_examples=30)
@given(seeds, weightings)
def test_other_batches_of_a_group_change_nothing_by_pulls(seed, weighting):
    """The group's fit needs the sums of the group only; arms are needed for their average."""
    x, y, groups, arms = rows_of(seed, n=150)
    split, whole = statistics(x, y, groups, arms), statistics(x, y, groups)
    by_pulls = bias_report(split, weighting="pulls")
    np.testing.assert_allclose(values(by_pulls), values(bias_report(whole)), rtol=1e-8, atol=1e-12)
    if weighting == "arms":
        assert not np.allclose(
            values(bias_report(split, weighting="arms")), values(bias_report(whole))
        )
