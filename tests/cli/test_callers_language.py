"""Messages of commands name flags, those about a file its lines and keys, and none has code."""

from __future__ import annotations

import gzip
import re

import numpy as np
import pandas as pd
import pytest

from commands import evenhand

ROLES = ("--group", "g", "--reward", "y")
VALUE = ("value", "log.csv", "--uniform", *ROLES, "--arm", "g", "--propensity", "p")
AUDIT = ("audit", "log.csv", *ROLES, "--out", "r.json")
# What only a caller of Python writes, or a package says.
FOREIGN = re.compile(r"pandas|frame|\{['\"]|True|False|=\"|Error|0x|EOCD|tokeniz|codec|bug in even")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("logs")
    draw = np.random.default_rng(1)
    log = pd.DataFrame({"g": ["F", "M"] * 40, "x": draw.normal(size=80).round(2)})
    log = log.assign(y=draw.random(80).round(2), p=0.5, t="noon")
    log.to_csv(here / "log.csv", index=False)
    log.head(20).to_csv(here / "wide.csv", index=False, encoding="utf-16")
    for name, content in {
        "ragged.csv": b"g,y\nF,1\nM,2,3,4\n",
        "open.csv": b'g,y\n"F,1\nM,2\n',
        "zero.csv": b"g,y\nF,\x001\nM,2\n",
        "cut.csv.gz": gzip.compress(b"g,y\nF,1\n")[:9],
        "no.zip": b"no",
        "no.xlsx": b"no",
        "no.parquet": b"no",
        "no.json": b"{",
        "numbers.json": b"[1, 2]",
        "empty.json": b"[]",
        "odd.toml": b'group = "g"\nreward = "\xff"\n',
    }.items():
        (here / name).write_bytes(content)
    (here / "folder.csv").mkdir()
    return here


def refused(folder, *arguments):
    """The line that a command ends with."""
    done = evenhand(*arguments, cwd=folder)
    assert done.returncode == 2, done.stderr
    *_, line = done.stderr.splitlines()
    return line.removeprefix("evenhand: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*AUDIT, "--missing", "foo"), "such as --missing age=fill,others=drop"),
        ((*VALUE, "--missing", "foo"), "such as --missing age=fill,others=drop"),
        ((*AUDIT, "--reward-values", ""),
         "--reward-values is ''; allowed is a number for every value of the reward, such as "
         "--reward-values approved=1,denied=0"),
        ((*AUDIT, "--group-probability", "F=p"), "--group-probability is 'F=p'; allowed is a"),
        ((*AUDIT, "--feature", "y"), "--feature: 'y' is the reward"),
        ((*AUDIT, "--propensity", "x"), "such as --propensity COLUMN, or leave --propensity out"),
        ((*AUDIT, "--timestamp", "t"),
         "--timestamp is 't', a column of text; allowed are times, dates and numbers: convert it, "
         "or leave --timestamp out"),
        ((*AUDIT, "--weight", "x"), "name a column that counts people in --count, where 0 is"),
        ((*AUDIT, "--level", "abc"), "--level is 'abc'; allowed is a number"),
        ((*AUDIT, "--windows", "1e3"), "--windows is '1e3'; allowed is a whole number"),
        ((*AUDIT, "--reference", "sex=F"), "--reference is 'sex=F'; allowed is one of F, M"),
        (("audit", "log.csv::t", *ROLES), "LOG is 'log.csv::t', and log.csv is not a database"),
        ((*VALUE, "--feature", "zz"), "--feature is 'zz', which is not a column; the log has g, x"),
        ((*VALUE, "--delimiter", "\\t"), "the log has 'g,x,y,p,t'"),
        (("value", "folder.csv", *VALUE[2:]), "LOG is 'folder.csv', which is a folder; give the"),
        (("init", "x.toml", "--like", "nope"), "--like is 'nope'; allowed are "),
        (("serve", "--demo", "--port", "-1"), "--port is -1; allowed is a whole number of at lea"),
        (("serve", "--port", "99999", "x.toml"), "--port is 99999; allowed is a whole number up"),
        (("audit", "log.csv", "--columns", "odd.toml"), "odd.toml is not text in UTF-8 (line 2)"),
    ],
)  # fmt: skip
def test_advice_to_a_command_can_be_pasted_there(arguments, words, folder):
    line = refused(folder, *arguments)
    assert words in line and not FOREIGN.search(line)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ragged.csv", "has 4 values in line 3, and 2 column names; correct the file"),
        ("open.csv", "has a quote in line 2 that is never closed; correct the file"),
        ("zero.csv", "has a byte 0 in line 2, which is no text; write it again"),
        ("wide.csv", "is UTF-16, not UTF-8; say so, --encoding utf-16"),
        ("cut.csv.gz", "is not a gzip file, or is incomplete; write it again"),
        ("no.zip", "is not a ZIP archive, or is incomplete; write it again"),
        ("no.xlsx", "is not an Excel file, or is incomplete; save it again"),
        ("no.parquet", "is not a Parquet file, or is "),
        ("no.json", "is not valid JSON"),
        ("numbers.json", "has values that are not objects; allowed are lines with an object each"),
    ],
)
def test_broken_files_are_told_in_our_own_words(name, told, folder):
    value = ("value", name, *VALUE[2:])
    for command in (value, ("audit", name, *ROLES), ("init", "new.toml", "--data", name)):
        if command[0] == "audit" and name in ("ragged.csv", "open.csv"):
            continue  # the engine reads one of them, and for the other it has a message of its own
        line = refused(folder, *command)
        assert line.startswith(f"{name} {told}") and not FOREIGN.search(line)


def test_an_empty_array_has_no_rows(folder):
    assert refused(folder, "audit", "empty.json", *ROLES).startswith("empty.json has no rows")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('missing = "foo"', "is 'foo'; allowed is one of error, drop, fill, or one of them by "
         'column, such as missing = { age = "fill", others = "drop" }'),
        ("missing_marks = 3", "is 3; allowed is a list of strings and numbers, such as "
         'missing_marks = ["?", "NA", -9], or such lists by column, missing_marks = { age = [-1]'),
        ('group_probability = { F = "p" }', 'is { F = "p" }; allowed is a column for each of two'),
        ("logistic = 1", "is 1; allowed is true or false"),
        ('weight = "x"', "is 'x', which has values of 0 or below; allowed are numbers above 0: name"
         " a column that counts people in count,"),
        ('count = "x"', "is 'x', which has 80 values that are not whole; allowed are whole numbers "
         "from 0 on: name weights that are not counts in weight"),
        ('propensity = "x"', "is 'x', which has values outside 0 to 1, such as "),
        ('features = ["y"]', ": 'y' is the reward; a reward cannot be a feature"),
        ('features = "x"', "is 'x'; allowed is a list of columns"),
        ("features = [1]", "is '1', which is not a column; the log has g, x, y, p, t"),
        ('leave_out = ["zz"]', "has 'zz'; allowed are g, x, y, p, t"),
        ('true-rewards = "y"', "is unknown; did you mean 'true_reward'? allowed are arm, "),
        ('feature = ["x"]\nfeatures = ["x"]', "says the same as "),
    ],
)  # fmt: skip
@pytest.mark.parametrize("table", ["", "[columns]\n"])
def test_the_author_of_a_file_of_columns_reads_its_lines_and_keys(table, line, told, folder):
    (folder / "c.toml").write_text(f'{table}group = "g"\nreward = "y"\n{line}\n')
    said = refused(folder, "audit", "log.csv", "--columns", "c.toml", "--out", "r.json")
    key, number = line.splitlines()[-1].partition(" =")[0], 2 + bool(table) + len(line.split("\n"))
    key = f"(columns.)?{key}" if table else key
    assert re.match(rf"c\.toml, line {number}: {key}:? ?{re.escape(told.lstrip(': '))}", said), said
    assert "--" not in said and not re.search("True|False|pandas|bug", said)


EXPERIMENT = """\
policies = ["TopInterval"]
replications = 2
seed = 1
[data]
file = "log.csv"
group = "g"
reward = "y"
features = ["x"]
[run]
horizon = 10
ridge = 1.0
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('features = ["x"]', 'features = ["x"]\ntrue_share = 2', "9: data.true_share is 2; allow"),
        ('features = ["x"]', 'features = ["x"]\ntrue_share = 0.1\ntrue_delay = -1',
         "10: data.true_delay is -1; allowed is a whole number"),
        ('features = ["x"]', 'features = ["x"]\nscale = "none"\ntrue_share = 0.1\ntrue_scale = 0',
         "11: data.true_scale is 0; allowed is a number above 0"),
        ('features = ["x"]', 'features = ["x"]\ntrue_scale = 1', "4: data cannot be made: true_sh"),
        ("log.csv", "no.parquet", "5: data.file: no.parquet is not a Parquet file, or is incompl"),
        ("log.csv", "ragged.csv", "5: data.file: ragged.csv has 4 values in line 3, and 2 column"),
        ("log.csv", "gaps.csv", "5: data.file: missing values in 1 of 2 rows (x 1), the first in "),
        ('["x"]', '["zz"]', "8: data.features: column 'zz' is not in the table; it has g, x, y"),
        ('"g"', '"zz"', "6: data.group: column 'zz' is not in the table; it has g, x, y"),
        ("replications = 2", "replications = true", "2: replications is true; allowed is a whole"),
        ('features = ["x"]', "arms = { x = { quantiles = 1 } }",
         "8: data.arms: column 'x' is cut by { quantiles = 1 }; allowed are"),
        ("ridge = 1.0", "ridge = 1.0\nexploration = 3",
         "12: run.exploration is 3; allowed are 'paper' (t^(-1/3)), 'none', a probability between "
         "0 and 1, or a list that gives one for every round"),
    ],
)  # fmt: skip
def test_an_experiment_file_is_refused_by_its_own_keys(old, new, told, folder):
    (folder / "gaps.csv").write_text("g,x,y\nF,1,1\nM,,0\n")
    assert old in EXPERIMENT
    (folder / "e.toml").write_text(EXPERIMENT.replace(old, new))
    assert refused(folder, "run", "e.toml", "--out", "r").startswith(f"e.toml, line {told}")
