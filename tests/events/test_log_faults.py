"""Data that cannot be read back are refused, journals are kept, and a log has one writer."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

import evenhand as eh
from evenhand.events._journal import journal_of
from evenhand.events._schema import NAMES
from evenhand.events.columns import ORDER
from evenhand.recording import _decision_records
from log_scripts import FEATURES, LABELS, alike, bits, closed, contexts_of, fill, make, refused

SUFFIXES = pytest.mark.parametrize("suffix", ["parquet", "csv"])
AWKWARD = ["a\rb", "\r", "\r\n", "\n", 'a "b"', ",", "\0", "a\0b", " a", "a ", " ", "", "NA", "nan"]
AWKWARD += ["-0", "01", "\t", "\ufeff", "\u2028", "\x1a", "#", "\\", "'"]


# What is refused before it is acknowledged ------------------------------------------------------


@pytest.mark.slow
@SUFFIXES
@pytest.mark.parametrize("candidates", [False, True])
def test_awkward_names_come_back(candidates, suffix, tmp_path):
    path, features = tmp_path / f"log.{suffix}", [f"x{name}" for name in AWKWARD]
    shape = (len(AWKWARD), len(features))
    policy = eh.UniformRandom(AWKWARD, n_features=len(features), seed=1)
    with eh.log_to(path, policy, features=features, candidates=candidates) as logged:
        logged.absorb(range(len(AWKWARD)), np.ones(shape), np.ones(len(AWKWARD)))
        logged.update(logged.select(np.full(shape, 0.5)), 1.0)
        writing = eh.read_log(path)
    log = eh.read_log(path)
    pd.testing.assert_frame_equal(log, writing)
    assert log["group"].tolist()[:-1] == AWKWARD and list(log.columns)[17:][: len(features)] == (
        features
    )
    assert eh.replay(path).groups.labels == tuple(AWKWARD)


@SUFFIXES
@pytest.mark.parametrize(
    ("labels", "features"), [(["a\ud800", "M"], None), (["F", "M"], ["\udfff"])]
)
def test_half_a_character_is_refused(labels, features, suffix, tmp_path):
    policy = eh.UniformRandom(labels, n_features=1)
    with pytest.raises(ValueError, match=r"called '.*\\ud.*; use other names") as error:
        eh.log_to(tmp_path / f"log.{suffix}", policy, features=features)
    assert "\n" not in str(error.value) and not list(tmp_path.iterdir())


@pytest.mark.parametrize("year", [0, -5000, 10_000, 100_000])
def test_a_clock_that_is_wrong_is_refused(year, tmp_path, monkeypatch):
    logged = eh.log_to(tmp_path / "log.csv", make())
    first = logged.select(contexts_of(0))
    seconds = (year - 1970) * 31_556_952
    monkeypatch.setattr(_decision_records, "time_ns", lambda: seconds * 10**9)
    before, journal = bits(logged.policy), journal_of(logged.path).read_bytes()
    for call in (
        lambda: logged.select(contexts_of(1)),
        lambda: logged.override(first, (first.arm + 1) % 4, [1.0, 1.0]),
    ):
        with pytest.raises(ValueError, match="years 1 to 9999: set the clock"):
            call()
        assert (bits(logged.policy), journal_of(logged.path).read_bytes()) == (before, journal)
    monkeypatch.undo()
    logged.select(contexts_of(1))
    logged.close()
    assert eh.read_log(logged.path)["round"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("times", "row"),
    [
        (np.array(["2020-01-01", "10000-01-01"], "datetime64[s]"), 1),
        (np.array(["0000-12-31", "2020-01-01"], "datetime64[ms]"), 0),
        (np.array(["2020-01-01", "300000-01-01"], "datetime64[s]"), 1),
        (["0000-01-01", "2020-01-01"], 0),
        (["2020-01-01", "9999-12-31T23:59:59-14:00"], 1),
    ],
)
def test_years_that_no_date_has_are_reported(times, row, tmp_path):
    frame = pd.DataFrame({"timestamp": times, "item_id": [0, 1], "reward": [1.0, 2.0]})
    frame.to_parquet(tmp_path / "log.parquet")
    refused(tmp_path / "log.parquet", f"timestamp in row {row} is .*years 1 to 9999")


def test_times_of_all_kinds_are_read(tmp_path):
    zoned = pd.Series(pd.to_datetime(["2020-01-01T01:00+01:00", None], utc=True))
    plain = pd.to_datetime(["2020-01-01", None])
    for times in (zoned, zoned.dt.tz_convert("Asia/Tokyo"), *map(plain.as_unit, ("s", "ms", "ns"))):
        frame = pd.DataFrame({"timestamp": times, "item_id": [0, 1], "reward": [1.0, 2.0]})
        frame.to_parquet(tmp_path / "log.parquet")
        values = eh.read_log(tmp_path / "log.parquet")["timestamp"]
        assert values[0] == pd.Timestamp("2020-01-01T00:00Z") and pd.isna(values[1])


class Changed(eh.TopInterval):
    """Makes the decision that a test asks for."""

    change = staticmethod(lambda decision: None)

    def select(self, contexts, available=None):
        decision = super().select(contexts, available)
        self.change(decision)
        return decision


def to_numpys_numbers(decision):
    decision.arm, decision.round = np.int64(decision.arm), np.int32(decision.round)
    decision.propensity = np.float64(decision.propensity)
    decision.explored = np.bool_(decision.explored)
    decision.context = decision.context.astype(np.float32).astype(object)


@SUFFIXES
@pytest.mark.parametrize("candidates", [False, True])
def test_numpys_numbers_are_accepted(candidates, suffix, tmp_path, monkeypatch):
    monkeypatch.setattr(Changed, "change", staticmethod(to_numpys_numbers))
    path = tmp_path / f"log.{suffix}"
    rounded = [contexts_of(seed).astype(np.float32) for seed in range(4)]
    with eh.log_to(path, Changed(LABELS, FEATURES, seed=1), candidates=candidates) as logged:
        decisions = [logged.select(contexts) for contexts in rounded]
        logged.true_reward(decisions[0], np.float32(0.5))
        logged.override(decisions[1], np.int64((decisions[1].arm + 1) % 4), np.float32([1.0, 2.0]))
        logged.update(decisions[2], np.float64(2.0))
        logged.update(decisions[1:2], np.float32([3.0]))
        logged.update(np.int64(1), np.int8(1))
    log = eh.read_log(path)[:4]
    assert log["item_id"].tolist() == [int(decision.arm) for decision in decisions]
    assert log["propensity_score"].tolist() == [
        float(decision.propensity) for decision in decisions
    ]
    assert log["explored"].tolist() == [bool(decision.explored) for decision in decisions]
    np.testing.assert_array_equal(log[["x1", "x2"]], [decision.context for decision in decisions])
    assert log["reward"].dropna().tolist() == [1.0, 2.0] and log["true_reward"][0] == 0.5
    assert bits(eh.replay(path)) == bits(logged.policy)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("propensity", bad) for bad in (np.nan, 0.0, -0.5, 1.5, np.float64(np.inf), None, "x")),
        *(("arm", bad) for bad in (-1, 4, 1.5, None, 10**30)),
        *(("round", bad) for bad in (0, 7, None)),
        *(
            ("context", bad)
            for bad in ([np.nan, 1.0], [1.0, 1e101], [1.0], [[1.0, 2.0]], ["x", "y"])
        ),
    ],
)
def test_decisions_that_cannot_be_read_back_are_refused(name, value, tmp_path, monkeypatch):
    logged = eh.log_to(tmp_path / "log.csv", Changed(LABELS, FEATURES, seed=1))
    logged.select(contexts_of(0))
    before = journal_of(logged.path).read_bytes()
    monkeypatch.setattr(
        Changed, "change", staticmethod(lambda decision: setattr(decision, name, value))
    )
    with pytest.raises(ValueError, match="the policy gave") as error:
        logged.select(contexts_of(1))
    assert "\n" not in str(error.value)
    monkeypatch.undo()
    assert journal_of(logged.path).read_bytes() == before and logged.round == 1
    logged.select(contexts_of(1))
    logged.close()
    assert len(eh.read_log(logged.path)) == 2


class WithOddChances(Changed):
    """Ignores contexts, and has invalid probabilities."""

    chances = (0.25, 0.25, 0.25, 0.25)

    def select(self, contexts, available=None):
        return super().select(np.nan_to_num(contexts), available)

    def propensities(self, contexts, available=None):
        return np.array(self.chances)


@pytest.mark.parametrize("chances", [[0.25] * 3, [0.25, 0.5, 0.5, 0.5], [0.25, 1.0, -0.25, 0.0]])
def test_candidates_that_cannot_be_read_back_are_not_kept(chances, tmp_path, monkeypatch):
    policy = WithOddChances(LABELS, FEATURES, exploration=1.0, seed=1)
    logged = eh.log_to(tmp_path / "log.csv", policy, candidates=True)
    holes = contexts_of(0)
    holes[:, 1] = np.nan
    with pytest.raises(ValueError, match=r"contexts are not all finite"):
        logged.select(holes)
    monkeypatch.setattr(
        Changed,
        "change",
        staticmethod(lambda decision: setattr(decision, "context", np.ones(FEATURES))),
    )
    with pytest.raises(ValueError, match="which is not the context given for this arm"):
        logged.select(contexts_of(1))
    monkeypatch.undo()
    monkeypatch.setattr(WithOddChances, "chances", chances)
    logged.select(contexts_of(2))
    logged.close()
    assert eh.read_log(logged.path)["candidate_propensities"].isna().tolist() == [True]


# Closing ----------------------------------------------------------------------------------------


def spoiled(column):
    """Another value in the last row of a column, as a bug in a library might write it."""
    if column.name in ("timestamp", "reward_at", "true_at"):
        return column.mask(column.index == len(column) - 2, "2020-01-01T00:00:00.000000Z")
    other = {"group": "X", "explored": True, "decision_id": "X"}.get(column.name, 2)
    return column.mask(column.index == column.index[-1], other)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES.values(), *ORDER, "x2", "a row"])
def test_the_journal_stays_unless_the_table_is_read_back_equal(name, tmp_path, monkeypatch):
    path = tmp_path / "log.csv"
    write = pd.DataFrame.to_csv
    logged = eh.log_to(path, make())
    fill(logged)
    expected = eh.read_log(path)

    def write_wrongly(frame, *where, **how):
        wrong = frame[:-1] if name == "a row" else frame.assign(**{name: spoiled(frame[name])})
        write(wrong, *where, **how)

    monkeypatch.setattr(pd.DataFrame, "to_csv", write_wrongly)
    with pytest.raises(ValueError) as error:
        logged.close()
    assert "\n" not in str(error.value)
    monkeypatch.undo()
    assert {file.name for file in tmp_path.iterdir()} == {"log.csv.journal", "log.csv.snapshot"}
    pd.testing.assert_frame_equal(eh.read_log(path), expected)
    eh.log_to(path).close()
    pd.testing.assert_frame_equal(eh.read_log(path), expected)
    assert not journal_of(path).exists()


def test_the_same_for_parquet(tmp_path, monkeypatch):
    path = closed(tmp_path / "log.parquet", 5)
    before, write = path.read_bytes(), pyarrow.parquet.write_table
    logged = eh.log_to(path)
    logged.select(contexts_of(9))
    monkeypatch.setattr(
        pyarrow.parquet, "write_table", lambda table, *more: write(table.slice(0, 5), *more)
    )
    with pytest.raises(ValueError, match="could not be read back unchanged"):
        logged.close()
    monkeypatch.undo()
    assert path.read_bytes() == before and len(eh.read_log(path)) == 6


def test_reading_back_goes_part_by_part(tmp_path, monkeypatch):
    for suffix in ("csv", "parquet"):
        monkeypatch.setattr("evenhand.events._formats.PART", 4)
        path = closed(tmp_path / f"small.{suffix}", candidates=True)
        monkeypatch.undo()
        whole = closed(tmp_path / f"whole.{suffix}", candidates=True)
        log, expected = (alike(eh.read_log(file)) for file in (path, whole))
        pd.testing.assert_frame_equal(log, expected)


# Names of files ---------------------------------------------------------------------------------


@pytest.mark.slow
@SUFFIXES
@pytest.mark.parametrize("name", ["a[1]", "b?", "c*", "{d}", "e%20", "#f", "~", "~/g", "file:h"])
def test_an_existing_path_is_used_as_it_is(name, suffix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("~").mkdir()
    for path in (f"{name}.{suffix}", tmp_path / f"{name}.{suffix}"):
        Path(path).unlink(missing_ok=True)
        closed(path, 2)
        assert len(eh.read_log(path)) == 2 and eh.replay(path).round == 2
        assert eh.offpolicy.Logged.from_log(path).n == 2


def test_groups_in_logs_of_other_programs_stay_text(tmp_path):
    (tmp_path / "log.csv").write_text("arm,reward,branch\n0,1,01\n1,2,1e3\n")
    log = eh.read_log(tmp_path / "log.csv", columns={"group": "branch"})
    assert log["branch"].tolist() == ["01", "1e3"]


@pytest.mark.slow
@SUFFIXES
def test_other_names_of_a_log_have_the_same_writer(suffix, tmp_path, monkeypatch):
    """Links and other spellings, each from its own process."""
    folder = tmp_path / "folder"
    folder.mkdir()
    path = closed(folder / f"log.{suffix}", 3)
    (tmp_path / f"soft.{suffix}").symlink_to(Path("folder") / path.name)
    (tmp_path / "other").symlink_to(folder)
    names = [f"soft.{suffix}", f"folder/../folder/log.{suffix}", f"other/log.{suffix}", str(path)]
    if suffix == "parquet":  # for CSV, the file beside it has no second name
        os.link(path, tmp_path / "hard.parquet")
        names.append("hard.parquet")
    code = """
import sys
import evenhand as eh
for name in sys.argv[1:]:
    try:
        eh.log_to(name)
        print("opened", name)
    except ValueError as error:
        print("already has a writer" in str(error))
"""
    monkeypatch.chdir(tmp_path)
    with eh.log_to(names[0]) as logged:
        decision = logged.select(contexts_of(1))
        done = subprocess.run(
            [sys.executable, "-c", code, *names], capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == ["True"] * len(names)
        assert [len(eh.read_log(name)) for name in names[:4]] == [4] * 4
        logged.update(decision, 1.0)
    assert (tmp_path / names[0]).is_symlink() and len(eh.read_log(path)) == 4
    assert not [file for file in tmp_path.rglob("*") if file.suffix in (".journal", ".part")]
    assert bits(eh.replay(names[0])) == bits(eh.replay(path)) == bits(logged.policy)


def test_links_that_lead_nowhere(tmp_path):
    (tmp_path / "new.csv").symlink_to(tmp_path / "real.csv")
    closed(tmp_path / "new.csv", 1)
    assert len(eh.read_log(tmp_path / "real.csv")) == 1
    (tmp_path / "circle.csv").symlink_to(tmp_path / "circle.csv")
    with pytest.raises(ValueError, match="allowed is a file in a folder that exists"):
        eh.log_to(tmp_path / "circle.csv", make())


# Overrides in logs of other programs -----------------------------------------------------------


@pytest.mark.parametrize("values", [[None, 1.0, None], [False, True, False], ["no", "no", "no"]])
def test_a_table_of_another_program_says_where_a_human_decided(values):
    table = pd.DataFrame({"item_id": [0, 1, 0], "click": [1, 0, 1], "pscore": 0.5})
    table["override"] = values
    if values[0] == "no":
        with pytest.raises(ValueError, match="override is no in the first row"):
            eh.offpolicy.Logged.from_frame(table, ["F", "M"])
        return
    logged = eh.offpolicy.Logged.from_frame(table, ["F", "M"])
    np.testing.assert_array_equal(logged.rewards, [1.0, np.nan, 1.0])


@pytest.mark.skipif(os.name != "posix", reason="permissions of files are those of POSIX")
@SUFFIXES
def test_who_may_read_a_log_does_not_change(suffix, tmp_path):
    """Nor of what stands beside it: the journal and the snapshots have contexts too."""
    path = tmp_path / f"log.{suffix}"
    with eh.log_to(path, make()) as logged:
        logged.update(logged.select(contexts_of(1)), 1.0)
    for file in tmp_path.iterdir():
        file.chmod(0o600)
    with eh.log_to(path, snapshot_every=1) as logged:
        logged.update(logged.select(contexts_of(2)), 1.0)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
        assert f"log.{suffix}.journal" in modes and f"log.{suffix}.snapshot" in modes
        assert set(modes.values()) == {0o600}
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
