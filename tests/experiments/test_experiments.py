"""Experiments: what a file means, running and resuming, the commands, files to start from."""

import inspect
import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from commands import evenhand, evenhand_process
from evenhand.cli import main
from evenhand.experiments import bundled, template
from evenhand.experiments._checkpoints import run_experiment
from evenhand.experiments._worlds import SYNTHETIC, TABLE, TRUTH
from evenhand.experiments.bundled import paper_experiments
from evenhand.experiments.file import read_experiment
from evenhand.experiments.model import values_of
from experiment_files import BOTH, MINE, PEOPLE, SWEPT, WORLD, people, put, quick
from reference import DATA, needs_data
from waiting import until
from warm import Warm


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a table and a policy, different from the working folder."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    people().to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


def parts_of(report):
    """The finished points, and when they were written."""
    return {path.name: path.stat().st_mtime_ns for path in (report / "parts").glob("*.csv")}


# The paper's ------------------------------------------------------------------------------------


def test_the_published_grids():
    experiments = paper_experiments()
    rounds = sum(
        experiment.rounds(eh.AUTHORS_CODE)
        for experiment in experiments.values()
        if "AUTHORS_CODE" in experiment.conventions
    )
    assert rounds == 28_320_000
    values = {name: list(experiment.sweep.values) for name, experiment in experiments.items()}
    assert values["T"] == list(range(20, 1001, 20))
    assert values["arms"] == list(range(10, 101, 10))
    assert values["error"] == list(range(10))
    assert values["ratio"] == list(range(2, 9))
    assert values["c"] == list(range(2, 11))
    assert values["d"] == list(range(2, 41, 2))
    assert values["delta"] == [0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5]


def test_points_hold_everything_else_fixed():
    experiments = paper_experiments()
    arms = [point.world for point in experiments["arms"].points(eh.PAPER)]
    assert [(w.n_arms, w.n_sensitive) for w in arms] == [(n, n // 2) for n in range(10, 101, 10)]
    features = {
        reading.name: {point.world.n_features for point in experiments["error"].points(reading)}
        for reading in (eh.PAPER, eh.AUTHORS_CODE)
    }
    assert features == {"PAPER": {5}, "AUTHORS_CODE": {2}}
    deltas = [point.settings["delta"] for point in experiments["delta"].points(eh.PAPER)]
    assert deltas == [0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5]


@pytest.mark.slow
@needs_data
@pytest.mark.filterwarnings("ignore::UserWarning")  # about few rows in some arms
def test_the_real_grids_and_a_short_run_of_each(monkeypatch, tmp_path):
    monkeypatch.setenv("EVENHAND_DATA", str(DATA))
    experiments = paper_experiments(real=True)
    assert list(experiments)[:2] == ["family-income", "compas"]
    assert {"student", "mortgage"} < set(experiments)
    for name, step in (("family-income", 20), ("compas", 12)):
        experiment = experiments[name]
        assert experiment.sweep.values == tuple(k * step for k in range(1, 21))  # T = 2 k n
        assert experiment.panels.values == (0.1, 0.2, 0.3, 0.4, 0.5)
        assert experiment.replications == 100 and experiment.conventions == (
            "AUTHORS_CODE",
            "PAPER",
        )
        special = next(iter(experiment.points(eh.AUTHORS_CODE))).world
        plain = next(iter(experiment.points(eh.PAPER))).world
        assert (special.noise, special.absolute_rewards) == (1.0, True)
        assert (plain.noise, plain.absolute_rewards) == (0.0, False)
        assert plain.n_arms == step // 2
    for name, experiment in experiments.items():
        text = bundled.copy_of(name).splitlines()
        text = ["values = [24]" if line.startswith("values") else line for line in text]
        text = ["parameter = 'horizon'" if line.startswith("parameter") else line for line in text]
        # the others would only be compiled for tables: test_init_and_run_as_it_is plays them
        text = [f"policies = {BOTH}" if line.startswith("policies") else line for line in text]
        if experiment.panels:
            first = text.index("[panels]")
            del text[first : first + 3]
        short = read_experiment(put(tmp_path, "\n".join(text), name=f"{name}.toml"))
        for reading in short.readings().values():
            point = next(iter(experiment.points(reading)))
            for make in experiment.policies.values():
                make(point.world.groups, point.world.n_features, horizon=24, **point.settings)
            runs, _ = run_experiment(short.with_(1, 5), reading, tmp_path / "parts")
            assert list(runs["policy"]) == list(short.policies) and (runs["horizon"] == 24).all()
            assert runs["true_regret"].isna().all() and runs["perceived_regret"].notna().all()


# What a file means --------------------------------------------------------------------------------


def test_defaults(folder):
    path = put(folder, "[run]\nhorizon = 30\n", name="small.toml")
    experiment = read_experiment(path)
    assert (experiment.name, experiment.title, experiment.axis) == (
        "small",
        "small",
        "number of rounds T",
    )
    assert list(experiment.policies) == ["TopInterval", "GroupFairTopInterval"]
    assert (experiment.replications, experiment.seed, experiment.conventions) == (80, 1, ("PAPER",))
    (point,) = experiment.points(eh.PAPER)
    assert (point.x, point.panel, point.horizon) == (30.0, "", 30)
    assert point.world.fingerprint() == eh.SyntheticWorld().fingerprint()


def test_the_horizon_may_be_in_the_panels(folder):
    text = WORLD.replace(SWEPT, 'parameter = "delta"\nvalues = [0.1, 0.2]')
    text += '[panels]\nparameter = "horizon"\nvalues = [10, 20]\n'
    points = list(read_experiment(put(folder, text)).points(eh.PAPER))
    assert [(point.panel, point.horizon, point.x) for point in points] == [
        ("horizon = 10", 10, 0.1),
        ("horizon = 10", 10, 0.2),
        ("horizon = 20", 20, 0.1),
        ("horizon = 20", 20, 0.2),
    ]


@pytest.mark.parametrize(
    ("parameter", "of_world", "of_run"),
    [("noise", [2, 3], [None] * 2), ("world.noise", [2, 3], [None] * 2),
     ("run.noise", [1, 1], [2, 3])],
)  # fmt: skip
def test_a_parameter_of_both_world_and_run(folder, parameter, of_world, of_run):
    text = WORLD.replace(SWEPT, f'parameter = "{parameter}"\nvalues = [2, 3]') + "horizon = 5\n"
    points = list(read_experiment(put(folder, text)).points(eh.PAPER))
    assert [point.world.noise for point in points] == of_world
    assert [point.settings.get("noise") for point in points] == of_run


def test_noise_of_the_table_is_not_that_of_the_run(folder):
    text = PEOPLE.replace(SWEPT, 'parameter = "data.noise"\nvalues = [2, 3]')
    text += 'horizon = 5\nnoise = "estimate"\n'
    points = list(read_experiment(put(folder, text)).points(eh.PAPER))
    assert [point.world.noise for point in points] == [2, 3]
    assert {point.settings["noise"] for point in points} == {"estimate"}


def test_multiples_go_with_the_value(folder):
    text = WORLD.replace(SWEPT, 'parameter = "n_arms"\nvalues = [100, 7]')
    text = text.replace("n_arms = 4", "") + "horizon = 5\n[sweep.multiples]\nn_sensitive = 0.29\n"
    points = list(read_experiment(put(folder, text)).points(eh.PAPER))
    assert [point.world.n_sensitive for point in points] == [29, 2]  # 0.29 * 100 is 28.999...


def test_settings_of_a_policy_win_over_those_of_the_run(folder):
    of_two = '["TopInterval", { policy = "TopInterval", label = "wide", delta = 0.9 }]'
    experiment = read_experiment(put(folder, WORLD.replace(BOTH, of_two)))
    point = next(iter(experiment.points(eh.PAPER)))
    policies = {
        label: make(point.world.groups, 2, horizon=10, seed=0, **point.settings)
        for label, make in experiment.policies.items()
    }
    assert {label: policy.delta for label, policy in policies.items()} == {
        "TopInterval": 0.1,
        "wide": 0.9,
    }


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ({"from": 20, "to": 100, "step": 40}, (20, 60, 100)),
        ({"from": 20, "to": 99, "step": 40}, (20, 60)),
        ({"from": 5, "to": 5, "step": 1}, (5,)),
        ({"from": 0.1, "to": 0.7, "step": 0.1}, (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)),
        ([3, 1, 2], (3, 1, 2)),
    ],
)
def test_values_and_ranges(given, values):
    assert values_of(given) == values


def test_both_kinds_of_place_know_all_parameters_of_their_world():
    synthetic = set(inspect.signature(eh.SyntheticWorld).parameters)
    arrivals = inspect.signature(eh.World.with_true_rewards).parameters
    truth = {f"true_{name}" for name in arrivals if name != "self"}
    assert set(TRUTH) == truth
    assert set(SYNTHETIC) - truth == synthetic - {"conventions"}
    assert set(TABLE) - truth == set(inspect.signature(eh.TableWorld).parameters) - {"data"}


def test_a_table_is_found_from_the_file_and_not_from_the_working_folder(folder, monkeypatch):
    (folder / "deep").mkdir(exist_ok=True)
    path = put(folder / "deep", PEOPLE.replace("people.csv", "../people.csv"))
    monkeypatch.chdir("/")
    here = read_experiment(path)
    monkeypatch.chdir(folder / "deep")
    there = read_experiment(Path("x.toml"))
    worlds = [next(iter(experiment.points(eh.PAPER))).world for experiment in (here, there)]
    assert worlds[0].n_rows == 900 and worlds[0].n_arms == 6
    assert worlds[0].fingerprint() == worlds[1].fingerprint()


def test_a_changed_cell_changes_the_fingerprint(folder):
    table = people()
    table.to_csv(folder / "changing.csv", index=False)
    path = put(folder, PEOPLE.replace("people.csv", "changing.csv"))
    before = next(iter(read_experiment(path).points(eh.PAPER))).world.fingerprint()
    stamp = (folder / "changing.csv").stat().st_mtime_ns
    table.loc[17, "debt"] = 0.123456
    table.to_csv(folder / "changing.csv", index=False)
    os.utime(folder / "changing.csv", ns=(stamp + 1, stamp + 1))
    after = next(iter(read_experiment(path).points(eh.PAPER))).world.fingerprint()
    assert before != after


def test_a_policy_that_changed_under_a_running_python_is_refused(folder):
    """Its worker processes have the old code: results would be a mixture."""
    (folder / "changing_policy.py").write_text(MINE.replace("Mine", "Changing"))
    path = put(folder, WORLD.replace(BOTH, '["changing_policy.py:Changing"]'))
    read_experiment(path, allow_code=True)
    read_experiment(path, allow_code=True)
    (folder / "changing_policy.py").write_text(MINE.replace("Mine", "Changing") + "# more\n")
    with pytest.raises(ValueError, match=r"changing_policy\.py has changed since it was imported"):
        read_experiment(path, allow_code=True)


# Running and resuming -----------------------------------------------------------------------------


@pytest.mark.parametrize("text", [WORLD, PEOPLE], ids=["world", "table"])
def test_a_finished_point_is_not_computed_again(folder, text):
    parts = folder / "parts"
    text = text.replace("[10, 20]", "{ from = 10, to = 70, step = 10 }")
    experiment = read_experiment(put(folder, text))
    first, took = run_experiment(experiment, eh.PAPER, parts)
    assert took > 0.0
    assert first["true_regret"].isna().all() == (text.count("[data]") == 1)
    files = sorted(parts.iterdir())
    assert len(files) == 7
    marked = pd.read_csv(files[0])
    marked["share"] = -1.0
    marked.to_csv(files[0], index=False)
    files[1].unlink()
    files[2].write_text("garbage\n")
    files[3].write_bytes(files[3].read_bytes()[:200])
    files[4].write_bytes(bytes(range(256)))
    files[5].write_text(files[5].read_text().replace("GroupFairTopInterval", "Nobody"))
    files[6].unlink()
    (parts / "x-PAPER-999-unfinished.part").write_text("of a process that was killed")
    second, _ = run_experiment(experiment, eh.PAPER, parts)
    assert (second["share"] == -1.0).sum() == len(marked)
    kept = second["share"] != -1.0
    pd.testing.assert_frame_equal(first[kept], second[kept], check_exact=True)
    other_seed, _ = run_experiment(experiment.with_(seeds=2, seed=4), eh.PAPER, parts)
    assert not other_seed["perceived_regret"].equals(first["perceived_regret"])


@pytest.mark.parametrize("text", [WORLD, PEOPLE], ids=["world", "table"])
def test_a_part_that_was_cut_off_anywhere_is_computed_again(folder, text, monkeypatch):
    from evenhand.experiments import _checkpoints as module

    experiment = read_experiment(put(folder, text.replace("[10, 20]", "[10]")))
    whole, _ = run_experiment(experiment, eh.PAPER, folder / "parts")
    (path,) = (folder / "parts").iterdir()
    content = path.read_bytes()
    (point,) = experiment.points(eh.PAPER)
    assert module._finished(path, experiment, point) is not None
    for length in range(len(content)):
        path.write_bytes(content[:length])
        assert module._finished(path, experiment, point) is None, content[:length]
    again, _ = run_experiment(experiment, eh.PAPER, folder / "parts")
    pd.testing.assert_frame_equal(whole, again, check_exact=True)


DIES = """
import os, signal, sys
from evenhand.cli import main
from evenhand.experiments import _checkpoints as parts

play, points = parts.simulate, []

def dying(*place, progress, **settings):
    points.append(place)
    if len(points) == 2:  # the first one is finished, this one is in progress
        progress = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    return play(*place, progress=progress, **settings)

parts.simulate = dying
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_run_that_was_killed_is_resumed(folder):
    """As in a power cut, in the middle of the second point: nothing can be cleaned up."""
    text = PEOPLE.replace("[10, 20]", "{ from = 11, to = 18, step = 1 }")
    path = put(folder, text)
    command = [sys.executable, "-c", DIES, "run", str(path), "--out", str(folder / "out")]
    killed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    before = parts_of(folder / "out")
    assert len(before) == 1 and not (folder / "out" / "report.html").exists()
    result = evenhand("run", path, "--out", folder / "out")
    assert result.returncode == 0, result.stderr
    after = parts_of(folder / "out")
    assert len(after) == 8 and {name: after[name] for name in before} == before
    runs = pd.read_parquet(folder / "out" / "tables" / "runs.parquet")
    assert len(runs) == 8 * 2 * 2 and runs["true_regret"].isna().all()
    means = pd.read_csv(folder / "out" / "tables" / "means.csv")
    assert set(means["metric"]) == {"share", "perceived_regret", "explored"}


@pytest.mark.slow
def test_an_interrupted_run_is_resumed(tmp_path):
    options = ["paper", "--sweep", "ratio", "--seeds", "1000", "--out", str(tmp_path / "out")]
    process = subprocess.Popen(
        [sys.executable, "-m", "evenhand", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    parts = tmp_path / "out" / "parts"
    until(lambda: list(parts.glob("*.csv")), process)  # the first point is there
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130, errors
    assert "run the same command again" in errors and "Traceback" not in errors
    finished = list(parts.glob("*.csv"))
    assert 1 <= len(finished) < 14
    assert not list(parts.glob("*.part"))
    assert all(len(pd.read_csv(path)) == 4 * 1000 for path in finished)


ALONE = """
from pathlib import Path
import evenhand as eh
from evenhand.experiments._checkpoints import run_experiment
from evenhand.experiments.file import read_experiment
experiment = read_experiment(Path({path!r}), allow_code=True)
runs, _ = run_experiment(experiment, eh.PAPER, Path({parts!r}), workers=1)
runs.to_csv({table!r}, index=False)
"""


@pytest.fixture
def warm(tmp_path):
    process = Warm(tmp_path)
    yield process
    process.close()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_policy_in_a_file_beside_runs_and_its_changes_are_noticed(folder, warm):
    helper, policy = folder / "help_of_half.py", folder / "half_policy.py"
    helper.write_text("PART = 0.5\n")
    policy.write_text(
        "import evenhand as eh\nfrom help_of_half import PART\n"
        "class Half(eh.Policy):\n"
        "    def score(self, contexts):\n"
        "        estimate, width = self.intervals(contexts)\n"
        "        return estimate + PART * width\n"
    )
    both = '["TopInterval", "half_policy.py:Half"]'
    text = WORLD.replace(BOTH, both).replace("[10, 20]", "[60]")
    path = put(folder, text + '[output]\nfigures = []\ntables = ["csv"]\n')
    out = folder / "elsewhere" / "x-report"
    result = evenhand_process("run", path, "--allow-code")  # in processes, which import it too
    assert result.returncode == 0, result.stderr
    parts = parts_of(out)

    def by_policy(table):
        return table.pivot(index="replication", columns="policy", values="perceived_regret")

    def regret():
        """In a new process each time, which has not imported the file."""
        warm.run(ALONE.format(path=str(path), parts=str(out / "parts"), table=str(folder / "t")))
        return by_policy(pd.read_csv(folder / "t"))

    first = by_policy(pd.read_csv(out / "tables" / "runs.csv"))
    assert list(first.columns) == ["Half", "TopInterval"] and len(parts) == 1
    assert regret().equals(first) and parts_of(out) == parts
    policy.write_text(policy.read_text().replace("estimate + PART", "-estimate - PART"))
    second = regret()
    assert second["TopInterval"].equals(first["TopInterval"])
    assert (second["Half"] > first["Half"] + 1.0).all()  # now it looks for the worst arm
    helper.write_text("PART = -500\n")
    third = regret()
    assert not third["Half"].equals(second["Half"]) and len(parts_of(out)) == 3


def test_a_cell_that_changed_is_noticed(folder):
    path = put(folder, PEOPLE.replace("[10, 20]", "[50]"))
    for change, expected in ((None, 1), ("debt", 2), ("paid", 3), ("sex", 4), ("word", 4)):
        if change:  # `word` is not used
            table = pd.read_csv(folder / "people.csv")
            other = {"sex": "FM".replace(table.loc[5, "sex"], ""), "word": "perhaps"}
            table.loc[5, change] = other.get(change, 0)
            table.to_csv(folder / "people.csv", index=False)
        run_experiment(read_experiment(path), eh.PAPER, folder / "parts")
        assert len(list((folder / "parts").iterdir())) == expected, change


# The commands -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_paper_command_writes_everything_and_resumes(tmp_path):
    out = tmp_path / "report"
    options = ("paper", "--sweep", "ratio", "--sweep", "delta", "--seeds", 3, "--out", out)
    first = evenhand(*options)
    assert first.returncode == 0, first.stderr
    figures = {path.name for path in (out / "figures").iterdir()}
    expected = {
        f"{name}-{kind}-{reading}.{form}"
        for name in ("ratio", "delta")
        for kind in ("share", "regret")
        for reading in ("PAPER", "AUTHORS_CODE")
        for form in ("pdf", "svg", "png")
    } | {
        f"{name}-beyond-{kind}-PAPER.{form}"
        for name in ("ratio", "delta")
        for kind in ("share", "regret")
        for form in ("pdf", "svg", "png")
    }
    assert figures == expected
    assert (out / "figures" / "ratio-share-PAPER.pdf").read_bytes().startswith(b"%PDF")
    assert (out / "figures" / "ratio-share-PAPER.png").read_bytes().startswith(b"\x89PNG")
    runs = pd.read_parquet(out / "tables" / "runs.parquet")
    assert len(runs) == (2 * 4 + 2) * 3 * (7 + 7)  # once more: PooledGroupFair and the floor
    csv = pd.read_csv(out / "tables" / "runs.csv", keep_default_na=False)  # no panels: ""
    pd.testing.assert_frame_equal(runs, csv, check_dtype=False)
    page = (out / "report.html").read_text()
    assert page.count("<svg") == 8 + 4 and "http-equiv" not in page
    assert "src=" not in page and 'href="http' not in page  # nothing to fetch
    assert "matches the number of sensitive arms" in page
    assert page.index("Beyond the paper") < page.index("is within 1 point of proportional")
    assert json.loads((out / "run.json").read_text())["rounds"] == len(runs) * 1000

    times = parts_of(out)
    again = evenhand("paper", "--sweep", "ratio", "--seeds", 3, "--out", out)
    assert again.returncode == 0, again.stderr
    assert parts_of(out) == times
    ratio = runs[runs["experiment"].isin(["ratio", "ratio-beyond"])]
    assert (out / "tables" / "runs.csv").read_text() == ratio.to_csv(index=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("paper", "--sweep", "colour"), "experiment is 'colour'; allowed are T, ablation, arms"),
        (("paper", "--seeds", "0"), "--seeds is 0"),
        (("paper", "--seeds", "many"), "--seeds is 'many'; allowed is a whole number"),
        (("paper", "--seed", "-3"), "--seed is -3"),
        (("paper", "--workers", "0", "--sweep", "ratio"), "workers is 0"),
        (("paper", "--conventions", "MINE"), "MINE"),
        (("paper", "--conventions", "AUTHORS_CODE", "--sweep", "rate"), "nothing to run"),
        (("paper", "--data", "nowhere"), "--data is 'nowhere', which is not a folder"),
        (("paper", "--out", "/proc/nowhere", "--sweep", "ratio", "--seeds", "1"), "/proc/nowhere"),
        (("run",), "FILE"),
        (("run", "absent.toml"), "FILE is 'absent.toml', but there is no such"),
        (("run", "mortgage", "--seeds", "0"), "--seeds is 0"),
        (("run", "mortgage", "--data", "nowhere"), "--data is 'nowhere', which is not a folder"),
        (("init", "--like", "colour"), "--like is 'colour'; allowed are T, ablation, arms"),
        (("fly",), "fly"),
        ((), "COMMAND"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, words, tmp_path):
    result = evenhand(*arguments, cwd=tmp_path)
    assert result.returncode == 2, result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("evenhand: ")]
    assert len(lines) == 1 and words in lines[0], result.stderr
    assert "Traceback" not in result.stderr


def test_help_and_version():
    assert evenhand_process("--version").stdout == f"evenhand {eh.__version__}\n"
    shown = evenhand("paper", "--help").stdout
    for option in ("--sweep", "--seeds", "--out", "--seed", "--conventions", "--workers", "--dask"):
        assert option in shown


@pytest.mark.slow
def test_init_and_run_as_it_is(tmp_path):
    assert evenhand("init", cwd=tmp_path).returncode == 0
    result = evenhand("run", "experiment.toml", "--seeds", 2, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    out = tmp_path / "experiment-report"
    runs = pd.read_csv(out / "tables" / "runs.csv")
    assert len(runs) == 4 * 4 * 2 and runs["true_regret"].isna().all()
    assert set(runs["experiment"]) == {"experiment"} and set(runs["conventions"]) == {"PAPER"}
    page = (out / "report.html").read_text()
    assert page.count("<svg") == 2 and "Mortgage applications" in page
    assert "What the paper says" not in page


@pytest.mark.slow
def test_init_for_a_table_and_run_with_the_gaps_filled_in(folder):
    path = folder / "experiments" / "loans.toml"
    assert evenhand("init", path, "--data", folder / "people.csv").returncode == 0
    result = evenhand("run", path)  # before anything is filled in
    assert result.returncode == 2 and "data.group is still a question mark" in result.stderr
    text = path.read_text()
    for key, value in (("group", "sex"), ("sensitive", "F"), ("reward", "paid")):
        text = text.replace(f'{key} = "?"', f'{key} = "{value}"')
    path.write_text(text.replace('"?" =', "age ="))
    result = evenhand("run", path, "--seeds", 2)
    assert result.returncode == 0, result.stderr
    assert "rounds; open loans-report/report.html" in result.stdout
    runs = pd.read_csv(folder / "elsewhere" / "loans-report" / "tables" / "runs.csv")
    assert len(runs) == 4 * 4 * 2


@pytest.mark.slow
def test_output_is_respected(folder, capsys):
    text = WORLD + '[output]\nfolder = "results"\nfigures = ["svg"]\ntables = ["csv"]\n'
    assert main(["run", str(put(folder, text))]) == 0
    out = Path("results")
    assert {path.name for path in (out / "figures").iterdir()} == {
        "x-share-PAPER.svg",
        "x-regret-PAPER.svg",
    }
    assert {path.name for path in (out / "tables").iterdir()} == {"runs.csv", "means.csv"}
    assert "open results/report.html" in capsys.readouterr().out
    assert main(["run", str(put(folder, text)), "--out", "given"]) == 0  # it wins
    assert Path("given/report.html").is_file()
    none = WORLD + "[output]\nfigures = []\ntables = []\n"
    assert main(["run", str(put(folder, none)), "--out", "none"]) == 0
    assert not list(Path("none").rglob("*.svg")) and not list(Path("none/tables").iterdir())
    assert Path("none/report.html").read_text().count("<svg") == 2


@pytest.mark.slow
def test_panels_and_labels_reach_the_tables_and_the_report(folder):
    of_two = """[{ policy = "TopInterval", label = "<i>NA</i>" }, { policy = "GroupFairTopInterval",
        label = "NA" }]"""
    text = PEOPLE.replace(BOTH, of_two.replace("\n", ""))
    text += '[panels]\nparameter = "delta"\nvalues = [0.1, 0.5]\n'
    path = put(folder, text)
    for _ in range(2):  # the second time from finished parts
        assert main(["run", str(path)]) == 0
        runs = pd.read_parquet("x-report/tables/runs.parquet")
        assert list(dict.fromkeys(runs["panel"])) == ["delta = 0.1", "delta = 0.5"]
        assert list(dict.fromkeys(runs["policy"])) == ["<i>NA</i>", "NA"]
    page = Path("x-report/report.html").read_text()
    assert "<i>" not in page and "delta = 0.5" in page and "cannot be known from this table" in page


@pytest.mark.slow
def test_a_bundled_experiment_runs_by_its_name(folder):
    assert main(["run", "delta", "--seeds", "1"]) == 0
    assert Path("delta-report/report.html").is_file()


# Files to start from ------------------------------------------------------------------------------


def test_bundled_files_are_files_like_any_other(tmp_path):
    """A copy elsewhere describes the same experiment; only the link to the paper is gone."""
    for name in ("T", "arms", "error", "ratio", "c", "d", "delta", "rate"):
        own = read_experiment(bundled.path_of(name))
        copy = read_experiment(put(tmp_path, bundled.copy_of(name), name="copy.toml"))
        assert copy.in_paper == "" and copy.published is None
        for field in ("title", "policies", "sweep", "multiples", "place", "run", "under", "axis"):
            assert getattr(copy, field) == getattr(own, field), (name, field)


def test_init_writes_what_run_reads(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    assert capsys.readouterr().out == "wrote experiment.toml; next: evenhand run experiment.toml\n"
    assert main(["init"]) == 2
    assert "FILE experiment.toml already exists; give another, or --force" in (
        capsys.readouterr().err
    )
    assert main(["init", "--force"]) == 0
    assert main(["init", "deep/er/copy.toml", "--like", "T"]) == 0
    assert read_experiment(Path("deep/er/copy.toml")).sweep.values[-1] == 1000
    for arguments, says in (
        (
            ["init", "a.toml", "--like", "colour"],
            "--like is 'colour'; allowed are T, ablation, arms",
        ),
        (["init", "a.toml", "--data", "absent.csv"], "--data is 'absent.csv', but there is no"),
        (["init", "a.toml", "--like", "T", "--data", "a.csv"], "--like and --data are both given"),
    ):
        capsys.readouterr()
        assert main(arguments) == 2
        assert says in capsys.readouterr().err
        assert not Path("a.toml").exists()


def test_every_key_of_the_template_is_a_key(folder):
    """Including those that are commented out: without the # the file is still valid."""
    (folder / "template_policy.py").write_text(MINE)
    text = template.for_table(folder / "people.csv", folder / "new.toml")
    lines = [
        line.removeprefix("# ") if " = " in line or line.startswith("# [") else line
        for line in text.splitlines()
    ]
    text = "\n".join(line for line in lines if not line.strip().startswith("# "))
    for old, new in (
        ('group = "?"', 'group = "sex"'),
        ('sensitive = "?"', 'sensitive = "F"'),
        ('reward = "?"', 'reward = "word"'),
        ('"?" =', "age ="),
        ('    "NaiveFair",', '    "NaiveFair",\n    "template_policy.py:Mine",'),
        ("leave_out = []", 'leave_out = ["race"]'),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    experiment = read_experiment(put(folder, text, name="new.toml"), allow_code=True)
    assert experiment.output.folder == "my-report" and len(experiment.panels.values) == 2
    assert experiment.place["reward_values"] == {"yes": 1, "no": 0}


def test_the_template_of_a_table_lists_its_columns(folder):
    text = template.for_table(folder / "people.csv", folder / "deep" / "new.toml")
    assert "900 rows of people.csv" in text
    for line in (
        "#   sex   2 values: ",
        "#   race  3 values: ",
        "#   age   numbers from 18 to 79",
        'file = "../people.csv"',
        "which group a row belongs to; perhaps sex, race, word",
    ):
        assert line in text
    assert text.count('= "?"') == 3 and text.count('"?" = ') == 1


@pytest.mark.slow
@settings(quick, max_examples=50)
@given(
    names=st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=4, unique=True),
    values=st.lists(st.one_of(st.none(), st.text(max_size=60)), min_size=1, max_size=3),
)
def test_the_template_of_any_table_is_toml(folder, names, values):
    """Whatever the names and values are: they are in comments, on one line."""
    try:
        pd.DataFrame(dict.fromkeys(names, values)).to_parquet(folder / 'od"d.parquet')
    except UnicodeEncodeError:
        return  # half a character, which no file can hold
    text = template.for_table(folder / 'od"d.parquet', folder / "odd.toml")
    data = tomllib.loads(text)
    assert data["data"]["file"] == 'od"d.parquet'
    assert set(data["data"]["arms"]) == {"?"} and data["data"]["group"] == "?"


def test_the_template_names_marks_and_columns_that_identify_rows(folder):
    rows = [f"{i},{'?' if i % 9 == 0 else i / 2},{'FM'[i % 2]}" for i in range(60)]
    (folder / "marked.csv").write_text("person,debt,sex\n" + "\n".join(rows) + "\n")
    text = template.for_table(folder / "marked.csv", folder / "marked.toml")
    assert 'missing_marks = ["?"]\n' in text
    assert "#   debt    numbers from 0.5 to 29.5, 7 missing\n" in text
    assert "#   person  numbers from 0 to 59; identifies rows, so it is not a feature" in text


def test_the_template_of_a_table_with_lists_in_it(folder):
    table = pd.DataFrame({"list": [[1], [2]], "none": [None, None], "yes": [True, False]})
    table.to_parquet(folder / "lists.parquet")
    text = template.for_table(folder / "lists.parquet", folder / "lists.toml")
    assert "#   list  " in text
    assert "#   none  no usable values, 2 missing\n" in text
    assert "#   yes   2 values: True, False\n" in text
