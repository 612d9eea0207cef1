"""Charts say what the tables say, for any policies, and render without a browser."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from evenhand import charts
from evenhand.errors import InputError

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


def test_panels_of_a_rate_chart_share_their_axes(runs):
    halves = pd.concat([runs.assign(panel="a"), runs.assign(panel="b", true_regret=1e-3)])
    spec = json.loads(charts.rate_chart(halves).to_json())
    ends = [part["layer"][0]["encoding"]["y"]["scale"]["domain"] for part in spec["concat"]]
    assert len(ends) == 2 and ends[0] == ends[1]
    assert ends[0][0] < 0.1 and ends[0][1] > 2400  # 1e-3 in 100 rounds, 6 in each of 400
    assert all(row["low"] >= ends[0][0] for row in data_of(charts.rate_chart(halves)))


def test_true_regret_is_on_a_logarithmic_axis_without_zeros(runs):
    small = np.where(runs["policy"] == "Mine", 0.001 * runs["true_regret"], runs["true_regret"])
    runs = runs.assign(true_regret=np.where(runs["policy"] == "Yours", 0.0, small))
    for table in (runs, runs[runs["x"] == 2]):
        chart = charts.true_regret_chart(table, "x")
        rows = data_of(chart)
        assert {row["policy"] for row in rows} == {"TopInterval", "Mine"}
        scales = re.findall(
            r'"scale": {"domain": \[([^]]+)\], "nice": false, "type": "log"',
            (json.dumps(json.loads(chart.to_json()), sort_keys=True)),
        )
        low, high = (float(end) for end in scales[0].split(","))
        assert 0.0 < low < min(row["mean"] for row in rows)
        assert high > max(row["high"] for row in rows) and low <= min(row["low"] for row in rows)
    with pytest.raises(InputError, match="no true regret above zero"):
        charts.true_regret_chart(runs.assign(true_regret=0.0), "x")


def test_an_axis_of_counts_over_two_orders_of_magnitude_is_logarithmic(runs):
    def kind(values):
        spec = json.loads(charts.share_chart(runs.assign(x=values), "x").to_json())
        return spec["layer"][0]["encoding"]["x"]["scale"]["type"]

    assert kind(runs["x"].replace({4: 100})) == "log"
    assert kind(runs["x"].replace({4: 99})) == kind(runs["x"].replace({1: 0, 4: 1000})) == "linear"
    assert kind(runs["x"].replace({1: 0.001})) == "linear"  # as the paper draws delta


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


def drawn(svg, role, kind):
    """The texts or paths inside the groups of an SVG with this role, in order."""
    root = ElementTree.fromstring(svg)
    groups = [element for element in root.iter() if role in element.get("class", "").split()]
    return [
        element
        for group in groups
        for element in group.iter(f"{{http://www.w3.org/2000/svg}}{kind}")
    ]


def labels_of(chart):
    return [label.text for label in drawn(charts.to_svg(chart), "role-axis-label", "text")]


def test_a_single_value_of_x_has_a_named_dot_and_an_interval_for_every_policy(runs):
    single = runs[runs["x"] == 2]
    for chart, dots in (
        (charts.regret_chart(single, "x"), 6),
        (charts.share_chart(single, "x"), 3),
    ):
        assert set(POLICIES) <= set(labels_of(chart))
        marks = [
            element
            for element in ElementTree.fromstring(charts.to_svg(chart)).iter()
            if "role-mark" in element.get("class", "") and "layer" in element.get("class", "")
        ]
        points = [len(mark) for mark in marks if "mark-symbol" in mark.get("class")]
        rules = [len(mark) for mark in marks if "mark-rule" in mark.get("class")]
        assert (points, rules) == ([dots], [dots])  # none at the ends of the intervals


def test_a_single_value_of_x_has_the_proportional_share_as_a_line(runs):
    share = pd.DataFrame({"x": [2], "share": [0.25]})
    rows = data_of(charts.share_chart(runs[runs["x"] == 2], "x", proportional=share))
    assert [row["share"] for row in rows if "share" in row] == [0.25]


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-7, 0.05, 1.0, 1e9])
def test_axes_have_plain_numbers_whatever_their_size(runs, size):
    """Not 250m or 7G, and no exponents."""
    runs = runs.assign(
        x=size * runs["x"],
        share=size * runs["share"],
        perceived_regret=size * runs["perceived_regret"],
        true_regret=size * runs["true_regret"],
        panel=np.where(runs["policy"] == "Mine", "a", "b"),
    )
    bias = pd.DataFrame(
        [("F", "age", "", *(size * np.array([2.0, 1.0, 3.0, 0.0, 4.0])))],
        columns=[
            "group",
            "feature",
            "why",
            *("estimate", "low", "high", "simultaneous_low", "simultaneous_high"),
        ],
    )
    windows = pd.DataFrame(
        [(i, f"day {i}", "F", size * i, size * (i - 1), size * (i + 1)) for i in (1, 2, 3)],
        columns=["window", "from", "group", "value", "low", "high"],
    )
    words = {"age", "age, per 0.00001", *(f"day {i}" for i in (1, 2, 3))}
    for chart in (
        charts.share_chart(runs, "x"),
        charts.regret_chart(runs, "x"),
        charts.regret_chart(runs.drop(columns="panel"), "x"),
        charts.rate_chart(runs),
        charts.bias_chart(bias, {"age": 1e-5}),
        charts.windows_chart(windows, "value", "low", "high", ["F"]),
    ):
        for text in set(filter(None, labels_of(chart))) - words:
            assert re.fullmatch("\N{MINUS SIGN}?[0-9]{1,3}(,[0-9]{3})*([.][0-9]+)?", text), text
    labels = labels_of(charts.regret_chart(runs.drop(columns="panel"), "x"))
    assert format(size, ",.7f").rstrip("0").rstrip(".") in labels  # x itself


def test_figures_of_a_row_have_the_same_size(runs):
    both = [charts.share_chart(runs, "x"), charts.regret_chart(runs, "x"), charts.rate_chart(runs)]
    sizes = {
        (root.get("width"), root.get("height"))
        for root in (ElementTree.fromstring(charts.to_svg(chart)) for chart in both)
    }
    assert len(sizes) == 1


def test_published_values_are_crosses_with_a_legend(runs):
    published = pd.DataFrame(
        {"policy": "TopInterval", "x": [2], "value": [2.5], "metric": "true_regret"}
    )
    for draw in (charts.share_chart, charts.regret_chart):
        svg = charts.to_svg(draw(runs, "x", published=published))
        legend = [label.text for label in drawn(svg, "role-legend-label", "text")]
        assert "published" in legend
        lines = [path.get("d").count("M") for path in drawn(svg, "mark-symbol", "path")]
        assert lines.count(2) == 2  # two strokes that cross: the mark, and its legend


def test_cells_are_drawn_raw_and_shrunk_without_the_reference():
    cells = pd.DataFrame(
        {
            "cell": ["F & a", "F & b", "M & a"],
            "estimate": [-1.0, np.nan, 0.0],
            "low": [-9.0, np.nan, 0.0],
            "high": [7.0, np.nan, 0.0],
            "shrunk": [-0.5, -0.6, 0.0],
            "shrunk_low": [-0.9, -1.5, 0.0],
            "shrunk_high": [-0.1, 0.3, 0.0],
        }
    )
    svg = charts.to_svg(charts.cells_chart(cells, reference="M & a"))
    assert "F &amp; a" in svg
    assert "F &amp; b" in svg
    assert "M &amp; a" not in svg
    assert "shrunk towards its margins" in svg
    with pytest.raises(InputError, match="no column 'shrunk'"):
        charts.cells_chart(cells.drop(columns="shrunk"))


def test_shares_over_time_are_the_rows_of_the_table():
    times = pd.to_datetime(["2026-01-01", "2026-01-02"])
    rows = [(at, "F", kind, 0.5) for at in times for kind in ("chosen", "proportional")]
    table = pd.DataFrame(rows, columns=["at", "group", "kind", "share"])
    chart = charts.shares_over_time(table)
    assert [row["share"] for row in data_of(chart)] == [0.5] * 4
    assert chart.to_dict()["encoding"]["x"]["type"] == "temporal"
    numbered = charts.shares_over_time(table.assign(at=[1, 1, 2, 2]))
    assert numbered.to_dict()["encoding"]["x"]["title"] == "round"
    with pytest.raises(InputError, match="table has no column 'share'"):
        charts.shares_over_time(table.drop(columns="share"))
