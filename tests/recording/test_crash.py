"""Nothing is lost: killed, cut off, full disks, two writers."""

import os
import random
import shutil
import signal

import pytest

import evenhand as eh
from evenhand.events._journal import journal_of, read_journal
from log_scripts import Calls, bits, contexts_of, killed, make
from warm import Warm

WRITER = """
import sys
import evenhand as eh
from log_scripts import Calls, make
path, calls, done = {path!r}, Calls(11), 0
logged = eh.log_to(path, make(), candidates={candidates}, snapshot_every=7)
while True:
    calls.one(logged)
    done += 1
    sys.stdout.write("%d\\n" % done)
    sys.stdout.flush()
    if done % 40 == 0:  # so that kills hit closing and opening as well
        logged.close()
        logged = eh.log_to(path, snapshot_every=7)
"""


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A process that has imported evenhand, for all processes of these tests."""
    if not hasattr(os, "fork"):
        pytest.skip("there is no fork here")
    process = Warm(tmp_path_factory.mktemp("warm"))
    yield process
    process.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "candidates"), [("parquet", False), ("csv", False), ("parquet", True)]
)
def test_a_killed_process_loses_no_call_that_returned(suffix, candidates, warm, tmp_path):
    """SIGKILL at random moments. The oracle does the same calls without a log."""
    moments = random.Random(7)
    for attempt in range(4):
        path = tmp_path / f"log{attempt}.{suffix}"
        process, pipe = warm.start(WRITER.format(path=str(path), candidates=candidates))
        with pipe.open("rb") as told:
            for _ in range(moments.randrange(1, 200)):
                line = told.readline()
            os.kill(process, signal.SIGKILL)
            rest = told.read().split(b"\n")
        assert warm.ended() == -signal.SIGKILL
        returned = int(rest[-2] if len(rest) > 1 else line)
        state = bits(eh.replay(path))
        # the call in progress may be there or not, and its return may not have been seen
        calls, oracle, states = Calls(11), make(), []
        for number in range(1, returned + 3):
            calls.one(oracle)
            if number >= returned:
                states.append(bits(oracle))
        assert state in states
        with eh.log_to(path) as logged:
            logged.select(contexts_of(1))
        assert bits(eh.replay(path)) == bits(logged.policy)


def journal_with_states(path, number=25, **how):
    """A journal as a killed process leaves it, and the state after each of its lines."""
    logged, calls = eh.log_to(path, make(), **how), Calls(5)
    states = {1: bits(logged.policy)}
    for _ in range(number):
        calls.one(logged)
        lines = journal_of(path).read_bytes().count(b"\n")
        states[lines] = bits(logged.policy)
    killed(logged)
    return journal_of(path).read_bytes(), states


@pytest.mark.slow
@pytest.mark.parametrize("candidates", [False, True])
def test_cut_off_at_every_byte(candidates, tmp_path):
    number = 9 if candidates else 14  # lines with all arms are long
    whole, states = journal_with_states(tmp_path / "log.csv", number, candidates=candidates)
    assert set(states) == set(range(1, whole.count(b"\n") + 1))
    rows = eh.read_log(tmp_path / "log.csv")
    decisions = rows[rows["propensity_score"].notna()]
    cut = tmp_path / "cut.csv"
    first = whole.index(b"\n") + 1
    for end in range(first - 1):
        if end % 97 == 0 or end > first - 3:
            journal_of(cut).write_bytes(whole[:end])
            with pytest.raises(ValueError, match="there is no log"):
                eh.replay(cut)
    events = list(read_journal(tmp_path / "log.csv")[1])
    for end in range(first, len(whole) + 1):
        journal_of(cut).write_bytes(whole[:end])
        lines = whole[:end].count(b"\n")
        assert list(read_journal(cut)[1]) == events[: lines - 1], f"cut after byte {end}"
        near = b"\n" in whole[end - 1 : end + 1]
        if not near and end % 50:  # the checks below use these events, and are slow
            continue
        policy = eh.replay(cut)
        assert bits(policy) == states[lines], f"cut after byte {end}"
        if end % 50 == 0 and candidates:  # decisions are there with all their arms, or not at all
            log = eh.read_log(cut)
            log = log[log["propensity_score"].notna()].reset_index(drop=True)
            arms = ["candidate_contexts", "candidate_propensities"]
            assert log[arms].equals(decisions[arms][: len(log)].reset_index(drop=True))
        if end % 100 == 0:  # and it continues from there
            with eh.log_to(cut, policy) as logged:
                logged.update(logged.select(contexts_of(end)), 1.0)
            assert bits(eh.replay(cut)) == bits(logged.policy)
            cut.unlink()


def test_a_writer_begins_again_after_a_first_line_cut_off(tmp_path):
    path = tmp_path / "log.csv"
    whole, _ = journal_with_states(path, 1)
    journal_of(path).write_bytes(whole[:30])
    with eh.log_to(path, make()) as logged:
        logged.select(contexts_of(1))
    assert bits(eh.replay(path)) == bits(logged.policy)


def test_damage_in_the_middle_is_reported_with_its_line(tmp_path):
    path = tmp_path / "log.csv"
    whole, _ = journal_with_states(path)
    lines = whole.split(b"\n")
    for wrong in (
        b"",
        b"{}",
        b"[1,2",
        b"\0\0\0",
        b'["d"]',
        b'[3,0,"z",1]',
        b'[3,0,"r","99",0.5]',
        b'[3,0,"d","x",3,9,0.5,0,[1.0,2.0]]',
        b'[3,0,"d","x",9,0,0.5,0,[1.0,2.0]]',
        b'[4,0,"d","x",3,0,0.5,0,[1.0,2.0]]',
        b'["d",3,0,0,0.5,0,[1.0,2.0]]',  # of version 1
        b'[3,0,"d","x",3,0,0.5,0,[1.0,2.0]]',  # without a checksum
    ):
        journal_of(path).write_bytes(b"\n".join([*lines[:3], wrong, *lines[3:]]))
        with pytest.raises(ValueError, match="line 4 is damaged") as error:
            eh.replay(path)
        assert "\n" not in str(error.value)
    journal_of(path).write_bytes(b"\n".join([*lines[:3], lines[2], *lines[3:]]))
    with pytest.raises(ValueError, match="line 4 is damaged: event 2 comes after event 2"):
        eh.replay(path)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_killed_between_writing_the_file_and_removing_the_journal(suffix, tmp_path):
    path, calls = tmp_path / f"log.{suffix}", Calls(8)
    with eh.log_to(path, make()) as logged:
        calls.many(logged, 40)
    logged = eh.log_to(path)
    calls.many(logged, 40)
    last = logged.select(contexts_of(2))
    logged.override(last, (last.arm + 1) % 4, [1.0, 1.0])
    logged.true_reward(last, 4.0)
    journal = journal_of(path).read_bytes()
    logged.close()
    frame = eh.read_log(path)
    journal_of(path).write_bytes(journal)
    assert eh.read_log(path).equals(frame)
    with eh.log_to(path) as again:  # continues in the old journal
        assert bits(again.policy) == bits(logged.policy)
        again.update(last.round, 1.0)
    assert bits(eh.replay(path)) == bits(again.policy)
    assert len(eh.read_log(path)) == len(frame)


KILLED = """
import os, sys
from pathlib import Path
import evenhand as eh
from log_scripts import alike, bits, contexts_of, make
folder, suffix = Path({folder!r}), {suffix!r}
CHANGES = {changes!r}
calls = [
    lambda log: log.select(contexts_of(1)),
    lambda log: log.true_reward(1, 2.0),
    lambda log: log.override(1, 3 - log._pending.decision(1).arm, [1.0, 1.0]),  # another arm
    lambda log: log.select(contexts_of(2)),
    lambda log: log.true_reward(2, 3.0),
    lambda log: log.select(contexts_of(3)),
    lambda log: log.override(3, 3 - log._pending.decision(3).arm, [3.0, 3.0]),
    None,  # closed, and opened again
    lambda log: log.override(2, 3 - log._pending.decision(2).arm, [2.0, 2.0]),
    lambda log: log.true_reward(3, 4.0),
    lambda log: log.update(1, 0.5),
    lambda log: log.absorb([0], [[1.0, 2.0]], [1.0]),
]

def rows(path):
    try:
        log = alike(eh.read_log(path))
    except ValueError as error:
        assert "there is no log" in str(error), error
        return None
    return None if log.empty else log

def play(path, heard, closing=True):
    log = eh.log_to(path, make(), snapshot_every=3)
    for call in calls:
        if call is not None:
            call(log)
        elif closing:
            log.close()
            log = eh.log_to(path, snapshot_every=3)
        heard(log)
    log.close()

def state_of(log):
    return rows(folder / "oracle.csv"), bits(log.policy)

states = [(None, None)]
play(folder / "oracle.csv", lambda log: states.append(state_of(log)), closing=False)

path, done, left, looking = folder / f"log.{{suffix}}", 0, [], False

def look(event, what):  # before everything that changes files
    global looking
    writes = event != "open" or (what[2] or 0) & (os.O_WRONLY | os.O_RDWR)
    if not looking and event in CHANGES and writes and path.name in str(what):
        looking = True
        files = sorted(file for file in folder.glob(path.name + "*") if file.is_file())
        left.append((done, tuple((file.name, file.read_bytes()) for file in files)))
        looking = False

def heard(log):
    global done
    done += 1

fsync = os.fsync
os.fsync = lambda handle: (look("os.fsync", path.name), fsync(handle))
sys.addaudithook(look)
play(path, heard)
looking = True  # enough seen

def checked(files, number):
    "The rows that are left, and what was learned. They stay when the log is opened, and closed."
    place = folder / str(number)
    place.mkdir()
    for name, content in files:
        (place / name).write_bytes(content)
    log = rows(place / path.name)
    if log is None:
        return None, None
    with eh.log_to(place / path.name) as again:  # from a snapshot, if there is one
        learned = bits(again.policy)
    assert rows(place / path.name).equals(log), number
    return log, learned

logs = {{}}
for number, (done, files) in enumerate(left):
    if files not in logs:  # often nothing has changed since the last look
        logs[files] = checked(files, number)
    log, learned = logs[files]
    allowed = states[done : done + 2]  # the call in progress may be there or not
    same = [log is rows if rows is None else rows.equals(log) for rows, _ in allowed]
    assert any(same) and learned in [known for _, known in allowed], number
    assert learned == allowed[same.index(True)][1] or same == [True, True], number
print(len(left), len(logs))
"""


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_killed_at_every_write_with_overrides_and_true_rewards(suffix, warm, tmp_path):
    """A true reward belongs to the arm that was in force when it was given, and to no other.

    A process that is killed leaves what the system has of its files. Before every change of a file
    we look at just that, and then go on as after a kill.
    """
    changes = ("open", "os.rename", "os.remove", "os.truncate", "os.fsync")
    code = KILLED.format(folder=str(tmp_path), suffix=suffix, changes=changes)
    places, different = map(int, warm.run(code).split())
    assert places > 25 and different > 15


def test_csv_killed_between_its_two_files(tmp_path):
    """The file beside it is then newer than the rows; the journal has the difference."""
    path = tmp_path / "log.csv"
    with eh.log_to(path, make()) as logged:
        Calls(8).many(logged, 20)
    old = path.read_bytes()
    logged = eh.log_to(path)
    logged.update(logged.select(contexts_of(1)), 1.0)
    journal = journal_of(path).read_bytes()
    logged.close()
    path.write_bytes(old)
    journal_of(path).write_bytes(journal)
    assert bits(eh.replay(path)) == bits(logged.policy)


def test_journals_of_other_logs_are_not_mixed_in(tmp_path):
    with eh.log_to(tmp_path / "one.csv", make(seed=1)) as logged:
        logged.select(contexts_of(1))
    journal_with_states(tmp_path / "two.csv")
    shutil.move(journal_of(tmp_path / "two.csv"), journal_of(tmp_path / "one.csv"))
    for read in (eh.read_log, eh.replay, eh.log_to):
        with pytest.raises(ValueError, match="journal of another log"):
            read(tmp_path / "one.csv")


@pytest.mark.slow
def test_a_second_writer_is_refused(warm, tmp_path):
    path = tmp_path / "log.csv"
    with eh.log_to(path, make()) as logged:
        with pytest.raises(ValueError, match="already has a writer"):
            eh.log_to(path)
        _, pipe = warm.start(f"import evenhand as eh; eh.log_to({str(path)!r})")
        told = pipe.read_text()
        assert warm.ended() == 1
        assert "InputError" in told and "already has a writer" in told
        logged.select(contexts_of(0))
    with eh.log_to(path) as again:
        assert again.round == 1


@pytest.mark.slow
def test_a_forked_process_cannot_write(warm, tmp_path):
    code = f"""
import os
import evenhand as eh
from log_scripts import contexts_of, make
logged = eh.log_to({str(tmp_path / "log.csv")!r}, make())
logged.select(contexts_of(0))
child = os.fork()
if child == 0:
    refused = 0
    decide, learn = lambda: logged.select(contexts_of(1)), lambda: logged.update(1, 0.5)
    for call in (decide, learn, logged.close):
        try:
            call()
        except ValueError as error:
            refused += "opened by another process" in str(error)
    os._exit(refused)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
logged.update(1, 0.5)
logged.close()
"""
    warm.run(code)
    assert eh.replay(tmp_path / "log.csv").counts.sum() == 1


@pytest.mark.slow
def test_a_full_disk_changes_nothing(warm, tmp_path):
    """The system does not let the file grow, in the middle of a line."""
    code = f"""
import resource
import evenhand as eh
from evenhand.events._journal import journal_of, read_journal
from log_scripts import Calls, bits, contexts_of, make
from pathlib import Path
path = Path({str(tmp_path / "log.csv")!r})
logged, calls = eh.log_to(path, make()), Calls(3)
calls.many(logged, 20)
waiting = logged.select(contexts_of(5))
before, size = bits(logged.policy), journal_of(path).stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, resource.RLIM_INFINITY))
told = 0
for call in (
    lambda: logged.select(contexts_of(1)),
    lambda: logged.update(waiting, 1.0),
    lambda: logged.update([waiting], [1.0]),
    lambda: logged.absorb([0], [[1.0, 2.0]], [1.0]),
    lambda: logged.override(waiting, (waiting.arm + 1) % 4, [1.0, 2.0]),
    lambda: logged.true_reward(waiting, 1.0),
):
    try:
        call()
    except OSError as error:
        told += str(path) in str(error)
    assert bits(logged.policy) == before == bits(eh.replay(path))
    assert journal_of(path).stat().st_size == size
assert told == 6, told
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
logged.update(waiting, 1.0)  # there is room again
calls.many(logged, 20)
state = bits(logged.policy)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
try:
    logged.close()
    raise SystemExit("closed on a full disk")
except OSError:
    pass
assert not path.exists() and bits(eh.replay(path)) == state
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
eh.log_to(path).close()
assert bits(eh.replay(path)) == state and not journal_of(path).exists()
"""
    warm.run(code)


def test_a_policy_that_fails_to_learn_leaves_no_trace(tmp_path):
    class Fragile(eh.TopInterval):
        def absorb(self, arms, contexts, rewards):
            raise RuntimeError("no")

    logged = eh.log_to(tmp_path / "log.csv", Fragile(["F", "M"], n_features=1))
    before = journal_of(tmp_path / "log.csv").read_bytes()
    with pytest.raises(RuntimeError):
        logged.absorb([0], [[1.0]], [1.0])
    assert journal_of(tmp_path / "log.csv").read_bytes() == before
    logged.close()


def test_an_interrupted_update_stops_the_log(tmp_path):
    """Whether it was learned is unknown, so from then on the state of the log counts."""

    class Slow(eh.Policy):
        is_slow = True

        def learns(self):
            return super().learns()  # it keeps nothing

        def learn(self, arm, context, reward):
            if Slow.is_slow:
                raise KeyboardInterrupt

        def score(self, contexts):
            return contexts[:, 0]

    policy = Slow(["F", "M"], n_features=1, seed=1)
    logged = eh.log_to(tmp_path / "log.csv", policy)
    decision = logged.select([[1.0], [1.0]])
    with pytest.raises(KeyboardInterrupt):
        logged.update(decision, 1.0)
    Slow.is_slow = False
    with pytest.raises(ValueError, match="an update was interrupted; open the log again"):
        logged.select([[1.0], [1.0]])
    with pytest.raises(ValueError, match="an update was interrupted"):
        logged.close()
    with eh.log_to(tmp_path / "log.csv") as again:
        assert again.counts.sum() == 1


def test_sync_waits_for_the_disk_when_asked(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(handle))
    for sync, expected in ((0.0, 10), (1000.0, 0)):
        logged = eh.log_to(tmp_path / f"log{expected}.csv", make(), sync=sync)
        synced.clear()
        for number in range(10):
            logged.select(contexts_of(number))
        assert len(synced) == expected
        logged.flush()
        assert len(synced) == expected + 1
        logged.close()
