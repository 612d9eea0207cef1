"""Experiment files, and a table and policies for them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, settings

WORLD = """\
title = "made up"
policies = ["TopInterval", "GroupFairTopInterval"]
replications = 2
seed = 1

[sweep]
parameter = "horizon"
values = [10, 20]

[world]  # ten arms
n_arms = 4
n_features = 2

[run]
delta = 0.1
"""


PEOPLE = """\
title = "people"
policies = ["TopInterval", "GroupFairTopInterval"]
replications = 2
seed = 1

[sweep]
parameter = "horizon"
values = [10, 20]

[data]  # a table
file = "people.csv"
group = "sex"
sensitive = "F"
reward = "paid"
features = ["debt"]

[data.arms]
age = 3

[run]
delta = 0.1
ridge = 1.0
"""


MINE = """\
import evenhand as eh
class Mine(eh.Policy):
    def score(self, contexts):
        return sum(self.intervals(contexts))
class Bare(eh.Policy):
    pass
class Stubborn(Mine):
    def __init__(self, *arguments, **settings):
        raise KeyError("never")
class NoPolicy:
    pass
"""


def people(n=900):
    draw = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "sex": draw.choice(["F", "M"], n),
            "race": draw.choice(["a", "b", "c"], n),
            "age": draw.integers(18, 80, n),
            "debt": draw.random(n).round(6),
            "paid": draw.random(n).round(6),
            "word": draw.choice(["yes", "no"], n),
        }
    )


def put(folder, text, name="x.toml"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


BOTH = '["TopInterval", "GroupFairTopInterval"]'


VALUES = "values = [10, 20]"


SWEPT = 'parameter = "horizon"\nvalues = [10, 20]'


quick = settings(
    max_examples=150,
    suppress_health_check=[
        *settings().suppress_health_check,
        HealthCheck.function_scoped_fixture,
    ],
)
