"""Audits of logs whose groups came with each round."""

from __future__ import annotations

import numpy as np
import pytest

import evenhand as eh
from evenhand.cli import main
from evenhand.errors import DataError
from round_logs import ARMS, FEATURES, drawn, play_rounds


def pooled(attributes=None):
    groups = eh.Groups.per_round(ARMS, attributes or {"sex": ["F", "M"]})
    reference = {} if attributes else {"reference": "M"}
    return eh.PooledGroupFair(groups, n_features=FEATURES, seed=7, **reference)


def coefficients(contexts, rewards):
    design = np.column_stack([np.ones(len(contexts)), contexts])
    return np.linalg.lstsq(design, rewards, rcond=None)[0]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_the_group_of_a_row_is_that_of_the_chosen_candidate(tmp_path, suffix):
    """By hand: a regression per group of those who were chosen; who did not say is a group."""
    path, groups = tmp_path / f"log.{suffix}", drawn(["F", "M", None], 400)
    contexts, arms, rewards = play_rounds(path, pooled(), groups)
    report = eh.audit(path, reference="M", weighting="pulls").bias
    assert report.groups == ("F", "M", "not stated")
    group = np.array([own[arm] or "not stated" for own, arm in zip(groups, arms, strict=True)])
    chosen = contexts[np.arange(len(arms)), arms]
    own = {
        name: coefficients(chosen[group == name], rewards[group == name]) for name in report.groups
    }
    estimates = report.to_frame().set_index(["group", "feature"])["estimate"]
    for name in ("F", "not stated"):
        expected = own[name] - own["M"]
        np.testing.assert_allclose(estimates[name].to_numpy(), expected, rtol=1e-9, atol=1e-9)
    assert report.observations == tuple((group == name).sum() for name in report.groups)
    assert report.by_group.loc["F", "high"] < 0.0 < report.by_group.loc["not stated", "high"]


def test_a_frame_of_the_log_says_the_same(tmp_path):
    path = tmp_path / "log.parquet"
    play_rounds(path, pooled(), drawn(["F", "M"], 200))
    whole, frame = eh.audit(path), eh.audit(eh.read_log(path))
    assert whole.bias.by_group.equals(frame.bias.by_group)
    assert whole.facts.columns.features == ("x1", "x2")
    assert whole.facts.columns.group == "sex"


def test_several_attributes_are_compared_each_and_where_they_meet(tmp_path):
    path, rounds = tmp_path / "log.parquet", 300
    policy = pooled({"sex": ["F", "M"], "age": ["old", "young"]})
    sexes, ages = drawn(["F", "M"], rounds), drawn(["old", "young"], rounds, seed=2)
    groups = [{"sex": sex, "age": age} for sex, age in zip(sexes, ages, strict=True)]
    _, arms, _ = play_rounds(path, policy, groups)
    audit = eh.audit(path)
    assert set(audit.intersections.attributes) == {"sex", "age"}
    cells = [
        f"{own['sex'][arm]} & {own['age'][arm]}" for own, arm in zip(groups, arms, strict=True)
    ]
    counted = dict(zip(*map(list, np.unique(cells, return_counts=True)), strict=True))
    assert dict(zip(audit.bias.groups, audit.bias.observations, strict=True)) == counted


def test_probabilities_of_several_attributes_are_refused_with_what_to_do(tmp_path, capsys):
    path = tmp_path / "log.parquet"
    sexes, ages = drawn(["F", "M"], 60), drawn(["old", "young"], 60, seed=2)
    sexes[3] = [{"F": 0.7, "M": 0.3}] * ARMS
    groups = [{"sex": sex, "age": age} for sex, age in zip(sexes, ages, strict=True)]
    play_rounds(path, pooled({"sex": ["F", "M"], "age": ["old", "young"]}), groups)
    with pytest.raises(DataError, match=r"sex is given as probabilities in 1 of 60 rows") as error:
        eh.audit(path)
    assert "\n" not in str(error.value) and "bias()" in str(error.value)
    left = eh.audit(path, missing="drop")
    assert sum(left.bias.observations) == 59
    assert main(["audit", str(path)]) == 2
    told = capsys.readouterr().err.strip()
    assert "\n" not in told and "--missing drop" in told


def test_another_column_can_still_be_the_group(tmp_path):
    path = tmp_path / "log.parquet"
    play_rounds(path, pooled(), drawn(["F", "M"], 100))
    frame = eh.read_log(path).assign(office=["north", "south"] * 50)
    audit = eh.audit(frame, group="office", leave_out=["group"])
    assert audit.bias.groups == ("north", "south")
    assert audit.facts.columns.features == ("x1", "x2")
