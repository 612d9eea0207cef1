"""The simulator: same numbers for any workers, paired worlds, bounded memory, clean ends."""

import functools
import signal
import subprocess
import sys

import dask
import numpy as np
import pytest

import evenhand as eh
from plain_policies import Greedy

WORLD = eh.SyntheticWorld(n_arms=6, n_features=2, n_sensitive=2)
TWO = [eh.TopInterval, eh.GroupFairTopInterval]  # each more is compiled, for some seconds
FOUR = [*TWO, eh.IntervalChaining, eh.NaiveFair]


@pytest.mark.slow
def test_workers_do_not_change_the_numbers():
    tables = [
        eh.simulate(FOUR, WORLD, horizon=150, replications=7, seed=5, workers=workers).runs
        for workers in (1, 2, 3)
    ]
    assert tables[0].equals(tables[1]) and tables[0].equals(tables[2])


@pytest.mark.slow
def test_plain_policies_run_in_processes_with_the_same_numbers():
    tables = [
        eh.simulate([Greedy], WORLD, horizon=40, replications=4, seed=5, workers=workers).runs
        for workers in (1, 2)
    ]
    assert tables[0].equals(tables[1])


class AlwaysLast(eh.TopInterval):
    """Compiled, with a `select` of its own that a compiled loop would not call."""

    def select(self, contexts, available=None, **more):
        return super().select(contexts, available=[self.n_arms - 1], **more)


class Unimpressed(eh.TopInterval):
    """Compiled, with an `update` of its own: it learns nothing from the sensitive arms."""

    def update(self, decision, reward=None, **more):
        if decision.arm >= 2:
            super().update(decision, reward, **more)


def test_methods_of_its_own_are_simulated_too():
    kinds = [AlwaysLast, Unimpressed, eh.TopInterval]
    simulation = eh.simulate(kinds, WORLD, 60, replications=2, seed=3, trace=True, workers=1)
    trace = simulation.trace
    arms = {name: rows["arm"].tolist() for name, rows in trace.groupby("policy")}
    assert set(arms["AlwaysLast"]) == {5}
    policy = Unimpressed(WORLD.groups, 2, horizon=60, seed=1)
    for now in eh.simulation.each_round(policy, WORLD, 60, np.random.SeedSequence(2)):
        assert policy.counts[:2].sum() == 0 and now.round == policy.round
    assert policy.counts.sum() < 60
    assert arms["Unimpressed"] != arms["TopInterval"]
    log = eh.simulate_log(Unimpressed, WORLD, 60, seed=3)
    assert arms["Unimpressed"][:60] == log["item_id"].tolist()


def test_a_replication_does_not_depend_on_how_many_there_are():
    few = eh.simulate([eh.TopInterval], WORLD, horizon=100, replications=2, seed=9).runs
    many = eh.simulate([eh.TopInterval], WORLD, horizon=100, replications=6, seed=9).runs
    assert few.equals(many.head(2))


def test_policies_meet_the_same_rounds():
    # All explore always, with the same seed: the same arms, so the same rewards and regret.
    simulation = eh.simulate(TWO, WORLD, horizon=80, replications=3, seed=1, exploration=1.0)
    table = simulation.runs.pivot(index="replication", columns="policy", values="perceived_regret")
    assert table.nunique(axis=1).eq(1).all()


def test_traces_add_up_to_the_summary():
    simulation = eh.simulate(TWO, WORLD, horizon=120, replications=3, seed=2, trace=True)
    trace = simulation.trace.groupby(["policy", "replication"], sort=False)
    runs = simulation.runs.set_index(["policy", "replication"])
    for name in ("perceived_regret", "true_regret", "explored"):
        np.testing.assert_allclose(trace[name].mean(), runs[name], rtol=1e-12)
    sensitive = simulation.trace["arm"] < 2
    np.testing.assert_allclose(
        sensitive.groupby(
            [simulation.trace["policy"], simulation.trace["replication"]], sort=False
        ).mean(),
        runs["share"],
    )
    assert (simulation.trace["true_regret"] >= 0).all()
    assert len(simulation.trace) == 2 * 3 * 120


def test_tables_agree_with_each_other():
    simulation = eh.simulate(TWO, WORLD, horizon=60, replications=2, seed=3)
    assert simulation.arms.groupby(["policy", "replication"])["pulls"].sum().eq(60).all()
    sensitive = simulation.groups[simulation.groups["group"] == "sensitive"]
    np.testing.assert_allclose(sensitive["share"], simulation.runs["share"])
    assert sensitive["proportional_share"].eq(1 / 3).all()
    assert simulation.trace.empty


def test_several_worlds_and_settings_of_their_own():
    simulation = eh.simulate(
        {
            "uniform": functools.partial(eh.NaiveFair, group_choice="uniform"),
            "proportional": functools.partial(eh.NaiveFair, group_choice="proportional"),
        },
        {"mild": eh.SyntheticWorld(bias_mean=1, n_sensitive=2), "harsh": WORLD},
        horizon=300,
        replications=10,
        seed=4,
    )
    means = simulation.runs.groupby(["policy", "world"])["share"].mean()
    # Standard error below 0.01: 0.06 are six of them.
    np.testing.assert_allclose(means["uniform"], 0.5, atol=0.06)
    np.testing.assert_allclose(means["proportional"], [1 / 3, 1 / 5], atol=0.06)


def test_a_world_without_a_sensitive_group_has_no_share():
    groups = eh.Groups(["a", "b"])
    world = eh.LinearWorld(groups, [[1.0], [2.0]], [[0.0], [0.0]])
    simulation = eh.simulate([eh.TopInterval], world, horizon=20, replications=2)
    assert simulation.runs["share"].isna().all()
    assert simulation.groups["share"].notna().all()


@pytest.mark.slow
def test_three_groups_are_brought_together():
    # Equal true coefficients, different bias: the mean reference must learn the differences.
    groups = eh.Groups(["a", "a", "b", "b", "c", "c"])
    world = eh.LinearWorld(groups, np.full((6, 2), 5.0), [[0.0, 0.0], [-3.0, -3.0], [3.0, 0.0]])
    simulation = eh.simulate(
        [eh.TopInterval, eh.MultiGroupFairTopInterval], world, horizon=2000, replications=10, seed=1
    )
    share = simulation.groups.groupby(["policy", "group"])["share"].mean()
    assert share["TopInterval", "c"] > 0.6
    # Measured 0.33 each with a standard error of about 0.02.
    np.testing.assert_allclose(share["MultiGroupFairTopInterval"], 1 / 3, atol=0.12)
    regret = simulation.runs.groupby("policy")["true_regret"].mean()
    assert regret["MultiGroupFairTopInterval"] < regret["TopInterval"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"horizon": 0}, "horizon is 0"),
        ({"replications": -1}, "replications is -1"),
        ({"seed": -1}, "seed is -1"),
        ({"workers": 0}, "workers is 0"),
        ({"delta": 3.0}, "delta is 3.0"),
        ({"colour": "red"}, "colour"),
        ({"policies": [eh.TopInterval, eh.TopInterval]}, "twice"),
        ({"policies": [print]}, "not a class of policies"),
        ({"client": "tcp://127.0.0.1:1"}, "no Dask scheduler answers"),
    ],
)
def test_bad_input_is_told(change, words):
    settings = {"policies": [eh.TopInterval], "worlds": WORLD, "horizon": 5, "replications": 1}
    soon = dask.config.set({"distributed.comm.timeouts.connect": "1s"})
    with soon, pytest.raises(ValueError, match=words):
        eh.simulate(**{**settings, **change})


def test_progress_is_told():
    heard = []
    eh.simulate(TWO, WORLD, horizon=50, replications=3, progress=lambda *told: heard.append(told))
    assert heard[-1] == (300, 300)
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)


def test_memory_stays_bounded_with_traces_off():
    import tracemalloc

    tracemalloc.start()
    eh.simulate([eh.TopInterval], WORLD, horizon=100_000, replications=2, seed=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000  # a trace would take 8 million bytes


INTERRUPTED = """
import sys, evenhand as eh
world = eh.SyntheticWorld()
eh.simulate([eh.GroupFairTopInterval], world, horizon=10, replications=1)
told = []
def progress(*_):
    if not told:
        told.append(print("running", flush=True))
try:
    eh.simulate(
        [eh.GroupFairTopInterval], world, horizon=200_000, replications=10_000, progress=progress
    )
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@pytest.mark.slow
def test_interrupting_ends_cleanly():
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert out == "stopped\n" and process.returncode == 0, err


def test_interrupting_while_work_is_handed_out_stops_what_has_begun(monkeypatch):
    from evenhand.simulation import _workers as module

    heard, submit = [], module.ThreadPoolExecutor.submit

    def wait(piece, watch):
        heard.append(watch._stop.wait())  # until it is asked to stop

    def interrupted(pool, function, piece, watch):
        if piece.replications.start:
            raise KeyboardInterrupt
        return submit(pool, function, piece, watch)

    monkeypatch.setattr(module, "run_piece", wait)
    monkeypatch.setattr(module.ThreadPoolExecutor, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        eh.simulate([eh.UniformRandom], WORLD, horizon=20_000, replications=2, workers=2)
    assert heard == [True]


def test_importing_is_light():
    code = (
        "import sys, evenhand; print([m for m in ('numba', 'pandas', 'scipy') if m in sys.modules])"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout == "[]\n"


def test_every_exported_name_is_there():
    for name in eh.__all__:
        assert getattr(eh, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = eh.nonsense


@pytest.mark.slow
def test_a_policy_in_a_file_of_the_users_is_found_by_old_workers(tmp_path, monkeypatch):
    eh.simulate([Greedy], WORLD, horizon=20, replications=2, workers=2)  # the workers are there
    (tmp_path / "users_policy.py").write_text(
        "import evenhand as eh\n"
        "class Timid(eh.Policy):\n"
        "    def score(self, contexts):\n"
        "        estimate, width = self.intervals(contexts)\n"
        "        return estimate - width\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    from users_policy import Timid

    alone = eh.simulate([Timid], WORLD, horizon=40, replications=4, workers=1).runs
    shared = eh.simulate([Timid], WORLD, horizon=40, replications=4, workers=2).runs
    assert alone.equals(shared)
