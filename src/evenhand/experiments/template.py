"""Experiment files to start from: an example that runs, and one for a user's own table."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from warnings import catch_warnings

import pandas as pd

from evenhand._columns.diagnosis import read_with_likely_marks
from evenhand._columns.file_formats import Reading
from evenhand._columns.identifiers import identifiers

LONGEST = 40  # characters of a name or a value in a comment
TELLS = "; identifies rows, so it is not a feature unless named"

_HEAD = """\
# An experiment of evenhand. Run it with: evenhand run {name}
# Lines that begin with # are comments; remove the # to use one. All keys of such a file are in
# the documentation, docs/how-to/run-an-experiment.md.

title = {title}
policies = [
    "PooledGroupFair",            # corrects every group for its bias; the one that we recommend
    "TopInterval",                # trusts the feedback
    "MultiGroupFairTopInterval",  # the paper's correction, for two groups or more
    "NaiveFair",                  # a random group, then the best arm in it
    # {{ policy = "PooledGroupFair", label = "towards the mean", reference = "mean" }},
    # {{ policy = "GroupFairTopInterval", label = "two groups", delta = 0.2 }},
    # "my_policy.py:MyPolicy",    # a policy of your own, from a file next to this one: Python code,
    #                             # which is run only with evenhand run --allow-code
]
replications = 40                 # each with its own random numbers
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
ridge = 1.0                       # steadies regressions while there are few observations
noise = "estimate"                # from the residuals; or the known standard deviation
"""

_DATA = """\
scale = "standardise"             # or "none", features as they are
# nominal = "one-hot"             # a 0/1 feature for each category; or "codes", integers
# nominal_columns = []            # columns of numbers that are really categories
# categories = 20                 # kept for each column; the rest are "other"
# leave_out = []                  # columns that are not features
"""
_MARKS = """\
# missing_marks = ["?"]           # what stands for a missing value; { age = [-1] } by column
"""

_OUTPUT = """
# [output]
# folder = "my-report"
# figures = ["pdf", "svg", "png"]
# tables = ["csv", "parquet"]
"""

_EXAMPLE = (
    """
[data]                            # a table; for a synthetic world write [world] instead of [data]
dataset = "mortgage"              # or file = "people.csv" (Parquet as well)
group = "race"                    # the column that says which group a row belongs to
sensitive = "black"               # whose feedback may be distorted
# others = "together"             # all others as one group, for policies with only two groups
reward = "approve"                # the observed reward
features = ["hrat", "obrat", "loanprc", "unem", "dep", "sch", "chist", "pubrec", "vr"]
missing = "drop"                  # or "fill", or "error"; { dep = "fill", others = "error" } too
"""
    + _DATA
    + _MARKS
    + """
[data.arms]                       # the columns that make the arms, together with the group
loanprc = { quantiles = 3 }       # or 3 (equal width), [0, 0.8, 1, 3] (edges), "as is"
"""
    + _OUTPUT
)


def example(file: Path) -> str:
    """The text of an experiment file that runs as it is.

    Args:
        file: where it will be saved.

    Example:
        >>> from pathlib import Path
        >>> from evenhand.experiments.template import example
        >>> print(example(Path("loans.toml")).splitlines()[0])
        # An experiment of evenhand. Run it with: evenhand run loans.toml
    """
    return _head(file, "Mortgage applications: what would each policy do?") + _EXAMPLE


def for_table(path: Path, file: Path, reading: Reading | None = None) -> str:
    """The text of an experiment file for a table: its columns are listed, the choices left open.

    Args:
        path: the table.
        file: where the experiment file will be saved; the path of the table is relative to that.
        reading: how the table is read, where it does not say so itself; the file repeats it.

    Example:
        >>> import pathlib, tempfile, pandas as pd
        >>> from evenhand.experiments.template import for_table
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> pd.DataFrame({"sex": ["F", "M"], "pay": [1, 2]}).to_csv(folder / "pay.csv", index=False)
        >>> text = for_table(folder / "pay.csv", folder / "pay.toml")
        >>> [line for line in text.splitlines() if line.startswith("file")]
        ['file = "pay.csv"']
    """
    how = reading or Reading()
    frame, gaps = read_with_likely_marks(path, how)
    with catch_warnings(action="ignore"):
        usable = [name for name in frame.columns if len(_counts(frame[name]))]
        apart = identifiers(frame, usable)
    names = {name: _shown(name) for name in frame.columns}
    width = max(len(name) for name in names.values())
    lines = [
        f"#   {names[name]:{width}}  {_kind(frame[name])}{TELLS if name in apart else ''}"
        for name in frame.columns
    ]
    listed = "\n".join(lines)
    few = [names[name] for name in frame.columns if 2 <= len(_counts(frame[name])) <= 10]
    read_by = "".join(f"\n{name} = {_text(value)}" for name, value in how.chosen.items())
    source = Path(os.path.relpath(path.resolve(), file.resolve().parent)).as_posix()
    return (
        _head(file, f"{path.stem}: what would each policy do?")
        + f"""
# The {len(frame):,} rows of {_shown(path.name)} have these columns:
#
{listed}
#
# Fill in the four lines with a ?, then run it: mistakes are reported with their line.

[data]
file = {_text(source)}{read_by}
group = "?"                       # the column that says which group a row belongs to{_among(few)}
sensitive = "?"                   # the group whose feedback may be distorted
reward = "?"                      # the observed reward, a column of numbers
# reward_values = {{ yes = 1, no = 0 }}  # numbers for a reward in words
missing = "error"                 # says what is missing; then choose "drop" or "fill"
"""
        + _DATA
        + (f"missing_marks = {json.dumps(gaps, ensure_ascii=False)}\n" if gaps else _MARKS)
        + """
[data.arms]                       # the columns that make the arms, together with the group
"?" = { quantiles = 3 }           # or 3 (equal width), [0, 25, 45, 99] (edges), "as is"
"""
        + _OUTPUT
    )


def _head(file: Path, title: str) -> str:
    return _HEAD.format(name=_shown(file.name), title=_text(title))


def _text(value: str) -> str:
    """A text as TOML writes it."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _shown(value: object) -> str:
    """A value for a comment: on one line, and short."""
    line = "".join(character if character.isprintable() else " " for character in str(value))
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


def _counts(column: pd.Series[Any]) -> pd.Series[int]:
    """How often each value occurs; empty for values that cannot be counted, such as lists."""
    try:
        return column.value_counts()
    except TypeError:
        return pd.Series(dtype=int)


def _kind(column: pd.Series[Any]) -> str:
    gaps = int(column.isna().sum())
    lacking = f", {gaps:,} missing" if gaps else ""
    counts = _counts(column)
    counts = counts[counts > 0]
    if pd.api.types.is_numeric_dtype(column) and len(counts) > 10:
        return f"numbers from {column.min():g} to {column.max():g}{lacking}"
    if counts.empty:
        return f"no usable values{lacking}"
    shown = ", ".join(_shown(value) for value in counts.index[:5])
    more = f" and {len(counts) - 5:,} more" if len(counts) > 5 else ""
    return f"{len(counts):,} values: {shown}{more}{lacking}"


def _among(names: list[str]) -> str:
    return f"; perhaps {', '.join(names[:4])}" if names else ""
