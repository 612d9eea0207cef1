"""How long an audit takes, beside the least that its engine needs. From the project's root:

python -m benchmarks.audit [--rows N] [--features D] [--folder DIR] [--spark] [--write]

A log in Parquet is made by DuckDB, with groups, arms, times and propensities. The floor is one
GROUP BY with the bare sums of all products of features and reward, on the same file in the same
run. Each runs in a process of its own, in turns. A ratio is the median over turns, of time on the
clock and of time on processors: on a machine that others use, only the second can be trusted.
`--write` puts the figures into RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from statistics import median

from benchmarks.sections import put

ARMS, REPEATS = 10, 3
WORDS = {
    "floor": "one GROUP BY with the bare sums of all products, DuckDB",
    "checksum": "SHA-256 of the file, which every audit makes beside its queries",
    "classical": '`eh.audit` with `errors="classical"`',
    "audit": "`eh.audit`, with robust errors",
    "command": "`evenhand audit` with its page, the whole process",
    "spark": "`eh.audit` on Spark, its start not counted",
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="where the log is kept for the next time")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--spark", action="store_true", help="on Spark as well")
    parser.add_argument("--write", action="store_true", help="put the figures into RESULTS.md")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        print(json.dumps(WORKERS[options.worker](options.folder, options.features)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        log = make(folder, options.rows, options.features)
        size, before = log.stat().st_size / 1e6, os.getloadavg()[0]
        kinds = ["floor", "checksum", "classical", "audit", "command"]
        kinds += ["spark"] if options.spark else []
        turns = [
            {kind: measure(kind, log, options.features, options.rows) for kind in kinds}
            for _ in range(options.repeats)
        ]
        lines = table(turns, kinds)
    load = f"load before and after {before:.1f} and {os.getloadavg()[0]:.1f}"
    what = (
        f"{options.rows:,} rows x {options.features} features, {size:,.0f} MB of Parquet; {load}."
    )
    print("\n".join([what, "", *lines]))
    if options.write:
        begin = f"Made on {date.today().isoformat()} by `python -m benchmarks.audit --write`, "
        begin += f"{options.repeats} turns: {what}"
        name = f"audit of {options.rows}"
        put(name, "\n".join([f"## An audit of {options.rows:,} rows", "", begin, "", *lines]))


def table(turns: list[dict[str, dict[str, float]]], kinds: list[str]) -> list[str]:
    """The figures of all turns, and the ratios of the audit to the floor."""
    lines = ["| what | seconds on the clock | on processors | MB at most |", "| --- " * 4 + "|"]
    for kind in kinds:
        clock, cpu = (sorted(turn[kind][key] for turn in turns) for key in ("seconds", "cpu"))
        most = max(turn[kind]["memory"] for turn in turns)
        spans = f"{clock[0]:.2f} to {clock[-1]:.2f} | {cpu[0]:.2f} to {cpu[-1]:.2f}"
        lines.append(f"| {WORDS[kind]} | {spans} | {most:,.0f} |")
    for kind in ("classical", "audit"):
        ratios = [
            f"{median(turn[kind][key] / turn['floor'][key] for turn in turns):.2f}"
            for key in ("seconds", "cpu")
        ]
        words = f"{WORDS[kind]}, over GROUP BY, median of turns"
        lines.append(f"| {words} | {ratios[0]} | {ratios[1]} | |")
    return lines


def make(folder: Path, rows: int, features: int) -> Path:
    """The log, made once."""
    import duckdb

    path = folder / f"log-{rows}-{features}.parquet"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    x = ", ".join(
        f"(random() + random() + random() - 1.5) * {1 + k % 3} + {10 * k} AS x{k}"
        for k in range(features)
    )
    total = " + ".join(f"{0.1 * (1 + k % 5)} * x{k}" for k in range(features))
    con = duckdb.connect()
    con.execute("SET memory_limit = '1GB'")
    con.execute(
        f"""COPY (
            SELECT *, {total} - 0.3 * x1 * (item_id < {ARMS // 2})::INT
                + 2 * (random() + random() + random() - 1.5) AS reward,
                CASE WHEN item_id < {ARMS // 2} THEN 'F' ELSE 'M' END AS "group"
            FROM (
                SELECT TIMESTAMP '2026-01-01' + INTERVAL (i) SECOND AS timestamp,
                    floor(random() * {ARMS})::INT AS item_id,
                    0.1 + 0.9 * random() AS propensity_score, {x}
                FROM range({rows}) AS numbers(i))
        ) TO '{path}' (FORMAT parquet)"""
    )
    return path


def measure(kind: str, log: Path, features: int, rows: int) -> dict[str, float]:
    """Seconds and megabytes, of a process of its own."""
    if kind == "command":
        return command(log)
    call = [sys.executable, "-m", "benchmarks.audit", "--worker", kind]
    call += ["--folder", str(log), "--features", str(features)]
    done = subprocess.run(call, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    if figures["rows"] != rows:  # a time for other rows would say nothing
        raise ValueError(f"{kind} read {figures['rows']:,} rows of {rows:,}")
    return figures


def command(log: Path) -> dict[str, float]:
    """`evenhand audit` with its page, from the start of the process to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        call = [sys.executable, "-m", "evenhand", "audit", str(log)]
        begin = time.perf_counter()
        subprocess.run([*call, "--out", f"{folder}/audit.html"], check=True, capture_output=True)
        seconds = time.perf_counter() - begin
    # The largest child so far: an upper bound.
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "cpu": cpu, "memory": after.ru_maxrss / 1024}


def floor(log: Path, features: int) -> dict[str, float]:
    """One GROUP BY with the bare sums of all products."""
    import duckdb

    names = [*(f"x{k}" for k in range(features)), "reward"]
    products = [f"sum({a} * {b})" for i, a in enumerate(names) for b in names[i:]]
    bare = [f"sum({a})" for a in names]
    con = duckdb.connect()
    con.execute("SET memory_limit = '1GB'")
    begin, used = time.perf_counter(), cpu_time()
    sums = con.execute(
        f'SELECT "group", count(*), {", ".join(products + bare)} FROM \'{log}\' GROUP BY "group"'
    ).fetchall()
    seconds, cpu = time.perf_counter() - begin, cpu_time() - used
    return {
        "seconds": seconds,
        "cpu": cpu,
        "memory": memory(),
        "rows": sum(row[1] for row in sums),
    }


def checksum(log: Path, features: int) -> dict[str, float]:
    """The checksum alone, which is part of every audit's time on processors."""
    from pyarrow.parquet import ParquetFile

    from evenhand.audit._input.checksums import of_files

    held = ParquetFile(log).metadata
    assert held.num_columns > features
    begin, used = time.perf_counter(), cpu_time()
    of_files([str(log)])
    seconds, cpu = time.perf_counter() - begin, cpu_time() - used
    return {"seconds": seconds, "cpu": cpu, "memory": memory(), "rows": held.num_rows}


def audit(
    log: Path, features: int, engine: str = "duckdb", errors: str = "auto"
) -> dict[str, float]:
    """An audit, from opening the log to its numbers; imports and the page are not in it."""
    from evenhand.audit._input.opening import open_log

    open_log(log, engine).close()  # imports, and Spark's start
    from evenhand.audit.api import audit as run

    begin, used = time.perf_counter(), cpu_time()
    audited = run(log, engine=engine, errors=errors)
    seconds, cpu = time.perf_counter() - begin, cpu_time() - used
    assert features == len(audited.facts.columns.features)
    return {"seconds": seconds, "cpu": cpu, "memory": memory(), "rows": audited.facts.used}


def classical(log: Path, features: int) -> dict[str, float]:
    return audit(log, features, errors="classical")


def on_spark(log: Path, features: int) -> dict[str, float]:
    return audit(log, features, "spark")


def cpu_time() -> float:
    now = resource.getrusage(resource.RUSAGE_SELF)
    return now.ru_utime + now.ru_stime


def memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


WORKERS = {
    "floor": floor,
    "checksum": checksum,
    "classical": classical,
    "audit": audit,
    "spark": on_spark,
}

if __name__ == "__main__":
    main()
