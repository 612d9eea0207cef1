"""Experiment files to start from: an example that runs, and one for a table of the user's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand.worlds.frames import read_table

_HEAD = """\
# An experiment of evenhand. Run it with: evenhand run {name}
# Lines that begin with # are comments; keys that are commented out show their default.

title = "{title}"
policies = [
    "TopInterval",                # trusts the feedback
    "MultiGroupFairTopInterval",  # corrects every group, for two groups or more
    "NaiveFair",                  # a group by chance, then the best arm in it
    # {{ policy = "GroupFairTopInterval", label = "two groups", delta = 0.2 }},
    # "my_policy.py:MyPolicy",    # a policy of your own, from a file beside this one
]
replications = 40                 # each with random numbers of its own
seed = 1
# conventions = ["PAPER"]         # or "AUTHORS_CODE", or both: how to read the paper

[sweep]                           # what is on the horizontal axis
parameter = "horizon"             # or delta, ridge, or a parameter of the world
values = [50, 100, 200, 400]      # or {{ from = 50, to = 400, step = 50 }}

# [panels]                        # a second parameter: one panel for each value
# parameter = "delta"
# values = [0.1, 0.5]

[run]                             # settings of all policies
delta = 0.1                       # the chance that an interval misses
ridge = 1.0                       # keeps regressions sane while there are few observations
noise = "estimate"                # from the residuals; or the known standard deviation
"""

_DATA = """\
scale = "standardise"             # or "none", features as they are
# nominal = "codes"               # categories as integers; or "one-hot"
# nominal_columns = []            # columns of numbers that are categories in truth
# leave_out = []                  # columns that are no features
# missing_marks = [""]            # texts that stand for a missing value in a CSV file
"""

_OUTPUT = """
# [output]
# folder = "my-report"
# figures = ["pdf", "svg", "png"]
# tables = ["csv", "parquet"]
"""

EXAMPLE = (
    _HEAD.format(name="experiment.toml", title="Mortgage applications: what would each policy do?")
    + """
[data]                            # a table; for a made-up world write [world] in place of [data]
dataset = "mortgage"              # or file = "people.csv" (Parquet as well)
group = "race"                    # the column that says who belongs where
sensitive = "black"               # whose feedback may be distorted
# others = "together"             # all others as one group, for policies that know only two
reward = "approve"                # the observed reward
features = ["hrat", "obrat", "loanprc", "unem", "dep", "sch", "chist", "pubrec", "vr"]
missing = "drop"                  # or "fill", or "error"; { dep = "fill", others = "error" } too
"""
    + _DATA
    + """
[data.arms]                       # the columns that make the arms, together with the group
loanprc = { quantiles = 3 }       # or 3 (equal width), [0, 0.8, 1, 3] (edges), "as is"
"""
    + _OUTPUT
)


def for_table(path: Path, folder: Path) -> str:
    """A file for a table of the user's: its columns are listed, and the choices are left open.

    Args:
        path: the table.
        folder: where the experiment file will be: its `file` is relative to that.
    """
    frame = read_table(path)
    width = max(len(str(name)) for name in frame.columns)
    lines = [f"#   {name!s:{width}}  {_kind(frame[name])}" for name in frame.columns]
    few = [name for name in frame.columns if 2 <= frame[name].nunique() <= 10]
    file = os.path.relpath(path, folder)
    return (
        _HEAD.format(name="this file", title=f"{path.stem}: what would each policy do?")
        + f'''
# The {len(frame):,} rows of {path.name} have these columns:
#
{os.linesep.join(lines)}
#
# Fill in the four lines with a ?, then run it: mistakes are told with their line.

[data]
file = "{file}"
group = "?"                       # the column that says who belongs where{_among(few)}
sensitive = "?"                   # the value of it whose feedback may be distorted
reward = "?"                      # the observed reward, a column of numbers
# reward_values = {{ yes = 1, no = 0 }}  # numbers for the words of a reward that is not a number
missing = "error"                 # says what is missing; then choose "drop" or "fill"
'''
        + _DATA
        + """
[data.arms]                       # the columns that make the arms, together with the group
"?" = { quantiles = 3 }           # or 3 (equal width), [0, 25, 45, 99] (edges), "as is"
"""
        + _OUTPUT
    )


def _kind(column: pd.Series[Any]) -> str:
    gaps = int(column.isna().sum())
    lacking = f", {gaps:,} missing" if gaps else ""
    values = column.dropna()
    if pd.api.types.is_numeric_dtype(values) and values.nunique() > 10:
        return f"numbers from {values.min():g} to {values.max():g}{lacking}"
    shown = ", ".join(str(value) for value in list(values.value_counts().index[:5]))
    more = f" and {values.nunique() - 5} more" if values.nunique() > 5 else ""
    return f"{values.nunique()} values: {shown}{more}{lacking}"


def _among(names: list[Any]) -> str:
    return f"; perhaps {', '.join(str(name) for name in names[:4])}" if names else ""
