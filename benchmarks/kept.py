"""Measurements of single logs, kept in a file, so that a long study can be made in pieces."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np


def measured_logs(
    kind: str, measure: Callable[[int], tuple[float, ...]], seeds: range, file: Path | None
) -> np.ndarray:
    """A row of numbers for each seed: those that the file has are not measured again.

    The file has a line for each log, so a run that is stopped loses one log at most.
    """
    known = dict(_read(file, kind)) if file is not None and file.exists() else {}
    for seed in seeds:
        if seed in known:
            continue
        known[seed] = [float(number) for number in measure(seed)]
        if file is not None:
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps({"kind": kind, "seed": seed, "found": known[seed]}) + "\n")
    return np.array([known[seed] for seed in seeds], dtype=float)


def _read(file: Path, kind: str) -> Iterator[tuple[int, list[float]]]:
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["kind"] == kind:
            yield row["seed"], row["found"]
