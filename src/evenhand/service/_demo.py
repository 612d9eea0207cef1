"""A live system to look at: mortgage applications, and feedback that comes some seconds later."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import pandas as pd

from evenhand import datasets
from evenhand.errors import EvenhandError, MissingExtraError
from evenhand.service.client import Client, ServiceError
from evenhand.service.config import load

QUICK = 400  # decisions with rewards before the first page is looked at
PAUSE = 1.0  # seconds between decisions afterwards
ANSWER = 30.0  # seconds, on average, until a reward comes
SILENT = {"black": 0.2, "not black": 0.1}  # the fraction of the rewards that never comes

_CONFIG = """\
title = "{title}"
store = "sqlite:demo.db"
wait = "2 minutes"

[features.hrat]
low = -25
high = 75
unit = "housing expense, % of income above 25"
[features.obrat]
low = -32
high = 68
unit = "other obligations, % of income above 32"
[features.loanprc]
low = -0.8
high = 4.2
unit = "loan, as a fraction of the price, above 0.8"
[features.delinquent]
type = "yes-no"
unit = "has delinquent accounts"
[features.pubrec]
type = "yes-no"
unit = "filed for bankruptcy"

[arms]
{arms}

[groups]
sensitive = "black"

[policy]
name = "PooledGroupFair"
reference = "mean"
seed = 1

[review]
share = 0.2

[server]
port = {port}
"""
FEATURES = ("hrat", "obrat", "loanprc", "delinquent", "pubrec")
COLUMNS = ("hrat", "obrat", "loanprc", "chist", "pubrec")  # of the table
# Numbers are given relative to a typical application: the intercept of an arm is then the value of
# a typical application, which is learned sooner than that of one without any expense.
USUAL = {"hrat": 25.0, "obrat": 32.0, "loanprc": 0.8}
SIZES = ("small", "middle", "large")


class Applications(NamedTuple):
    """Applications by arm, and what the feedback about each would be."""

    title: str
    rows: pd.DataFrame
    note: str


def applications() -> Applications:
    """The mortgage applications or, if they are not available, made-up ones."""
    try:
        frame = datasets.load("mortgage").dropna(subset=[*COLUMNS, "approve", "race"])
        title = "Mortgages in Boston, 1990 (demo)"
        note = "applications are real; the reward is what the lender decided about each"
    except (MissingExtraError, EvenhandError, OSError):
        frame = _made_up()
        title = "Made-up mortgages (demo)"
        note = "applications and feedback are made up, because the mortgage data are not available"
    frame = frame[["race", "approve", *COLUMNS]].assign(delinquent=1.0 - frame["chist"])
    frame["group"] = np.where(frame["race"] == "black", "black", "not black")
    cut = pd.qcut(frame["loanprc"], 3, labels=False)
    names = frame["group"].str.replace("not black", "other").astype(str)
    frame["arm"] = [f"{name}-{SIZES[int(k)]}-loan" for name, k in zip(names, cut, strict=True)]
    for name, usual in USUAL.items():
        frame[name] -= usual
    return Applications(title, frame, note)


def _made_up() -> pd.DataFrame:
    """A table like that of the mortgages, with feedback that is 15 points lower for one group."""
    rng = np.random.default_rng(1)
    n = 2000
    frame = pd.DataFrame(
        {
            "race": np.where(rng.random(n) < 0.2, "black", "white"),
            "hrat": rng.normal(25, 7, n).clip(1, 70),
            "obrat": rng.normal(33, 8, n).clip(1, 95),
            "loanprc": rng.normal(0.77, 0.18, n).clip(0.05, 2.0),
            "chist": (rng.random(n) < 0.84).astype(float),
            "pubrec": (rng.random(n) < 0.07).astype(float),
        }
    )
    worth = 1.1 - 0.008 * frame["obrat"] - 0.2 * frame["pubrec"] + 0.1 * frame["chist"]
    chance = worth - 0.15 * (frame["race"] == "black")
    frame["approve"] = (rng.random(n) < chance).astype(float)
    return frame


def write_demo(folder: Path, port: int) -> tuple[Path, Applications]:
    """The configuration of the demo in a folder."""
    table = applications()
    arms = table.rows.groupby("arm")["group"].first()
    lines = "\n".join(f'{name} = "{group}"' for name, group in arms.items())
    path = folder / "demo.toml"
    text = _CONFIG.format(title=table.title, arms=lines, port=port)
    path.write_text(text, encoding="utf-8")
    return path, table


class Callers:
    """Applicants who ask, and lenders who answer later; through HTTP, as real ones would."""

    def __init__(self, url: str, key: str, table: Applications) -> None:
        self.url, self.client = url, Client(url, key)
        self.rng = np.random.default_rng(7)
        self.by_arm = dict(iter(table.rows.groupby("arm")))
        self.later: list[tuple[float, str, float]] = []
        self.stop = threading.Event()

    def decide(self) -> tuple[str, str, float]:
        """Decide between an applicant for every arm: the id, the group and the reward to come."""
        chosen_rows: dict[str, Any] = {}
        candidates = []
        for arm, rows in self.by_arm.items():
            row = rows.iloc[int(self.rng.integers(len(rows)))]
            chosen_rows[str(arm)] = row
            features: dict[str, Any] = {name: float(row[name]) for name in FEATURES[:3]}
            features |= {name: bool(row[name]) for name in FEATURES[3:]}
            candidates.append({"arm": str(arm), "features": features})
        person = f"applicant-{int(self.rng.integers(10**9))}"
        decision = self.client.decide(candidates, person=person)
        return decision["id"], decision["group"], float(chosen_rows[decision["arm"]]["approve"])

    def run(self, wait: Callable[[float], object]) -> None:
        """Play until stopped: a quick history first, then about a decision a second."""
        with suppress(Exception):  # the service ends, or a human paused it: the demo is over
            for _ in range(QUICK):
                if self.stop.is_set():
                    return
                id, group, reward = self.decide()
                if self.rng.random() >= SILENT[group]:
                    self.client.reward(id, reward)
        while not self.stop.is_set():
            with suppress(ServiceError):
                id, group, reward = self.decide()
                if self.rng.random() >= SILENT[group]:
                    due = time.monotonic() + self.rng.exponential(ANSWER)
                    self.later.append((due, id, reward))
            due_now = [item for item in self.later if item[0] <= time.monotonic()]
            self.later = [item for item in self.later if item[0] > time.monotonic()]
            for _, id, reward in due_now:
                with suppress(ServiceError):
                    self.client.reward(id, reward)
            wait(PAUSE)


def serve_demo(port: int) -> None:
    """Run the demo until it is told to stop; nothing is kept."""
    from evenhand.service._operator_commands import make_keys, serve_config

    with tempfile.TemporaryDirectory(prefix="evenhand-demo-") as folder:
        path, table = write_demo(Path(folder), port)
        config = load(path)
        (line,) = make_keys(path, ["demo=decide,reward"])
        key = line.rpartition(" ")[2]

        def begin(address: str) -> Callable[[], None]:
            callers = Callers(address, key, table)
            thread = threading.Thread(target=_play, args=(callers,), daemon=True)
            thread.start()
            return callers.stop.set

        serve_config(config, begin, note=table.note)


def _play(callers: Callers) -> None:
    while not callers.stop.wait(0.2):
        with suppress(httpx.TransportError):
            httpx.get(f"{callers.url}/readyz").raise_for_status()
            callers.run(callers.stop.wait)
            return
