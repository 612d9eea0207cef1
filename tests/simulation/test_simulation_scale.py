"""Simulations that are large: policies used again, traces in files, processes, progress."""

import os
from functools import partial

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.policies import POLICIES
from evenhand.policies._state import blank_of, wipe
from evenhand.simulation import _compiled_rounds as loop
from evenhand.simulation import _simulate as run
from evenhand.simulation import _workers as workers
from evenhand.simulation._replications import streams_of

WORLD = eh.SyntheticWorld(n_arms=6, n_features=2, n_sensitive=2)
# Each pair of a policy and a world is compiled, for some seconds: quick tests simulate with these.
QUICK = (eh.TopInterval, eh.GroupFairTopInterval, eh.PooledGroupFair)
OWN = [
    kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow)
    for kind in POLICIES.values()
    if kind.__module__.startswith("evenhand.") and kind.is_compiled()
]


def located(folder):
    """A policy in plain Python that says where it runs; sent to processes as it stands here."""

    class Located(eh.Policy):
        def score(self, contexts):
            (folder / str(os.getpid())).touch()
            return self.intervals(contexts)[0]

    return Located


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("noise", [0.5, "estimate"])
def test_a_policy_that_is_used_again_has_forgotten_everything(kind, noise):
    """Replications one after the other are those of policies that are made for each."""
    trace = eh.simulate([kind], WORLD, 60, 4, seed=8, trace=True, noise=noise).trace
    for replication, part in trace.groupby("replication"):
        of_world, of_policy = streams_of(8, replication)
        seed = int(of_policy.generate_state(1, np.uint64)[0])
        policy = kind(WORLD.groups, 2, horizon=60, seed=seed, noise=noise)
        alone = loop.run(policy, WORLD, 60, of_world, trace=True)
        assert (part[list(loop.TRACE)].to_numpy(dtype=float) == alone.trace).all()


@pytest.mark.parametrize("kind", OWN)
def test_a_wiped_memory_is_a_new_one(kind):
    used, new = (kind(WORLD.groups, 2, horizon=50, seed=3) for _ in range(2))
    blank = blank_of(used._state)
    loop.run(used, WORLD, 50, np.random.SeedSequence(1))
    wipe(used._state, blank)
    for mine, other in zip(blank_of(used._state), blank_of(new._state), strict=True):
        assert mine.tobytes() == other.tobytes()


def test_the_streams_are_those_that_numpy_spawns():
    for replication in (0, 1, 2**40):
        spawned = np.random.SeedSequence(5, spawn_key=(replication,)).spawn(2)
        for stream, other in zip(streams_of(5, replication), spawned, strict=True):
            assert stream.generate_state(4).tolist() == other.generate_state(4).tolist()


# Traces in files ----------------------------------------------------------------------------------


def test_traces_in_files_are_those_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "SEGMENT", 50)  # several writes for a replication
    monkeypatch.setattr("evenhand.simulation._replications.SEGMENT", 50)
    monkeypatch.setattr(run, "CHUNK_OF_FILE", 240)  # two replications in a file
    ask = partial(eh.simulate, [eh.TopInterval, eh.NaiveFair], WORLD, 120, 5, seed=2)
    held, written = ask(trace=True), ask(trace=tmp_path / "traces", workers=2)
    assert len(list((tmp_path / "traces").iterdir())) == 2 * 3
    assert all(part.runs.trace.size == 0 for part in written.parts)
    pd.testing.assert_frame_equal(written.trace, held.trace)
    assert written.runs.equals(held.runs)


@pytest.mark.slow
def test_traces_of_plain_policies_are_written_by_their_processes(tmp_path):
    (tmp_path / "pids").mkdir()
    kind = located(tmp_path / "pids")
    simulation = eh.simulate([kind], WORLD, 15, 3, seed=2, trace=tmp_path / "traces", workers=2)
    assert len(simulation.trace) == 45


def test_a_folder_with_something_in_it_is_refused(tmp_path):
    (tmp_path / "old.parquet").touch()
    for trace, words in ((tmp_path, "which is not empty"), (3, "trace is 3; allowed are")):
        with pytest.raises(ValueError, match=words):
            eh.simulate([eh.TopInterval], WORLD, 10, 1, trace=trace)


def test_a_run_that_is_stopped_leaves_no_half_of_a_file(tmp_path):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        eh.simulate([eh.TopInterval], WORLD, 200_000, 40, trace=tmp_path / "traces", progress=stop)
    assert not list((tmp_path / "traces").glob("*.unfinished"))
    for path in (tmp_path / "traces").glob("*.parquet"):
        assert len(pd.read_parquet(path)) % 200_000 == 0


# Workers and progress -----------------------------------------------------------------------------


@pytest.mark.slow
def test_plain_policies_run_in_other_processes(tmp_path):
    eh.simulate([located(tmp_path)], WORLD, horizon=20, replications=4, seed=5, workers=2)
    pids = {path.name for path in tmp_path.iterdir()}
    assert pids and str(os.getpid()) not in pids


@pytest.mark.slow
def test_many_short_replications_run_in_processes_with_the_same_numbers(monkeypatch):
    asked, processes = [], workers._in_processes
    monkeypatch.setattr(workers, "MANY", 30)
    monkeypatch.setattr(run, "CHUNK", 200)
    monkeypatch.setattr(
        workers, "_in_processes", lambda *given: asked.append(given) or processes(*given)
    )
    ask = partial(eh.simulate, [eh.GroupFairTopInterval], WORLD, 20, seed=5)
    in_threads = ask(29, workers=2)
    assert not asked
    in_processes = ask(30, workers=2)
    assert len(asked) == 1
    assert in_processes.runs.head(29).equals(in_threads.runs)


def test_a_single_long_replication_tells_how_far_it_is(monkeypatch):
    monkeypatch.setattr(workers, "PAUSE", 0.001)
    told = []
    eh.simulate([eh.TopInterval], WORLD, 2_000_000, 1, progress=lambda *now: told.append(now))
    done = [now for now, _ in told]
    assert len(told) > 3 and done == sorted(set(done))
    assert told[-1] == (2_000_000, 2_000_000)
