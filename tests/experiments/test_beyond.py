"""Experiments beyond the paper: their files, worlds in words, and the floor."""

from itertools import pairwise

import pandas as pd
import pytest

import evenhand as eh
from evenhand.cli import main
from evenhand.experiments import bundled
from evenhand.experiments._introduction import world_in_words
from evenhand.experiments.file import read_experiment

SMALL = """
policies = ["TopInterval"]
replications = 3
floor = true
output = { figures = ["svg"], tables = ["csv"] }

[world]
n_arms = 4
contexts = "shared"

[run]
horizon = 20
"""


def put(folder, text):
    path = folder / "small.toml"
    path.write_text(text)
    return path


def test_they_are_bundled_under_their_own_names():
    beyond = bundled.beyond_experiments()
    assert set(beyond) <= set(bundled.names())
    assert len(bundled.names()) == len(beyond) + len(list(bundled.FOLDER.glob("*.toml")))
    orders = [experiment.order for experiment in beyond.values()]
    assert orders == list(range(1, len(beyond) + 1))
    assert not {"ablation", "spread"} & {experiment.name for experiment in bundled.in_paper()}


def test_they_are_files_like_any_other(tmp_path):
    for name, own in bundled.beyond_experiments().items():
        copy = read_experiment(put(tmp_path, bundled.copy_of(name)))
        for field in ("title", "sweep", "place", "run", "axis", "floor"):
            assert getattr(copy, field) == getattr(own, field), (name, field)
        assert repr(copy.policies) == repr(own.policies)


def test_the_ablation_adds_one_repair_at_a_time():
    *repaired, _ = bundled.beyond_experiments()["ablation"].policies.values()
    steps = [getattr(make, "keywords", {}) for make in repaired]
    assert steps[0] == {}
    for before, after in pairwise(steps):
        assert before.items() <= after.items() and after != before


def test_the_recommended_policy_is_the_last_of_all():
    for name, experiment in bundled.beyond_experiments().items():
        kinds = {label: getattr(make, "func", make) for label, make in experiment.policies.items()}
        assert kinds["PooledGroupFair"] is eh.PooledGroupFair, name
        assert list(kinds.values())[-1] is eh.PooledGroupFair, name


def test_worlds_are_described_only_by_their_departures():
    beyond = bundled.beyond_experiments()
    spread = world_in_words(beyond["spread"]).words
    assert "by group 6 and 1, true averages equal" in spread and "scales" not in spread
    assert "advantage of the first group 0 to 6" in world_in_words(beyond["unequal"]).words
    assert "deviation of the noise" not in world_in_words(beyond["binary"]).words
    assert "true averages" not in world_in_words(beyond["ablation"]).words


@pytest.mark.slow
def test_the_floor_stands_beside_the_policies(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    put(tmp_path, SMALL.replace('contexts = "shared"\n', ""))
    for _ in range(2):  # the second time from the parts of the first
        assert main(["run", "small.toml"]) == 0
        runs = pd.read_csv("small-report/tables/runs.csv")
        assert runs["policy"].tolist() == ["TopInterval"] * 3 + ["floor"] * 3
    world = eh.SyntheticWorld(n_arms=4)
    alone = eh.simulate_floor(world, horizon=20, replications=3, seed=1).runs["true_regret"]
    assert runs["true_regret"][3:].tolist() == pytest.approx(alone.tolist())
    assert "120 rounds" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('["TopInterval"]', '[{ policy = "TopInterval", label = "floor" }]', "floor's own"),
        ("floor = true", "floor = 1", "floor is 1; allowed is true or false"),
        ('contexts = "shared"', "spread = [1]", "world.spread"),
        ('contexts = "shared"', 'spread = "wide"', "a number or a list of numbers"),
        ('contexts = "shared"', "group_sizes = [2, 3]", "by group_sizes it is 5"),
        ('contexts = "shared"', 'rewards = "binary"', "line 9"),
    ],
)
def test_mistakes_name_the_line(tmp_path, before, after, words):
    with pytest.raises(eh.InputError) as error:
        read_experiment(put(tmp_path, SMALL.replace(before, after)))
    assert words in error.value.told("file")


def test_a_table_has_no_floor(tmp_path):
    pd.DataFrame({"g": ["F", "M"] * 50, "x": range(100), "y": range(100)}).to_csv(
        tmp_path / "people.csv", index=False
    )
    text = SMALL.partition("[world]")[0] + (
        '[data]\nfile = "people.csv"\ngroup = "g"\nreward = "y"\narms = "g"\nfeatures = ["x"]\n'
        "[run]\nhorizon = 5\n"
    )
    with pytest.raises(eh.InputError, match="of a table are not known"):
        read_experiment(put(tmp_path, text))


def test_a_bias_of_numbers_or_lists_can_be_swept(tmp_path):
    text = SMALL.replace("[world]", '[sweep]\nparameter = "bias_mean"\nvalues = [0, 5]\n[world]')
    points = list(read_experiment(put(tmp_path, text)).points(eh.PAPER))
    assert [point.world.bias_mean for point in points] == [0.0, 5.0]


def test_panels_may_differ_by_a_text(tmp_path):
    text = SMALL.replace('contexts = "shared"\n', "")
    panels = '[panels]\nparameter = "contexts"\nvalues = ["own", "shared"]\n[world]'
    experiment = read_experiment(put(tmp_path, text.replace("[world]", panels)))
    points = list(experiment.points(eh.PAPER))
    assert [point.panel for point in points] == ["contexts = own", "contexts = shared"]
    assert [point.world.contexts for point in points] == ["own", "shared"]
    assert "contexts own, shared" in world_in_words(experiment).words


@pytest.mark.parametrize(
    ("panels", "words"),
    [
        ('parameter = "contexts"\nvalues = [1, 2]', "are not strings, which contexts needs"),
        ('parameter = "noise"\nvalues = ["own"]', "are not numbers, which noise needs"),
        ('parameter = "contexts"\nvalues = ["own", "own"]', "different numbers or strings"),
        ('parameter = "contexts"\nvalues = ["own", "none"]', "panels.values"),
    ],
)
def test_bad_panels_are_reported(tmp_path, panels, words):
    with pytest.raises(eh.InputError) as error:
        read_experiment(put(tmp_path, SMALL.replace("[world]", f"[panels]\n{panels}\n[world]")))
    assert words in error.value.told("file")


def test_a_world_with_attributes_is_described_by_its_own_keys(tmp_path):
    import inspect

    from evenhand.experiments._worlds import CROSSED, WORLD

    known = set(inspect.signature(eh.CrossedWorld).parameters)
    assert set(CROSSED) <= known <= set(WORLD)
    words = world_in_words(bundled.beyond_experiments()["slate"]).words
    assert "attributes sex (F, M) and age (older, young), candidates who come once" in words
    text = bundled.copy_of("slate")
    for wrong, message in (
        (text.replace("sizes = [1, 1, 1, 1]", "sizes = [1, 1]"), "sizes has 2 numbers"),
        (text.replace("sizes = [1, 1, 1, 1]", ""), "sizes is missing"),
        (
            text.replace('arms = "once"\n\n', 'arms = "once"\nn_arms = 4\n\n'),
            "n_arms is not a setting",
        ),
    ):
        with pytest.raises(eh.InputError, match=message):
            read_experiment(put(tmp_path, wrong))
