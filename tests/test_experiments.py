"""The sweeps as data, resuming, the report and its claims, on few replications."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.experiments.claims import CLAIMS, FAILS, HOLDS, PARTLY, Means
from evenhand.experiments.parts import run_sweep
from evenhand.experiments.sweep import PAPER_FOLDER, paper_sweeps, read_sweep


def evenhand(*arguments, **options):
    """The command line as a user has it, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "evenhand", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_the_published_grids():
    sweeps = paper_sweeps()
    rounds = sum(
        sweep.rounds(eh.AUTHORS_CODE)
        for sweep in sweeps.values()
        if "AUTHORS_CODE" in sweep.conventions
    )
    assert rounds == 28_320_000
    values = {name: list(sweep.values) for name, sweep in sweeps.items()}
    assert values["T"] == list(range(20, 1001, 20))
    assert values["arms"] == list(range(10, 101, 10))
    assert values["error"] == list(range(10))
    assert values["ratio"] == list(range(2, 9))
    assert values["c"] == list(range(2, 11))
    assert values["d"] == list(range(2, 41, 2))
    assert values["delta"] == [0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5]


def test_points_hold_all_else_fixed():
    sweeps = paper_sweeps()
    arms = [point.world for point in sweeps["arms"].points(eh.PAPER)]
    assert [(w.n_arms, w.n_sensitive) for w in arms] == [(n, n // 2) for n in range(10, 101, 10)]
    features = {
        reading.name: {point.world.n_features for point in sweeps["error"].points(reading)}
        for reading in (eh.PAPER, eh.AUTHORS_CODE)
    }
    assert features == {"PAPER": {5}, "AUTHORS_CODE": {2}}
    deltas = [point.settings["delta"] for point in sweeps["delta"].points(eh.PAPER)]
    assert deltas == [0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = 1\ntitle = 2\n", "sweep.toml: .*line 2"),
        ("title = 'x'", "missing or unknown"),
        ((PAPER_FOLDER / "T.toml").read_text().replace("NaiveFair", "Nobody"), "'Nobody'"),
        (
            (PAPER_FOLDER / "error.toml").read_text().replace("under.PAPER", "under.MINE"),
            "'MINE' are unknown",
        ),
    ],
)
def test_a_bad_file_is_told(tmp_path, text, words):
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        read_sweep(path)


def test_an_unknown_setting_is_told(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text((PAPER_FOLDER / "T.toml").read_text() + "\ncolour = 3\n")  # under [run]
    with pytest.raises(ValueError, match=r"policy TopInterval: .*colour"):
        run_sweep(read_sweep(path), eh.PAPER, tmp_path)


def test_a_finished_point_is_not_computed_again(tmp_path):
    sweep = paper_sweeps()["ratio"].with_(seeds=2, seed=3)
    first, took = run_sweep(sweep, eh.PAPER, tmp_path)
    assert took > 0.0
    files = sorted(tmp_path.iterdir())
    assert len(files) == 7
    marked = pd.read_csv(files[0])
    marked["share"] = -1.0
    marked.to_csv(files[0], index=False)
    files[1].unlink()
    files[2].write_text("garbage\n")
    files[3].write_text(files[3].read_text()[:200])
    second, _ = run_sweep(sweep, eh.PAPER, tmp_path)
    assert (second["share"] == -1.0).sum() == len(marked)
    kept = second["share"] != -1.0
    pd.testing.assert_frame_equal(first[kept], second[kept])
    other_seed, _ = run_sweep(sweep.with_(seeds=2, seed=4), eh.PAPER, tmp_path)
    assert not other_seed["true_regret"].equals(first["true_regret"])


def made_up(change=lambda runs: runs):
    """Runs in which every claim holds, by numbers of our own."""
    rows = []
    for name, sweep in paper_sweeps().items():
        last = len(sweep.values) - 1
        for i, x in enumerate(sweep.values):
            end = i / last
            for policy in sweep.policies:
                share = {"GroupFairTopInterval": 0.5, "NaiveFair": 0.5}.get(policy, 0.4 - 0.2 * end)
                if name == "ratio" and policy == "GroupFairTopInterval":
                    share = x / 10
                if name == "arms" and policy == "IntervalChaining":
                    share = 0.2 + 0.2 * end
                true = {"GroupFairTopInterval": 3.0, "NaiveFair": 9.0}.get(policy, 4 + 3 * end)
                perceived = {"TopInterval": 3.0, "NaiveFair": 9.0}.get(policy, 5.0)
                if policy == "IntervalChaining":
                    perceived = 4.0
                if name == "arms" and policy == "IntervalChaining":
                    true, perceived = 5 + 20 * end, 5 + 20 * end
                if name == "rate":
                    true = 5 * x ** (-0.4)
                rows.append((name, policy, x, share, perceived, true))
    columns = ["sweep", "policy", "x", "share", "perceived_regret", "true_regret"]
    return Means(change(pd.DataFrame(rows, columns=columns)))


def test_claims_hold_for_numbers_that_say_so():
    verdicts = {claim.says: claim.check(made_up()).verdict for claim in CLAIMS}
    assert set(verdicts.values()) == {HOLDS}, verdicts


def test_claims_fail_for_numbers_that_deny_them():
    def deny(runs):
        # Everybody alike, with shares far from fair and regret that grows with T.
        return runs.assign(
            share=0.9,
            perceived_regret=3.0,
            true_regret=np.where(runs["sweep"] == "rate", 5.0, 3.0 + (runs["x"] % 7)),
        )

    verdicts = {claim.says: claim.check(made_up(deny)).verdict for claim in CLAIMS}
    failed = [says for says, verdict in verdicts.items() if verdict == FAILS]
    assert len(failed) >= len(CLAIMS) - 2, verdicts
    assert set(verdicts.values()) <= {FAILS, PARTLY, HOLDS}


def test_paper_command_writes_everything_and_resumes(tmp_path):
    out = tmp_path / "report"
    options = ("paper", "--sweep", "ratio", "--sweep", "delta", "--seeds", 3, "--out", out)
    first = evenhand(*options)
    assert first.returncode == 0, first.stderr
    figures = {path.name for path in (out / "figures").iterdir()}
    expected = {
        f"{sweep}-{kind}-{reading}.{form}"
        for sweep in ("ratio", "delta")
        for kind in ("share", "regret")
        for reading in ("PAPER", "AUTHORS_CODE")
        for form in ("pdf", "svg", "png")
    }
    assert figures == expected
    assert (out / "figures" / "ratio-share-PAPER.pdf").read_bytes().startswith(b"%PDF")
    assert (out / "figures" / "ratio-share-PAPER.png").read_bytes().startswith(b"\x89PNG")
    runs = pd.read_parquet(out / "tables" / "runs.parquet")
    assert len(runs) == 2 * 4 * 3 * (7 + 7)
    pd.testing.assert_frame_equal(runs, pd.read_csv(out / "tables" / "runs.csv"), check_dtype=False)
    page = (out / "report.html").read_text()
    assert page.count("<svg") == 8 and "http-equiv" not in page
    assert "src=" not in page and "href='http" not in page  # nothing to fetch
    assert "matches the number of sensitive arms" in page
    assert json.loads((out / "run.json").read_text())["rounds"] == len(runs) * 1000

    times = {path: path.stat().st_mtime_ns for path in (out / "parts").iterdir()}
    again = evenhand(*options)
    assert again.returncode == 0, again.stderr
    assert {path: path.stat().st_mtime_ns for path in (out / "parts").iterdir()} == times
    assert (out / "tables" / "runs.csv").read_text() == runs.to_csv(index=False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("paper", "--sweep", "colour"), "sweep is 'colour'; allowed are T, arms"),
        (("paper", "--seeds", "0"), "--seeds is 0"),
        (("paper", "--seeds", "many"), "invalid int value: 'many'"),
        (("paper", "--seed", "-3"), "--seed is -3"),
        (("paper", "--workers", "0", "--sweep", "ratio"), "workers is 0"),
        (("paper", "--conventions", "MINE"), "MINE"),
        (("paper", "--out", "/proc/nowhere", "--sweep", "ratio", "--seeds", "1"), "/proc/nowhere"),
        (("fly",), "fly"),
        ((), "COMMAND"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, words, tmp_path):
    found = evenhand(*arguments, cwd=tmp_path)
    assert found.returncode == 2, found.stderr
    lines = [line for line in found.stderr.splitlines() if line.startswith("evenhand: ")]
    assert len(lines) == 1 and words in lines[0], found.stderr
    assert "Traceback" not in found.stderr


def test_help_and_version():
    assert evenhand("--version").stdout == f"evenhand {eh.__version__}\n"
    shown = evenhand("paper", "--help").stdout
    for option in ("--sweep", "--seeds", "--out", "--seed", "--conventions", "--workers", "--dask"):
        assert option in shown


def test_an_interrupted_run_is_resumed(tmp_path):
    import signal
    import time

    options = ["paper", "--sweep", "ratio", "--seeds", "4000", "--out", str(tmp_path / "out")]
    process = subprocess.Popen(
        [sys.executable, "-m", "evenhand", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    parts = tmp_path / "out" / "parts"
    for _ in range(600):  # until the first point is there
        time.sleep(0.1)
        if parts.is_dir() and list(parts.glob("*.csv")):
            break
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert "run the same command again" in told and "Traceback" not in told
    finished = list(parts.glob("*.csv"))
    assert 1 <= len(finished) < 14
    assert not list(parts.glob("*.part"))
    assert all(len(pd.read_csv(path)) == 4 * 4000 for path in finished)
