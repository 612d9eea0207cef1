"""Logs of versions 1 and 2 are read, replayed and continued. Older evenhands wrote them."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.events._journal import journal_of
from evenhand.events._tables import beside
from evenhand.events.event import Overridden, RewardObserved, RowsAbsorbed, TrueRewardObserved
from evenhand.events.file_ledger import FileLedger
from log_scripts import Calls, bits, contexts_of, killed, make, older

DATA = Path(__file__).parent / "data"
NAMES = ["closed.csv", "closed.parquet", "journal.csv", "both.csv"]
EACH = pytest.mark.parametrize(
    "name", [f"v{version}-{name}" for version in (1, 2) for name in NAMES]
)


def copied(name, folder):
    """Copy the files of a log; its name has a dot, so that no other name begins like it."""
    for file in DATA.glob(f"{name}*"):
        shutil.copy(file, folder / file.name)
    return folder / name


def more(logged):
    """Overrides, and true rewards before and after; one given twice."""
    first, second = logged.select(contexts_of(1)), logged.select(contexts_of(2))
    logged.true_reward(first, 2.0)
    logged.override(first, (first.arm + 1) % 4, [1.0, 1.0])
    logged.true_reward(first, 4.0)
    logged.true_reward(second, 5.0)
    logged.true_reward(second, 6.0)
    logged.update(first.round, 1.0)


@pytest.fixture(scope="module")
def today(tmp_path_factory):
    """The calls that made the files, made by the current evenhand."""
    path = tmp_path_factory.mktemp("today") / "today.csv"
    with eh.log_to(path, make(), candidates=True) as logged:
        Calls(21).many(logged, 40)
        more(logged)
    return path


@pytest.fixture(scope="module")
def twin(today, tmp_path_factory):
    """A log of today that was continued."""
    folder = tmp_path_factory.mktemp("twin")
    for file in today.parent.iterdir():
        shutil.copy(file, folder)
    with eh.log_to(folder / today.name) as logged:
        go_on(logged)
    return logged


def go_on(logged):
    Calls(4).many(logged, 20)
    logged.update(logged.waiting[0], 3.0)
    logged.true_reward(1, 9.0)


@pytest.mark.slow
@EACH
def test_older_logs_are_read_and_replayed(name, today, tmp_path):
    path, expected = copied(name, tmp_path), eh.read_log(today)
    log = eh.read_log(path)
    wide = [column for column in expected if column in log]
    drop = ["timestamp", "decision_id", "seq", "reward_seq", "true_seq", "reward_at", "true_at"]
    pd.testing.assert_frame_equal(log.drop(columns=drop), expected[wide].drop(columns=drop))
    assert ("candidate_contexts" in log) == name.startswith("v2")
    assert bits(eh.replay(path)) == bits(eh.replay(today))
    assert log["timestamp"].notna().sum() == expected["timestamp"].notna().sum()
    before = {file.name: file.read_bytes() for file in tmp_path.glob(f"{name}*")}
    assert before == {file.name: file.read_bytes() for file in DATA.glob(f"{name}*")}


@EACH
def test_older_events_get_possible_numbers(name, tmp_path):
    """Rewards come in the order of learning, and after their own decisions."""
    events = list(FileLedger(copied(name, tmp_path), write=False).read())
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    frame, learned, made, rewarded = eh.read_log(tmp_path / name), 0, set(), set()
    number = {seq: row for row, seq in enumerate(frame["reward_seq"]) if not pd.isna(seq)}
    for event in events:
        if isinstance(event, (RewardObserved, RowsAbsorbed)):
            learned += 1
            assert frame["learned"][number[event.seq]] == learned and event.at is None
        if isinstance(event, (RewardObserved, Overridden, TrueRewardObserved)):
            assert event.id in made
        if isinstance(event, Overridden):
            assert event.id not in rewarded
        (rewarded if isinstance(event, RewardObserved) else made).add(event.id)
    assert learned == frame["learned"].notna().sum()


@pytest.mark.slow
@EACH
@pytest.mark.parametrize("crash", [False, True])
def test_older_logs_can_be_continued(name, crash, twin, tmp_path):
    path = copied(name, tmp_path)
    before = eh.read_log(path)
    logged = eh.log_to(path)
    go_on(logged)
    assert bits(logged.policy) == bits(twin.policy)
    killed(logged) if crash else logged.close()
    for _ in range(2):
        frame = eh.read_log(path)
        assert bits(eh.replay(path)) == bits(twin.policy)
        same = [
            column
            for column in before
            if column not in ("reward", "learned", "reward_seq", "reward_at")
        ]
        same = [column for column in same if not column.startswith("true")]
        pd.testing.assert_frame_equal(frame[: len(before)][same], before[same])
        with eh.log_to(path) as again:  # as version 3, unless it already was
            assert bits(again.policy) == bits(twin.policy) and again.waiting == twin.waiting
    if path.suffix == ".csv":
        assert json.loads(beside(path).read_text())["version"] == 3
    assert not journal_of(path).exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["v1-closed.csv", "v2-closed.csv", "v1-both.csv", "v2-both.csv"])
def test_a_crash_between_the_two_files_of_an_older_csv_log(name, tmp_path):
    """Then its header has version 3, but its rows do not."""
    path = copied(name, tmp_path)
    rows = path.read_bytes()
    logged = eh.log_to(path)
    journal = journal_of(path).read_bytes()
    logged.close()
    expected = eh.read_log(path)
    path.write_bytes(rows)
    journal_of(path).write_bytes(journal)
    pd.testing.assert_frame_equal(eh.read_log(path), expected)
    assert bits(eh.replay(path)) == bits(logged.policy)
    if "closed" in name:
        journal_of(path).unlink()  # it had nothing to add
        pd.testing.assert_frame_equal(eh.read_log(path), expected)
    with eh.log_to(path) as again:
        again.select(contexts_of(3))
    pd.testing.assert_frame_equal(eh.read_log(path)[:-1], expected)


@pytest.mark.slow
@EACH
def test_logs_without_checksums_are_read_and_continued(name, tmp_path):
    """As they were written before checksums were introduced."""
    path = copied(name, tmp_path)
    expected = eh.read_log(path)
    if path.suffix == ".csv":
        if beside(path).exists():
            older(path)
        if journal_of(path).exists():
            raw = re.sub(rb"\] [0-9a-f]{8}\n", b"]\n", journal_of(path).read_bytes())
            bare = re.sub(rb', "(rows|check|before)": ("\w+"|{[^}]*})', b"", raw)
            journal_of(path).write_bytes(bare)
    pd.testing.assert_frame_equal(eh.read_log(path), expected)
    with eh.log_to(path) as again:  # lines with checksums after lines without
        again.update(again.waiting[0], 1.0)
        again.select(contexts_of(6))
        writing = eh.read_log(path)
    assert len(writing) == len(expected) + 1
    pd.testing.assert_frame_equal(eh.read_log(path), writing)
    assert bits(eh.replay(path)) == bits(again.policy)


def test_an_older_log_with_a_feature_that_is_now_a_column(tmp_path):
    path = copied("v1-closed.csv", tmp_path)
    path.write_text(path.read_text().replace(",x2", ",seq"))
    header = json.loads(beside(path).read_text()) | {"features": ["x1", "seq"]}
    beside(path).write_text(json.dumps(header))
    older(path)
    with pytest.raises(ValueError, match="a feature is called 'seq'") as error:
        eh.read_log(path)
    assert "\n" not in str(error.value)


def test_events_of_a_table_are_those_that_were_appended(tmp_path):
    """Including true rewards that later ones replaced; and read after every number."""
    path, appended = tmp_path / "log.parquet", []
    with eh.log_to(path, make(), candidates=True) as logged:
        keep = logged.ledger.append
        logged.ledger.append = lambda batch: (keep(batch), appended.extend(batch))
        Calls(21).many(logged, 40)
        more(logged)
        writing = list(logged.ledger.read())
    ledger = FileLedger(path, write=False)
    assert ledger.head == len(appended)
    for events in (writing, list(ledger.read())):
        assert len(events) == len(appended)
        for event, expected in zip(events, appended, strict=True):
            assert type(event) is type(expected) and len(event) == len(expected)
            for a, b in zip(event, expected, strict=True):
                np.testing.assert_array_equal(a, b)
    for after in range(0, len(appended) + 1, 7):
        seqs = [event.seq for event in ledger.read(after)]
        assert seqs == list(range(after + 1, len(appended) + 1))
