"""What a report and the command line say about a run. Nothing is simulated: runs are invented."""

from __future__ import annotations

import html
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import dask
import numpy as np
import pandas as pd
import pytest

from evenhand import charts
from evenhand.cli import main
from evenhand.experiments import bundled
from evenhand.experiments import run as running
from evenhand.experiments.file import read_experiment
from evenhand.experiments.run import run_all

SINGLE = """\
policies = ["TopInterval", "GroupFairTopInterval"]
replications = 3
[run]
horizon = 10
[world]
n_arms = 4
[output]
figures = ["svg"]
"""
SWEPT = SINGLE.replace(
    "horizon = 10", 'delta = 0.2\n[sweep]\nparameter = "horizon"\nvalues = [10, 20]'
)
MADE_UP = """
import pandas as pd
from evenhand.experiments import run as running

def made_up(experiment, conventions, folder, workers=None, client=None, tell=None):
    rows = [
        (policy, point.panel, point.x, number, point.horizon, 0.5, 3.0 + number, 2.0 + number, 0.1)
        for point in experiment.points(conventions)
        for policy in experiment.policies
        for number in range(experiment.replications)
    ]
    names = ["policy", "panel", "x", "replication", "horizon", "share", "perceived_regret",
             "true_regret", "explored"]
    runs = pd.DataFrame(rows, columns=names)
    return runs.assign(experiment=experiment.name, conventions=conventions.name), 0.1

running.run_experiment = made_up
running._warm_up = lambda experiments: None
"""


@pytest.fixture
def quick(monkeypatch):
    """Runs and pictures that take no time."""
    monkeypatch.setattr(running, "run_experiment", running.run_experiment)
    monkeypatch.setattr(running, "_warm_up", running._warm_up)
    exec(MADE_UP, {})
    monkeypatch.setattr(charts, "save", lambda *_: [])
    monkeypatch.setattr(charts, "to_svg", lambda _: "<svg></svg>")


def put(folder, text, name="x.toml"):
    (folder / name).write_text(text)
    return folder / name


def said_in(path):
    """The words of a page, without its pictures."""
    text = re.sub("<(svg|style).*?</(svg|style)>", "", path.read_text(), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", text)).split())


def report_on(folder, text, **changes):
    experiment = read_experiment(put(folder, text)).with_(**changes)
    return said_in(run_all([experiment], folder / "out", "made up").report)


# The report


@pytest.mark.usefixtures("quick")
def test_a_report_on_a_single_point_mentions_dots(tmp_path):
    text = report_on(tmp_path, SINGLE)
    assert "Dots and squares are means over replications" in text
    assert "perceived regret as dots, true regret as squares" in text
    for words in ("Lines are", "bands", "solid", "dashed"):
        assert words not in text
    swept = report_on(tmp_path, SWEPT)
    assert "Lines are means over replications, bands their" in swept and "Dots and" not in swept
    assert "perceived regret solid, true regret dashed" in swept
    assert "There are no intervals" in report_on(tmp_path, SWEPT, seeds=1)


@pytest.mark.usefixtures("quick")
def test_a_report_states_all_numbers_of_a_made_up_world(tmp_path):
    assert (
        "The world: arms 4, sensitive arms 2, features 2, mean of the bias 10, range of the "
        "coefficients 10, lowest coefficient 30, standard deviation of the noise 1, rounds T 10 to "
        "20, delta of the policies 0.2."
    ) in report_on(tmp_path, SWEPT)
    special = (
        'conventions = ["PAPER", "AUTHORS_CODE"]\n' + SWEPT + "[under.PAPER.world]\nnoise = 3\n"
    )
    text = report_on(tmp_path, special)
    assert re.search("The world under PAPER: [^.]* noise 3,", text)
    assert re.search("The world under AUTHORS_CODE: [^.]* noise 1,", text)


@pytest.mark.usefixtures("quick")
def test_a_report_on_the_paper_says_what_is_not_in_it(tmp_path):
    synthetic = [entry for entry in bundled.in_paper() if not entry.real]
    real = [entry.name for entry in bundled.in_paper() if entry.real]
    assert real == ["family-income", "compas"]
    text = bundled.path_of("ratio").read_text()
    (tmp_path / "published.csv").write_text(
        bundled.path_of("T").with_name("published.csv").read_text()
    )
    experiment = read_experiment(put(tmp_path, text, "ratio.toml")).with_(seeds=2)
    said = said_in(run_all([experiment], tmp_path / "out", "made up").report)
    assert (
        "Not in this report: the paper's experiments on real data (family-income, Figures 3a"
        in said
    )
    assert "which evenhand paper --real adds" in said and len(synthetic) == 8
    assert all(
        f"{entry.name}, {entry.where}" in said for entry in synthetic if entry.name != "ratio"
    )
    assert "ratio, Figures" not in said
    assert "crosses: published" in said
    assert "Not in this report" not in report_on(tmp_path, SWEPT)  # it is not of the paper


PEOPLE = """\
policies = ["TopInterval", "GroupFairTopInterval"]
replications = 3
[data]
file = "people.csv"
group = "sex"
sensitive = "F"
reward = "paid"
missing = "fill"
[data.arms]
age = 2
[sweep]
parameter = "delta"
values = [0.1, 0.000001]
[run]
horizon = 1000000
[output]
figures = ["svg"]
"""


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.usefixtures("quick")
def test_a_report_on_a_table_says_what_was_filled_in_and_left_out(tmp_path):
    draw = np.random.default_rng(7)
    n = 300
    people = pd.DataFrame({"sex": draw.choice(["F", "M"], n), "age": draw.integers(18, 80, n)})
    people["job"] = draw.choice(["cook", "judge", "nurse"], n)
    people["debt"] = np.where(np.arange(n) < 40, np.nan, draw.random(n))
    people["paid"], people["person"] = draw.random(n), draw.permutation(n)
    people.to_csv(tmp_path / "people.csv", index=False)
    jobs = ", ".join(f"job={job}" for job in people["job"].value_counts().index[1:])
    text = report_on(tmp_path, PEOPLE)
    assert "0 rows were left out for missing values, and 40 rows have values filled in." in text
    assert "Left out as identifiers of rows: person." in text
    assert f"Features: intercept, {jobs}, debt, debt is missing." in text
    coded = report_on(tmp_path, PEOPLE.replace('"fill"', '"fill"\nnominal = "codes"'))
    assert "Features: job, debt, debt is missing. Categories by code: job." in coded
    assert "of job" not in coded and "Nothing is said about the bias on job" in coded
    dropped = report_on(tmp_path, PEOPLE.replace('"fill"', '"drop"'))
    assert "40 rows were left out for missing values, and 0 rows have values filled in." in dropped
    # The right end of the axis is a delta, and small numbers are written out.
    assert "The price of fairness at delta = 0.1," in text and "0.000001" in text
    assert "1e-06" not in text and "1e+06" not in text


def test_rows_with_gaps_are_numbered_as_people_count_them(tmp_path, capsys):
    """The last of 2,381 rows of a file is row 2382: the column names are row 1."""
    rows = ["F,20,1.5", "M,50,2.5"] * 1190 + ["F,30,"]
    (tmp_path / "people.csv").write_text("sex,age,paid\n" + "\n".join(rows) + "\n")
    path = put(tmp_path, PEOPLE.replace('"fill"', '"error"'))
    assert main(["run", str(path)]) == 2
    errors = capsys.readouterr().err
    assert "missing values in 1 of 2,381 rows (paid 1), the first in row 2382 of the file" in errors
    assert "(row 1 has the column names)" in errors


# The command line


@pytest.mark.usefixtures("quick")
def test_without_a_terminal_every_step_is_a_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", str(put(tmp_path, SWEPT))]) == 0
    out, err = capsys.readouterr()
    steps = [line.split("%")[1].strip() for line in err.splitlines()]
    assert steps == [
        "getting the policies ready",
        "PAPER: x",
        "writing tables",
        "drawing figures",
        "writing the report",
    ]
    assert "compiling" not in err  # it is said only when it is so
    assert out.endswith("report.html\n")


def test_a_long_step_is_reported_now_and_then(monkeypatch, capsys):
    from evenhand.cli import _terminal as progress

    clock = iter([100.0, 101.0, 110.0, 111.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    lines = progress.Lines(200)
    for _ in range(4):
        lines("a step", 50)
    assert capsys.readouterr().err == " 25 %  a step\n 75 %  a step\n"


def test_the_demo_reports_its_steps(tmp_path, monkeypatch, capsys):

    def stop():
        raise KeyboardInterrupt

    monkeypatch.setattr("evenhand.experiments._demo.play", stop)
    assert main(["demo", "--out", str(tmp_path / "x.html")]) == 130
    err = capsys.readouterr().err
    assert err.startswith("playing three policies on mortgage applications\n")
    assert err.endswith("\nevenhand: stopped\n")  # there is nothing to continue from


@pytest.fixture
def nothing_runs(monkeypatch):
    """Mistakes are reported before anything is run or compiled."""

    def fail(*_, **__):
        raise AssertionError("it ran")

    monkeypatch.setattr(running, "_warm_up", fail)
    monkeypatch.setattr("evenhand.experiments._demo.play", fail)


def refused(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("evenhand: "), err
    return err


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize("command", ["run", "paper", "demo", "audit", "value"])
@pytest.mark.parametrize("way", ["file", "folder", "locked"])
def test_a_bad_out_is_reported_first(command, way, tmp_path, monkeypatch, capsys):
    ending = {"demo": ".html", "audit": ".html", "value": ".json"}.get(command, "")
    inside = f"o{ending}"
    (tmp_path / "log.csv").write_text("arm,reward,pscore\n")
    out = tmp_path / "there" / inside
    if way == "file":  # where a folder is needed
        (tmp_path / "there").write_text("a file")
    elif way == "folder":  # where a file is needed
        (out if ending else out / "report.html").mkdir(parents=True)
    else:
        (tmp_path / "there").mkdir()
        refuse_to_write(monkeypatch, tmp_path / "there")
    first = {
        "run": ["run", put(tmp_path, SWEPT)],
        "paper": ["paper", "--sweep", "ratio"],
        "demo": ["demo"],
        "audit": ["audit", tmp_path / "log.csv"],
        "value": ["value", tmp_path / "log.csv", "--uniform"],
    }[command]
    message = refused(capsys, *first, "--out", out)
    assert f"--out is {str(out)!r}" in message and "name another" in message


def refuse_to_write(monkeypatch, folder):
    """As on a read-only disk; the tests may be run by root, whom no mode stops."""
    import tempfile

    before = tempfile.TemporaryFile

    def file(*arguments, dir=None, **options):
        if dir is not None and str(dir).startswith(str(folder)):
            raise PermissionError(13, "Permission denied", str(dir))
        return before(*arguments, dir=dir, **options)

    monkeypatch.setattr(tempfile, "TemporaryFile", file)


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "colour://x"])
def test_a_cluster_that_does_not_answer_is_reported_first(address, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        message = refused(capsys, "run", put(tmp_path, SWEPT), "--dask", address)
    assert f"--dask is {address!r}, where no Dask scheduler answers" in message


@pytest.mark.usefixtures("nothing_runs")
def test_code_is_run_only_where_it_is_allowed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep").mkdir()
    (tmp_path / "sly_policy.py").write_text("raise SystemExit('it ran')")
    path = put(tmp_path / "deep", SWEPT.replace('"TopInterval"', '"../sly_policy.py:Sly"'))
    message = refused(capsys, "run", path)
    assert f"would run the Python code in {tmp_path / 'sly_policy.py'}" in message
    assert "--allow-code" in message and "line 1" in message
    assert "SystemExit: it ran" in refused(capsys, "run", path, "--allow-code")
    with pytest.raises(ValueError, match="allow_code=True"):
        read_experiment(path)
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    assert "Python code from any path" in " ".join(capsys.readouterr().out.split())


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--seed", "1" + "0" * 400], "--seed is a whole number of about 400 digits; allowed"),
        (["--seed", "9" * 5000], "--seed"),
        (["--seeds", "10000000000"], "--seeds is 10000000000; allowed is a whole number up to"),
        (["--workers", "1" + "0" * 400], "--workers is a whole number of about 400 digits"),
    ],
)
def test_numbers_that_are_too_large_are_reported(flags, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for first in (["run", put(tmp_path, SWEPT)], ["paper", "--sweep", "ratio"]):
        assert words in refused(capsys, *first, *flags)


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize(
    ("key", "size"),
    [("n_features", 10**6), ("n_features", 2**63 - 1), ("n_arms", 10**9), ("n_arms", 2**63 - 1)],
)
def test_a_world_too_large_for_memory_is_reported(key, size, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = SWEPT.replace("n_arms = 4", f"{key} = {size}\nn_sensitive = 1")
    assert f"world.{key} is {size}" in refused(capsys, "run", put(tmp_path, text))


def test_too_little_memory_is_one_line(monkeypatch, capsys):
    def fail(_):
        raise MemoryError("too\nmuch")

    monkeypatch.setattr("evenhand.cli.data._list", fail)
    message = refused(capsys, "data", "list")
    assert message.endswith("(too much)\n") and "; give fewer" in message


def test_files_that_are_nested_deeply_are_one_line(tmp_path, capsys):
    deep = put(tmp_path, "title = " + "[" * 9000 + "]" * 9000 + "\n")
    refused(capsys, "run", deep)
    (tmp_path / "log.csv").write_text("arm,reward,pscore\n")
    refused(capsys, "audit", tmp_path / "log.csv", "--columns", deep, "--out", tmp_path / "a.html")
    (tmp_path / "log.json").write_text("[" * 100_000 + "]" * 100_000)
    refused(capsys, "value", tmp_path / "log.json")
    policy = tmp_path / "policy.json"
    policy.write_text('{"a": ' * 100_000 + "1" + "}" * 100_000)
    with pytest.raises(RecursionError):
        json.loads(policy.read_text())
    refused(capsys, "value", tmp_path / "log.csv", "--policy", policy)


@pytest.mark.slow
def test_a_stop_while_drawing_is_reported(tmp_path):
    """By Ctrl-C, in its own process; again and again, as people press it."""
    code = MADE_UP + "import sys\nfrom evenhand.cli import main\nsys.exit(main(sys.argv[1:]))"
    path = put(tmp_path, SWEPT.replace('["svg"]', '["pdf", "svg", "png"]'))
    process = subprocess.Popen(
        [sys.executable, "-c", code, "run", str(path), "--out", str(tmp_path / "out")],
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        if "drawing" in line:
            process.send_signal(signal.SIGINT)
            break
    _, errors = process.communicate()
    assert process.returncode == 130
    assert errors == "\nevenhand: stopped; run the same command again to continue\n"


def test_a_second_ctrl_c_does_not_cut_the_line(monkeypatch, capsys):
    """It comes while the line is being written."""

    class Slow:
        def write(self, text):
            signal.raise_signal(signal.SIGINT)
            written.append(text)

        def flush(self):
            pass

    def stop(_):
        raise KeyboardInterrupt

    written = []
    monkeypatch.setattr("evenhand.cli.data._list", stop)
    monkeypatch.setattr(sys, "stderr", Slow())
    handler = signal.getsignal(signal.SIGINT)
    assert main(["data", "list"]) == 130
    assert written == ["\nevenhand: stopped\n"] and signal.getsignal(signal.SIGINT) is handler


def test_make_says_what_it_does_before_it_takes_long():
    result = subprocess.run(
        ["make", "--dry-run", "paper", "VENV=absent"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    words = {
        "-m venv": 'echo "making a Python environment',
        "--editable": 'echo "installing evenhand',
        "evenhand paper": 'echo "running the paper',
    }
    for long, said in words.items():
        assert said in result.stdout[: result.stdout.index(long)], long
