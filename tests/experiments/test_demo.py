"""The demo: it runs without a network, says what it found, and writes a page."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

from evenhand.experiments import _demo


@pytest.fixture(scope="module")
def demo():
    return _demo.play()


@pytest.mark.slow
def test_the_bias_is_that_of_plain_least_squares(demo):
    """Every application once, each group fitted on its own, black minus the others."""
    world = demo.world
    arms, contexts, rewards = world.observations()
    black = world.groups.of[arms] == world.groups.index("black")
    fits = [np.linalg.lstsq(contexts[rows], rewards[rows])[0] for rows in (black, ~black)]
    expected = (fits[0] - fits[1]) / world.scales["deviation"].to_numpy()
    mine = demo.bias.to_frame().query("group == 'black'")
    np.testing.assert_allclose(mine["estimate"], expected, rtol=1e-6)
    bias = world.bias(reference="not black", weighting="pulls").to_frame()
    table = bias.query("group == 'black'")
    np.testing.assert_allclose(table["estimate"], expected, rtol=1e-9)


@pytest.mark.slow
def test_the_table_is_that_of_the_runs(demo):
    runs = demo.simulated.runs.groupby("policy")["share"].mean()
    for row in _demo.table(demo).itertuples():
        shown = float(re.match(r"(\d+) %", row.black)[1])
        assert abs(shown - 100 * runs[row.policy]) <= 0.5
    text = " ".join(_demo.sentences(demo))
    assert all(f"{100 * runs[policy]:.0f} %" in text for policy in _demo.POLICIES)
    assert abs(runs["PooledGroupFair"] - 0.5) < 0.03  # in proportion


@pytest.mark.slow
def test_the_command_needs_no_network(tmp_path):
    blocked = "import socket; socket.socket.connect = None\n"
    code = blocked + "import sys; from evenhand.cli import main; sys.exit(main(sys.argv[1:]))"
    page = tmp_path / "demo.html"
    ran = subprocess.run(
        [sys.executable, "-c", code, "demo", "--out", str(page)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    for policy in ("TopInterval", "GroupFairTopInterval", "PooledGroupFair"):
        assert policy in ran.stdout
    text = page.read_text()
    assert text.count("<svg") == 1 and "src=" not in text and "href=" not in text
    assert "equally good" in text  # the assumption is on the page
