"""Logs that are damaged, cut off or changed: one line reports it, and nothing is guessed."""

import json
import random
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

import evenhand as eh
from evenhand.errors import InputError
from evenhand.events._journal import journal_of
from evenhand.events._rows import LogRows
from evenhand.events._tables import beside
from log_scripts import closed, event_of, fill, killed, make, older, refused, signed

DATA = Path(__file__).parent / "data"
SUFFIXES = pytest.mark.parametrize("suffix", ["parquet", "csv"])

# Tables that are not what was written -----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(
    ("change", "rounds"),
    [
        (lambda lines: lines[:61], 60),
        (lambda lines: [*lines[:61], lines[61][:9]], None),
        (lambda lines: lines[:1], 0),
        (lambda lines: [*lines[:30], *lines[35:]], 95),
        (lambda lines: [*lines, re.sub(b",100,", b",101,", lines[-1])], 101),
    ],
    ids=["cut", "cut in a line", "all", "middle", "more"],
)
def test_lines_lost_or_added_are_reported(change, rounds, old, tmp_path):
    path = closed(tmp_path / "log.csv", 100)
    if old:
        older(path)
    changed = change(path.read_bytes().splitlines(keepends=True))
    path.write_bytes(b"".join(changed))
    for read in (eh.read_log, eh.replay, eh.log_to):
        words = refused(path, "should have 100 rounds and 100 learned rewards.*restore", read)
        assert rounds is None or f"has {rounds} rounds" in words
    assert not journal_of(path).exists()
    if not old or rounds != 101:  # a journal may have more, and older logs do not count rows
        journal_of(path).write_bytes(beside(path).read_bytes() + b"\n")
        refused(path, "should have 100")


@pytest.mark.parametrize("off", [1, 2, 7])
def test_a_last_line_cut_off_is_reported(off, tmp_path):
    path = closed(tmp_path / "log.csv", 20)
    path.write_bytes(path.read_bytes()[: -1 - off])
    assert "has 19 rounds" in refused(path, "should have 20 rounds")


def test_rows_lost_from_parquet_are_reported(tmp_path):
    path = closed(tmp_path / "log.parquet", 50)
    table = pyarrow.parquet.read_table(path)
    pyarrow.parquet.write_table(table.slice(0, 30), path)
    refused(path, "has 30 rounds and 30 learned rewards in 30 rows, and should have 50 rounds")
    pyarrow.parquet.write_table(table.take([*range(49), 48]), path)
    refused(path, "row 49")


@pytest.mark.slow
@SUFFIXES
@pytest.mark.parametrize("name", ["reward", "true_reward", "group", "timestamp", "x1", "override"])
def test_a_changed_value_is_reported(name, suffix, tmp_path):
    path = closed(tmp_path / f"log.{suffix}")
    if suffix == "csv":
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
        frame.to_csv(path, index=False, lineterminator="\r\n")  # as other programs do
        assert len(eh.read_log(path)) == len(frame)
        frame.loc[0, name] = "2020-01-01T00:00:00Z" if name == "timestamp" else "3"
        frame.to_csv(path, index=False)
        refused(path, "a value was changed or damaged")
        beside(path).unlink()
        assert len(eh.read_log(path)) == len(frame)  # now it is a log of any program
    else:
        table = pyarrow.parquet.read_table(path)
        place = table.column_names.index(name)
        column = table[name].take([1, 0, *range(2, len(table))])
        if column.equals(table[name]):
            column = table[name].take([*range(len(table) - 1), 0])
        if column.equals(table[name]):
            column = pyarrow.array([None] * len(table), column.type)
        pyarrow.parquet.write_table(table.set_column(place, name, column), path)
        refused(path, "a value was changed or damaged|the row has no reward")


# Damaged bytes ----------------------------------------------------------------------------------


def mutated(raw, generator):
    kind, place = generator.randrange(6), generator.randrange(len(raw))
    if kind == 0:
        changed = bytearray(raw)
        changed[place] ^= 1 << generator.randrange(8)
        return bytes(changed)
    if kind == 1:
        return raw[:place]
    if kind == 2:
        return raw[:place] + generator.randbytes(16) + raw[place + 16 :]
    if kind == 3:
        return raw[:place] + raw[place + generator.randrange(1, 9) :]
    more = [b"0", b"\n", b",", b"1e999", b"[" * 100_000, b"9" * 5000, b"\0", generator.randbytes(1)]
    return raw[:place] + generator.choice(more) + raw[place:]


@pytest.mark.slow
@pytest.mark.parametrize("candidates", [False, True])
@pytest.mark.parametrize("ending", ["csv", "parquet", "csv.json", "csv.journal"])
def test_damaged_bytes_are_reported_or_do_no_harm(ending, candidates, tmp_path):
    """Whatever is read was written; from a journal, the calls up to some call."""
    path, generator = (
        tmp_path / f"log.{ending.split('.')[0]}",
        random.Random(f"{ending}{candidates}"),
    )
    if ending == "csv.journal":
        logged = eh.log_to(path, make(), candidates=candidates)
        fill(logged)
        killed(logged)
    else:
        closed(path, candidates=candidates)
    file = tmp_path / f"log.{ending}"
    raw, expected, refusals = file.read_bytes(), eh.read_log(path), 0
    for _ in range(60):
        file.write_bytes(wrong := mutated(raw, generator))
        intact = wrong[: wrong.rfind(b"\n") + 1] if ending == "csv.journal" else raw
        try:
            log = eh.read_log(path)
            eh.replay(path)
        except ValueError as error:
            refusals += 1
            assert "\n" not in str(error)
            continue
        assert raw.startswith(intact)
        file.write_bytes(intact)
        whole = eh.read_log(path) if ending == "csv.journal" else expected
        pd.testing.assert_frame_equal(log, whole, check_exact=True)
    assert refusals > 20


@pytest.mark.parametrize(
    "change",
    [
        lambda told: "[" * 100_000,
        lambda told: '{"a":' * 100_000,
        lambda told: json.dumps({**told, "state": {**told["state"], "round": 10**400}}),
        lambda told: json.dumps({**told, "state": {**told["state"], "round": 10.5}}),
        lambda told: json.dumps({**told, "policy": {**told["policy"], "round": 10**400}}),
        lambda told: json.dumps({**told, "policy": {**told["policy"], "round": np.inf}}),
        lambda told: json.dumps({**told, "policy": 5}),
        lambda told: json.dumps({**told, "features": 5}),
        lambda told: json.dumps({**told, "state": []}),
        lambda told: '{"format": "evenhand log", "version": ' + "9" * 5000 + "}",
    ],
)
def test_a_strange_file_beside_the_log(change, tmp_path):
    path = older(closed(tmp_path / "log.csv", 3))
    beside(path).write_text(change(json.loads(beside(path).read_text())))
    for read in (eh.replay, eh.log_to):
        refused(path, "log.csv", read)


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b"9" * 5000,
        b'[1,0,"a",[0],[[1.0,2.0]],[%d]]' % 10**400,
        b'[1,0,"a",[0],[[1.0,%d]],[1.0]]' % 10**400,
        b'[1,%d,"d","x",1,0,0.5,0,[1.0,2.0]]' % 10**40,
        b'[1,400000000000000000,"d","x",1,0,0.5,0,[1.0,2.0]]',
        b'[1,0,"d","x",1,0,0.5,0,[NaN,2.0]]',
        b'[1,0,"d",5,1,0,0.5,0,[1.0,2.0]]',
        b'[1,0,"t","x",1.0]',
        b'[1,0,"d","x",1,0,np.float64(0.5),0,[1.0,2.0]]',
        b'["d",1,0,0,0.5,0,[1.0,2.0]]',
        b'[["d"],1]',
        b"[[]]",
        b"[]",
        b"{}",
    ],
)
def test_a_strange_line_in_a_journal(line, tmp_path):
    path = tmp_path / "log.csv"
    killed(eh.log_to(path, make()))
    journal_of(path).write_bytes(signed([journal_of(path).read_bytes()[:-1], line]))
    refused(journal_of(path).with_suffix(""), "damaged")


@pytest.mark.parametrize("value", [10**400, 1 + 2j, [1, 2], pd.Timedelta(1), pd.Timestamp(0)])
def test_rewards_that_are_not_numbers(value):
    frame = pd.DataFrame({"item_id": [0, 0], "x1": [1.0, 1.0], "reward": [value, None]})
    with pytest.raises(ValueError, match="reward in row 0 is") as error:
        eh.replay(frame, eh.TopInterval(["F"], n_features=1))
    assert "\n" not in str(error.value)


STRANGE = [None, True, False, -1, 0, 1, 2, 7, 2**53, 2**63, 10**400, 0.5, -0.0, 1e308, float("nan")]
STRANGE += [float("inf"), "", "x", "d", "r", "AAAA", [], [1.0], [[1.0]], {}, {"a": 1}]


def places_in(value):
    """All places in a nested list, as lists of positions."""
    if not isinstance(value, list):
        return [[]]
    return [[], *([at, *rest] for at, part in enumerate(value) for rest in places_in(part))]


def with_change(value, place, new):
    if not place:
        return new
    at, *rest = place
    return [with_change(part, rest, new) if n == at else part for n, part in enumerate(value)]


@pytest.mark.slow
@pytest.mark.parametrize("log", ["version 3", "version 3, candidates", "version 1", "version 2"])
def test_a_value_that_another_program_changed_is_reported_or_does_no_harm(log, tmp_path):
    """Also where the checksums were made anew. Any other kind of error would be a bug of ours."""
    path = tmp_path / "log.csv"
    if log.startswith("version 3"):
        logged = eh.log_to(path, make(), candidates="candidates" in log)
        fill(logged)
        killed(logged)
        first, *lines = journal_of(path).read_bytes().splitlines()
        events = [event_of(line) for line in lines]
    else:
        name = f"v{log[-1]}-journal.csv.journal"
        first, *lines = (DATA / name).read_bytes().splitlines()
        events = [event_of(line) for line in lines]
    generator, refusals = random.Random(4), 0
    for _ in range(600):
        number = generator.randrange(len(events))
        changed = list(events)
        place = generator.choice(places_in(events[number]))
        changed[number] = with_change(events[number], place, generator.choice(STRANGE))
        text = [json.dumps(event).encode() for event in changed]
        journal_of(path).write_bytes(signed([first, *text]))
        try:
            eh.replay(path)
        except InputError as error:
            refusals += 1
            assert str(path) in str(error) and "\n" not in str(error), error
    assert 100 < refusals < 600


@pytest.mark.parametrize("error", [KeyError("reward"), ValueError("ours"), TypeError("ours")])
def test_a_mistake_in_our_own_code_is_not_told_as_damage(error, tmp_path, monkeypatch):
    path = tmp_path / "log.csv"
    killed(eh.log_to(path, make(), sync=0))
    policy = eh.log_to(path, make())
    fill(policy)
    killed(policy)

    def broken(*_):
        raise error

    monkeypatch.setattr(LogRows, "_learn", broken)
    with pytest.raises(type(error)) as caught:
        eh.read_log(path)
    assert caught.value is error


def test_a_mistake_in_the_policy_is_not_told_as_damage(tmp_path):
    class Faltering(eh.Policy):
        broken = False

        def score(self, contexts):
            return contexts[:, 0]

        def learn(self, arm, context, reward):
            if Faltering.broken:
                raise ValueError("a mistake of its author")

    path = tmp_path / "log.csv"
    with eh.log_to(path, Faltering(["F", "M"], n_features=1, seed=1)) as logged:
        logged.update(logged.select(np.ones((2, 1))), 1.0)
    Faltering.broken = True
    with pytest.raises(ValueError, match=r"^a mistake of its author$") as caught:
        eh.replay(path)
    assert not isinstance(caught.value, InputError)
