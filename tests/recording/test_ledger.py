"""A logged policy needs only the protocol of a ledger; and ids of decisions."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import evenhand as eh
from evenhand.events._ids import id_of, new_key, round_of
from evenhand.events.event import DecisionMade, RewardObserved, from_line, to_line
from evenhand.events.file_ledger import FileLedger
from evenhand.events.ledger import Ledger
from log_scripts import Calls, bits, contexts_of, fill, make
from memory_ledger import MemoryLedger


def test_ledgers_are_ledgers(tmp_path):
    assert isinstance(MemoryLedger(), Ledger)
    with eh.log_to(tmp_path / "log.csv", make()) as logged:
        assert isinstance(logged.ledger, Ledger) and logged.path == tmp_path / "log.csv"


@pytest.mark.parametrize("candidates", [False, True])
def test_a_custom_ledger_has_what_a_file_has(candidates, tmp_path):
    ledger = MemoryLedger()
    with (
        eh.log_to(ledger, make(), candidates=candidates) as mine,
        eh.log_to(tmp_path / "log.csv", make(), candidates=candidates) as files,
    ):
        for logged in (mine, files):
            fill(logged)
    assert mine.path is None and "memory" in repr(mine)
    assert bits(mine.policy) == bits(files.policy) == bits(eh.replay(ledger))
    events = list(FileLedger(tmp_path / "log.csv", write=False).read())
    assert [type(event) for event in events] == [type(event) for event in ledger.events]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    state = {"round": mine.round, "learned": int(mine.counts.sum())}
    assert {name: ledger.ended[name] for name in state} == state
    with eh.log_to(ledger) as again:
        assert bits(again.policy) == bits(mine.policy) and again.waiting == mine.waiting


@pytest.fixture
def documented(tmp_path):
    """Opens the ledger that the documentation shows."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "log-format.md"
    code = re.search(r'title="sqlite_ledger\.py"\n(.*?)```', page.read_text("utf-8"), re.DOTALL)
    space: dict = {}
    exec(code[1], space)
    opened = []

    def ledger():
        opened.append(space["SqliteLedger"](tmp_path / "log.db"))
        return opened[-1]

    yield ledger
    for writer in opened:
        writer.release()


@pytest.mark.parametrize("candidates", [False, True])
def test_the_ledger_of_the_documentation_keeps_its_promises(documented, candidates):
    assert isinstance(documented(), Ledger)
    logged = eh.log_to(documented(), make(), candidates=candidates, snapshot_every=7)
    for part in range(4):
        Calls(part).many(logged, 25)
        assert bits(eh.replay(documented())) == bits(logged.policy)
        logged.close() if part % 2 else logged.ledger.release()
        again = eh.log_to(documented())
        assert bits(again.policy) == bits(logged.policy) and again.waiting == logged.waiting
        logged = again
    events = list(logged.ledger.read())
    assert [event.seq for event in events] == list(range(1, logged.ledger.head + 1))
    for after in (1, 17, len(events) - 1, len(events)):
        assert to_line([*events[:1], *logged.ledger.read(after)]) == to_line(
            [*events[:1], *events[after:]]
        )
    fill(logged)  # of one call only
    snapshot = logged.ledger.newest_snapshot()
    assert snapshot.seq <= logged.ledger.head
    assert logged.ledger.newest_snapshot(snapshot.seq).seq < snapshot.seq


def test_the_ledger_of_the_documentation_notices_a_second_writer(documented):
    writer = eh.log_to(documented(), make())
    waiting = writer.select(contexts_of(0))
    two = eh.log_to(documented())
    writer.update(waiting, 1.0)
    for _ in range(2):
        with pytest.raises(eh.InputError, match="open the log again"):
            two.select(contexts_of(1))
    writer.select(contexts_of(2))
    assert bits(eh.replay(documented())) == bits(writer.policy)


def test_failed_calls_are_taken_back(tmp_path):
    class Full(MemoryLedger):
        full = False

        def append(self, events):
            if self.full:
                raise OSError("no room")
            super().append(events)

        def take_back(self, seq):
            raise AssertionError(f"{seq}: nothing was kept that could be taken back")

    ledger = Full()
    logged = eh.log_to(ledger, make())
    waiting = logged.select(contexts_of(0))
    ledger.full, before = True, bits(logged.policy)
    for call in (
        lambda: logged.select(contexts_of(1), id="mine"),
        lambda: logged.update(waiting, 1.0),
        lambda: logged.update([waiting], [1.0]),
        lambda: logged.absorb([0], [[1.0, 2.0]], [1.0]),
        lambda: logged.override(waiting, (waiting.arm + 1) % 4, [1.0, 2.0]),
        lambda: logged.true_reward(waiting, 1.0),
    ):
        with pytest.raises(OSError, match="no room"):
            call()
        assert bits(logged.policy) == before and len(ledger.events) == 1
    ledger.full = False
    logged.update(logged.select(contexts_of(1), id="mine"), 1.0)
    logged.close()
    assert bits(eh.replay(ledger)) == bits(logged.policy)


def test_inconsistent_ledgers_are_reported():
    ledger = MemoryLedger()
    with eh.log_to(ledger, make()) as logged:
        Calls(1).many(logged, 20)
    for change, words in [
        (lambda events: events.pop(3), "event 5 comes after event 3"),
        (lambda events: events.insert(0, events[0]), "event 1 comes after event 1"),
        (
            lambda events: events.insert(0, events.pop(0)._replace(context=(1.0,))),
            "with 1 features",
        ),
        (lambda events: events.append(RewardObserved(len(events) + 1, 0, "no", 1.0)), "'no' does"),
        (
            lambda events: events.append(events[0]._replace(seq=len(events) + 1)),
            "round 1 comes after",
        ),
    ]:
        wrong = ledger.again()
        wrong.snapshots.clear()
        change(wrong.events)
        for read in (eh.replay, eh.log_to):
            with pytest.raises(ValueError, match=words) as error:
                read(wrong)
            assert "\n" not in str(error.value)
    for wrong in (5, object()):
        with pytest.raises(ValueError, match="allowed is a file"):
            eh.log_to(wrong, make())
    with pytest.raises(ValueError, match="there is no log"):
        eh.replay(MemoryLedger())


# Ids --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_decisions_are_given_by_object_round_or_id(suffix, tmp_path):
    path = tmp_path / f"log.{suffix}"
    names = ["01", 'a "b", c', "NA", "ü/17", "nan"]
    logged = eh.log_to(path, make())
    decisions = [logged.select(contexts_of(t), id=name) for t, name in enumerate(names)]
    decisions += [logged.select(contexts_of(t)) for t in range(3)]
    assert [logged.id_of(decision) for decision in decisions[:5]] == names
    given = [logged.id_of(decision.round) for decision in decisions[5:]]
    assert given == sorted(set(given)) and all(
        name.endswith(f"000000000{6 + k}") for k, name in enumerate(given)
    )
    logged.override("NA", (decisions[2].arm + 1) % 4, [1.0, 2.0])
    logged.update("NA", 1.0)
    logged.true_reward("NA", 2.0)
    logged.update(["01", decisions[1], given[0]], [3.0, 4.0, 5.0])
    assert logged.waiting == [4, 5, 7, 8]
    for wrong, words in [
        ("01", "already has its reward"),
        (given[0], "already has its reward"),
        ("02", "an id that no decision of this log has"),
        (given[0][:-1] + "9", "an id that no decision of this log has"),
        (given[0].replace("-0", "-"), "an id that no decision of this log has"),
    ]:
        with pytest.raises(ValueError, match=words):
            logged.update(wrong, 1.0)
    logged.close()
    log = eh.read_log(path)
    assert log["decision_id"].tolist() == [*names, *given, "NA"]
    with eh.log_to(path) as again:
        assert [again.id_of(t) for t in range(1, 9)] == [*names, *given]
        for name in ("nan", "01", given[2]):
            with pytest.raises(ValueError, match="; allowed is an id that"):
                again.select(contexts_of(9), id=name)
        again.update("nan", 1.0)
        again.true_reward("01", 1.0)
    assert bits(eh.replay(path)) == bits(again.policy)


@pytest.mark.parametrize("id", ["", " a", "a ", "a\n", "a\rb", "\ud800", "\0", "x" * 201, 5, b"a"])
def test_ids_that_no_file_can_have_are_refused(id, tmp_path):
    with eh.log_to(tmp_path / "log.csv", make()) as logged:
        with pytest.raises(ValueError, match=r"id is .*; allowed is text of 1 to 200") as error:
            logged.select(contexts_of(0), id=id)
        assert "\n" not in str(error.value) and logged.round == 0
        logged.select(contexts_of(0), id="x" * 200)
        with pytest.raises(ValueError, match="which the decision of round 1 has"):
            logged.select(contexts_of(0), id="x" * 200)


def test_ids_of_logs_are_unique_and_in_order_of_time(monkeypatch):
    import evenhand.events._ids as module

    assert len({new_key() for _ in range(1000)}) == 1000
    clock = iter(range(1_700_000_000, 1_900_000_000, 10_000_000))
    monkeypatch.setattr(module, "time_ns", lambda: next(clock) * 10**9)
    ids = [id_of(key, t) for key in [new_key() for _ in range(5)] for t in (1, 9, 10, 99_999)]
    assert ids == sorted(ids)
    assert round_of("a", "a-0000000012") == 12 and round_of("a", id_of("a", 10**11)) == 10**11
    for wrong in ("a-12", "b-0000000012", "a-000000001x", "a-", "a", "a-٠٠٠٠٠٠٠٠١٢"):
        assert round_of("a", wrong) is None


def test_events_come_back_from_lines():
    events = [
        DecisionMade(1, 5, 'a "b"', 1, 0, 0.1, True, (1.0, -0.0), np.array([1.0, np.nan]), None),
        RewardObserved(2, None, "ü", 1e-320),
    ]
    for some in (events, events[:1], events[1:]):
        back = from_line(json.loads(to_line(some)))
        assert to_line(back) == to_line(some) and [type(event) for event in back] == [
            type(event) for event in some
        ]
