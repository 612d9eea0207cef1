"""Charts say what the tables say, for any policies, and render without a browser."""

import json

import numpy as np
import pandas as pd
import pytest

from evenhand import charts

POLICIES = ["TopInterval", "Mine", "Yours"]


@pytest.fixture
def runs():
    generator = np.random.default_rng(0)
    rows = [
        (policy, x, 0.5 + 0.01 * generator.standard_normal(), 3.0 + x, 2.0 + x, 100 * x)
        for policy in POLICIES
        for x in (1, 2, 4)
        for _ in range(5)
    ]
    names = ["policy", "x", "share", "perceived_regret", "true_regret", "horizon"]
    return pd.DataFrame(rows, columns=names)


def data_of(chart):
    """All rows behind a chart."""
    return [row for rows in json.loads(chart.to_json())["datasets"].values() for row in rows]


def test_share_chart_holds_the_means(runs):
    rows = data_of(charts.share_chart(runs, "x", axis="number of things"))
    means = runs.groupby(["policy", "x"])["share"].mean()
    for row in rows:
        assert row["mean"] == pytest.approx(means[row["policy"], row["x"]])
        assert row["low"] < row["mean"] < row["high"]


def test_regret_chart_holds_both_kinds(runs):
    rows = data_of(charts.regret_chart(runs, "x"))
    assert {(row["policy"], row["regret"]) for row in rows} == {
        (policy, kind) for policy in POLICIES for kind in ("perceived", "true")
    }


def test_published_values_are_overlaid(runs):
    published = pd.DataFrame({"policy": ["TopInterval"], "x": [2], "value": [0.123]})
    rows = data_of(charts.share_chart(runs, "x", published=published))
    assert sum(row.get("value") == 0.123 for row in rows) == 1


def test_rate_chart_has_slope_two_thirds(runs):
    rows = data_of(charts.rate_chart(runs))
    mine = sorted((row["horizon"], row["rate"]) for row in rows if row["policy"] == "Mine")
    assert mine[-1][1] / mine[0][1] == pytest.approx(4 ** (2 / 3))


def test_policies_have_colours_of_their_own(runs):
    spec = json.loads(charts.share_chart(runs, "x").to_json())
    scale = spec["layer"][0]["encoding"]["color"]["scale"]
    assert scale["domain"] == POLICIES
    assert len(set(scale["range"])) == len(POLICIES)
    assert scale["range"][0] == charts.COLOURS["TopInterval"]


def test_every_format_renders(runs, tmp_path):
    paths = charts.save(charts.regret_chart(runs, "x", "A title"), tmp_path / "figure")
    starts = [path.read_bytes()[:4] for path in paths]
    assert starts == [b"%PDF", b"<svg", b"\x89PNG"]
    assert "A title" in paths[1].read_text()
    with pytest.raises(ValueError, match="'gif'; allowed are pdf"):
        charts.save(charts.rate_chart(runs), tmp_path / "figure", ["gif"])
