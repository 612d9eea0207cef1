"""A ledger of a million entries: bytes, start, replay, verify and memory.

python -m benchmarks.service_size --decisions 500000

`--write` puts the figures into RESULTS.md.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from benchmarks.sections import put
from benchmarks.service_load import ARMS, FEATURES, config
from benchmarks.service_times import conditions
from evenhand.service._engine import Engine
from evenhand.service._ledger.asks import Keep, Reward
from evenhand.service._ledger.fold import restored
from evenhand.service._ledger.verification import verify
from evenhand.service.config import load


def peak() -> float:
    """Megabytes that this process has used at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service_size", description=__doc__)
    parser.add_argument("--decisions", type=int, default=500_000)
    parser.add_argument("--write", action="store_true", help="put the figures into RESULTS.md")
    options = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for line in measure(Path(folder), options.decisions):
            print(line, flush=True)
            lines.append(f"- {line}")
    if options.write:
        put("service size", about(options.decisions) + "\n".join(lines))


def about(decisions: int) -> str:
    command = f"python -m benchmarks.service_size --decisions {decisions} --write"
    return (
        f"## A large ledger of the service\n\n{datetime.now(UTC):%Y-%m-%d}, by `{command}`: "
        f"SQLite, ten candidates of five features. {conditions()}\n\n"
    )


def measure(folder: Path, number: int) -> Iterator[str]:
    """What was measured, a line each."""
    path = config(folder, "sqlite:load.db", 8499)
    engine = Engine(load(path))
    engine.open()
    rng = np.random.default_rng(1)
    arms = [f"arm{k}" for k in range(ARMS)]
    file = folder / "load.db"

    def decide(some: int) -> list[str]:
        asks = []
        for _ in range(some):
            rows = rng.normal(size=(ARMS, FEATURES)).clip(-9, 9)
            asks.append(engine.prepare(None, arms, rows))
        engine.state.apply(engine.store.write(asks).told)
        return [ask.id for ask in asks]

    decide(1000)
    before, memory = file.stat().st_size, peak()
    waiting = [id for _ in range(100) for id in decide(1000)]
    engine.store.connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    size = (file.stat().st_size - before) / 100_000
    yield f"{size:.0f} bytes a decision without a reward"
    yield f"{peak() - memory:.1f} MB more memory after 100,000 decisions without rewards"
    while engine.state.version < 2 * number:
        waiting += decide(1000)
        asks = [Reward(id, float(rng.normal()), None) for id in waiting[:1000]]
        del waiting[:1000]
        engine.state.apply(engine.store.write(asks).told)
    state = engine.state
    engine.store.write([Keep(state.version, state.to_bytes())])
    engine.store.connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    entries = state.version
    yield f"{entries:,} entries, {file.stat().st_size / 1e6:,.0f} MB"
    for words, act in (
        ("state from a snapshot", lambda: restored(engine.store.connection)),
        ("state from the beginning", lambda: restored(engine.store.connection, snapshots=False)),
        ("verify", lambda: verify(engine.config.store)),
    ):
        began, wall = time.process_time(), time.perf_counter()
        result = act()
        used, took = time.process_time() - began, time.perf_counter() - wall
        yield f"{words}: {used:.2f} s CPU, {took:.2f} s"
        if hasattr(result, "checksum"):
            assert result.checksum() == state.checksum()


if __name__ == "__main__":
    main()
