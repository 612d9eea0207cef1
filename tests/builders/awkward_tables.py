"""A table as it comes out of other people's programs, and the settings with which it is read."""

from __future__ import annotations

import numpy as np
import pandas as pd

N = 400
READING = {"encoding": "latin-1", "decimal": ","}
WORDS = {"reward_values": {"payé": 1, "refusé": 0}, "missing_marks": {"*": ["?"], "dette": [-9]}}
FEATURES = ["âge", "dette", "métier", "secteur"]
NOMINAL = ["secteur"]


def awkward(rewards_lack=True):
    """0/1 groups, rewards in words, marks of missing values, categories that are numbers."""
    rng = np.random.default_rng(3)
    black = rng.integers(2, size=N)
    table = pd.DataFrame({"black": black, "arm": black * 2 + rng.integers(2, size=N)})
    table["âge"] = [f"{age:.1f}".replace(".", ",") for age in rng.uniform(18, 70, size=N)]
    table["dette"] = rng.integers(0, 30, size=N)
    table["métier"] = rng.choice(["maçon", "élève", "NA"], size=N, p=[0.5, 0.3, 0.2])
    table["secteur"] = rng.choice([75, 13, 69], size=N, p=[0.2, 0.5, 0.3])
    table["crédit"] = np.where(rng.random(N) < 0.6, "payé", "refusé")
    table["p"] = "0,5"
    table.loc[::17, "âge"] = "?"
    table.loc[::23, "dette"] = -9
    if rewards_lack:
        table.loc[::31, "crédit"] = "?"
    return table


def write_awkward(path, table=None):
    """As a CSV file with semicolons, decimal commas and an encoding of its own."""
    table = awkward() if table is None else table
    table.to_csv(path, index=False, sep=";", encoding=READING["encoding"])
    return path


def decisions_with(values, header="x"):
    """A CSV file of decisions with one feature, whose values are written as they are given."""
    rows = [
        f"{'FM'[i % 2]};{(i * 7) % 11 / 2};{i % 2};0.5;{values[i % len(values)]}" for i in range(60)
    ]
    return "\n".join([f"group;reward;arm;propensity;{header}", *rows, ""])
