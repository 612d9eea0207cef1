"""Experiment files: what a valid one means, and that one line reports every mistake."""

import json
import math
import shutil
import tomllib
from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import TemplateNotFound

import evenhand as eh
from evenhand.cli import main
from evenhand.experiments import bundled, template
from evenhand.experiments.file import read_experiment
from evenhand.experiments.model import Experiment
from experiment_files import BOTH, MINE, PEOPLE, SWEPT, VALUES, WORLD, people, put, quick

BROKEN = {
    "lacking.py": "import nothing_of_this_name\n",
    "unfinished.py": "def f(:\n",
    "divides.py": "1 / 0\n",
    "leaves.py": "raise SystemExit(3)\n",
    "copied.py": "import evenhand as eh\nclass TopInterval(eh.Policy):\n    score = None\n",
    "json.py": MINE,
    "own_policies.py": MINE,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table and with policies, most of them broken."""
    place = tmp_path_factory.mktemp("files")
    people().to_csv(place / "people.csv", index=False)
    for name, text in BROKEN.items():
        (place / name).write_text(text)
    return place


def refused(path, capsys, *options):
    """The one line that the command line prints about a file."""
    assert main(["run", str(path), "--allow-code", *options]) == 2
    output = capsys.readouterr()
    assert not output.out
    lines = output.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith(f"evenhand: {path.name}"), output.err
    assert "Error:" not in lines[0] or "cannot be" in lines[0], "a bare error of Python's"
    return lines[0].removeprefix("evenhand: ")


def damaged(base, old, new):
    assert base.count(old) == 1, old
    return base.replace(old, new)


# fmt: off
TOP_LEVEL = [
    ("seed = 1\n", "seed = 1\ncolour = 1\n", "line 5: colour is unknown; allowed are axis, chart"),
    ('"made up"', "3", "line 1: title is 3; allowed is a string"),
    ("replications = 2", "replications = 0", "line 3: replications is 0; allowed is a whole"),
    ("replications = 2", "replications = -1", "line 3: replications is -1"),
    ("replications = 2", "replications = 2.5", "line 3: replications is 2.5"),
    ("replications = 2", 'replications = "2"', "line 3: replications is '2'"),
    ("replications = 2", "replications = true", "line 3: replications is true"),
    ("seed = 1", "seed = -1", "line 4: seed is -1; allowed is a whole number of at least 0"),
    ("seed = 1", f"seed = {'9' * 400}", "line 4: seed is a whole number of about 400 digits"),
    ("seed = 1", f"seed = {'9' * 5000}", "x.toml: "),
    ("seed = 1", 'conventions = "PAPER"', "line 4: conventions is 'PAPER'; allowed is a list"),
    ("seed = 1", 'conventions = ["MINE"]', "conventions has 'MINE', which is unknown; allowed are"),
    ("seed = 1", "conventions = [1]", "line 4: conventions is [1]"),
    ("seed = 1", "conventions = []", "line 4: conventions is []; name at least one, and each"),
    ("seed = 1", 'conventions = ["PAPER", "PAPER"]', "line 4: conventions is ['PAPER', 'PAPER']"),
    ("seed = 1", 'chart = "pie"', "line 4: chart is 'pie'; allowed is one of share and regret"),
    ("seed = 1", 'order = "first"', "line 4: order is 'first'"),
    ("seed = 1", "panels = 3", "line 4: panels is 3; allowed is a table"),
    ("seed = 1", 'output = "here"', "line 4: output is 'here'; allowed is a table"),
    ("seed = 1", "world = 3", "x.toml: Cannot "),
]

SWEEPS = [
    ("parameter", "paramter", "line 7: sweep.paramter is unknown; did you mean 'parameter'?"),
    (VALUES, "", "line 6: sweep lacks values"),
    ('parameter = "horizon"', "", "line 6: sweep lacks parameter"),
    ('"horizon"', "3", "line 7: sweep.parameter is 3; allowed is a string"),
    ('"horizon"', '"horizn"', "line 7: sweep.parameter has 'horizn', which is unknown; did you"),
    ('"horizon"', '"n_arm"', "allowed are advantage, bias_mean, bias_range"),
    ('"horizon"', '"data.noise"', "line 7: sweep.parameter has 'data.noise'"),
    ('"horizon"', '"conventions"', "line 7: sweep.parameter has 'conventions'"),
    ('"horizon"', '"seed"', "line 7: sweep.parameter has 'seed'"),
    ('"horizon"', '"delta"', "line 14: run lacks horizon, the number of rounds"),
    (VALUES, "values = []", "line 8: sweep.values is []; allowed is a list of different numbers"),
    (VALUES, "values = 10", "line 8: sweep.values is 10"),
    (VALUES, 'values = ["a"]', "line 8: sweep.values is ['a']"),
    (VALUES, "values = [10, 10]", "line 8: sweep.values is [10, 10]"),
    (VALUES, "values = [10, nan]", "line 8: sweep.values is [10, nan]"),
    (VALUES, "values = [10, inf]", "line 8: sweep.values is [10, inf]"),
    (VALUES, "values = [true, 10]", "line 8: sweep.values is [true, 10]"),
    (VALUES, "values = [10, -20]", "line 8: sweep.values: horizon is -20; allowed is a whole"),
    (VALUES, "values = [10, 20.5]", "line 8: sweep.values: horizon is 20.5"),
    (VALUES, "values = { from = 10, to = 20 }", "line 8: sweep.values is { from = 10, to = 20 }"),
    (VALUES, "values = { from = 10, to = 20, step = 0 }", "or { from = 20, to = 400, step = 20 }"),
    (VALUES, "values = { from = 10, to = 20, step = -1 }", "line 8: sweep.values is"),
    (VALUES, "values = { from = 20, to = 10, step = 1 }", "line 8: sweep.values is"),
    (VALUES, "values = { from = 1, to = inf, step = 1 }", "line 8: sweep.values is"),
    (VALUES, "values = { from = 1, to = 1e12, step = 1 }", "line 8: sweep.values is"),
    (VALUES, 'values = { from = "a", to = 9, step = 1 }', "line 8: sweep.values is"),
    (VALUES, "values = { from = 1, to = 9, step = 1, by = 2 }", "line 8: sweep.values is"),
    (VALUES, f"{VALUES}\nmultiples = 3", "line 9: sweep.multiples is 3; allowed is a table of"),
    (VALUES, f'{VALUES}\nmultiples = {{ n_arms = "a" }}', "line 9: sweep.multiples is"),
    (VALUES, f"{VALUES}\nmultiples = {{ noise = 2 }}", "sweep.multiples.noise is unknown; allowed"),
    (VALUES, f"{VALUES}\nmultiples = {{ n_arms = 0 }}", "line 9: sweep.multiples: n_arms is 0"),
    (f"[sweep]\n{SWEPT}\n", "", "line 11: run lacks horizon, the number of rounds; or sweep it"),
    (SWEPT, 'parameter = "delta"\nvalues = [0.1, 1.5]\n[sweep.multiples]\n\n[panels]\n'
        'parameter = "horizon"\nvalues = [10]',
     "line 8: sweep.values: delta is 1.5; allowed is a number between 0 and 1"),
]

PANELS = [
    ("", "line 16: panels lacks parameter"),
    ('parameter = "delta"\n', "line 16: panels lacks values"),
    ('parameter = "delt"\nvalues = [0.1]', "line 17: panels.parameter has 'delt', which is unk"),
    ('parameter = "delta"\nvalues = []', "line 18: panels.values is []"),
    ('parameter = "delta"\nvalues = [0.1, 2]', "line 18: panels.values: delta is 2; allowed is"),
    ('parameter = "horizon"\nvalues = [5]', "line 17: panels.parameter is 'horizon', which is s"),
    ('parameter = "delta"\nvalues = [0.1]\nmultiples = { n_arms = 2 }',
     "line 19: panels.multiples is unknown; allowed are parameter, values"),
]

WORLDS = [
    ("n_arms", "n_arm", "line 11: world.n_arm is unknown; did you mean 'n_arms'? allowed are"),
    ("n_arms = 4", "n_arms = -4", "line 11: world.n_arms is -4; allowed is a whole number of at"),
    ("n_arms = 4", "n_arms = [4]", "line 11: world.n_arms is [4]; allowed is a whole number"),
    ("n_arms = 4", "n_arms = 4\nnoise = -1", "line 12: world.noise is -1; allowed is a finite"),
    ("n_arms = 4", "n_arms = 4\nnoise = inf", "line 12: world.noise is inf"),
    ("n_arms = 4", 'n_arms = 4\nconventions = "PAPER"', "it belongs above the first [table]"),
    ("n_arms = 4", "n_arms = 4\nn_sensitive = 4", "line 12: world.n_sensitive is 4; allowed is 1"),
    ("[run]", '[data]\nfile = "people.csv"\n[run]', "line 14: data and [world] are both given"),
    ("delta = 0.1", "detla = 0.1", "line 15: run.detla is unknown; did you mean 'delta'? allowed"),
    ("delta = 0.1", "delta = 3", "line 15: run.delta is 3; allowed is a number between 0 and 1"),
    ("delta = 0.1", 'delta = "a"', "line 15: run.delta is 'a'"),
    ("delta = 0.1", "delta = { a = 1 }", "line 15: run.delta is { a = 1 }"),
    ("delta = 0.1", f"delta = {'9' * 400}", "line 15: run.delta is a whole number of about 400"),
    ("delta = 0.1", "replications = 3", "line 15: run.replications is unknown; it belongs above"),
    ("delta = 0.1", "seed = 3", "line 15: run.seed is unknown; it belongs above the first [table]"),
    ("delta = 0.1", "groups = 3", "line 15: run.groups is unknown"),
    ("delta = 0.1", 'exploration = "maybe"', "line 15: run.exploration is 'maybe'; allowed are"),
    ("delta = 0.1", "offset = 3", "line 15: run.offset is not a setting of TopInterval; give"),
    ("delta = 0.1", "horizon = -3", "line 15: run.horizon is -3"),
    ("[run]", "[under.MINE.world]\nnoise = 2\n[run]", "line 14: under.MINE is unknown; allowed"),
    ("[run]", "[under]\nPAPER = 3\n[run]", "line 15: under.PAPER is 3; allowed is a table"),
    ("[run]", "[under.PAPER]\nworld = 3\n[run]", "line 15: under.PAPER.world is 3"),
    ("[run]", "[under.PAPER.sky]\nnoise = 2\n[run]", "line 14: under.PAPER.sky is unknown; allo"),
    ("[run]", "[under.PAPER.data]\nnoise = 2\n[run]", "line 14: under.PAPER.data is unknown; al"),
    ("[run]", "[under.PAPER.world]\nsky = 2\n[run]", "line 15: under.PAPER.world.sky is unknown"),
    ("[run]", "[under.PAPER.world]\nnoise = -2\n[run]", "line 15: under.PAPER.world.noise is -2"),
    ("[run]", "[under.PAPER.run]\nsky = 2\n[run]", "line 15: under.PAPER.run.sky is unknown"),
    ("[run]", "[under.PAPER.run]\ndelta = 2\n[run]", "line 15: under.PAPER.run.delta is 2"),
    ("[run]", "[output]\nfolders = 2\n[run]", "line 15: output.folders is unknown; did you mean"),
    ("[run]", "[output]\nfolder = 2\n[run]", "line 15: output.folder is 2; allowed is a string"),
    ("[run]", '[output]\nfigures = "pdf"\n[run]', "line 15: output.figures is 'pdf'; allowed is"),
    ("[run]", '[output]\nfigures = ["gif"]\n[run]', "line 15: output.figures has 'gif', which is"),
    ("[run]", '[output]\ntables = ["xls"]\n[run]', "unknown; allowed are csv, parquet"),
    ("[run]", "[published]\n[run]", "line 14: published needs `file`, an existing CSV file"),
    ("[run]", '[published]\nfile = 3\nunder = "PAPER"\n[run]', "line 15: published.file is 3"),
    ("[run]", '[published]\nfile = "people.csv"\nunder = "MINE"\n[run]',
     "line 16: published.under has 'MINE', which is unknown"),
    ("[run]", '[published]\nfile = "people.csv"\nunder = "PAPER"\n[run]',
     "line 15: published.file needs the columns experiment, x, policy, metric, value"),
]

POLICIES = [
    ("3", "line 2: policies is 3; allowed is a list"),
    ("[]", "line 2: policies is empty; name at least one"),
    ("[3]", "line 2: policies has 3; allowed is a name or a table with `policy`"),
    ("[{}]", "line 2: policies has {}"),
    ('[["TopInterval"]]', "line 2: policies has ['TopInterval']"),
    ('["TopIntervall"]', "line 2: policies has 'TopIntervall', which is unknown; did you mean 'To"),
    ('[\n"TopInterval",\n"Top",\n]', "line 4: policies has 'Top', which is unknown"),
    ('["TopInterval", "TopInterval"]', "line 2: policies has 'TopInterval' twice; give one of th"),
    ('["TopInterval", { policy = "UniformRandom", label = "TopInterval" }]',
     "line 2: policies has 'TopInterval' twice; give one of them a label of its own"),
    ('[{ policy = "NaiveFair", label = 3 }]', "line 2: policies has the label 3; allowed is a s"),
    ('[{ policy = "NaiveFair", label = "" }]', "line 2: policies has the label ''"),
    ('[\n"TopInterval",\n{ policy = "NaiveFair", insde = "thompson" },\n]',
     "line 4: policies has 'insde' for NaiveFair, which is unknown; did you mean 'inside'?"),
    ('[{ policy = "NaiveFair", seed = 3 }]', "has 'seed' for NaiveFair, which is unknown"),
    ('[\n"TopInterval",\n{ policy = "NaiveFair", label = "mine", inside = "x" },\n]',
     "line 4: policies has 'mine', which cannot be made: inside is 'x'; allowed is one of"),
    ('[{ policy = "NaiveFair", delta = 3 }]', "has 'NaiveFair', which cannot be made: delta is"),
    ('["absent.py:Mine"]', "line 2: policies has 'absent.py:Mine', but there is no file"),
    ('["people.csv:Mine"]',
     """line 2: policies has 'people.csv:Mine'; allowed is "file.py:Class"""),
    ('["own_policies.py"]', """'own_policies.py'; allowed is "file.py:Class"""),
    ('["own_policies.py:"]', """'own_policies.py:'; allowed is "file.py:Class"""),
    ('["own_policies.py:Nobody"]', "has no policy 'Nobody'; it has Bare, Mine, Stubborn"),
    ('["own_policies.py:NoPolicy"]', "has no policy 'NoPolicy'"),
    ('["own_policies.py:Bare"]', "Bare has neither a rule nor a score; write one of them"),
    ('["own_policies.py:Stubborn"]', "which cannot be made: KeyError: 'never'"),
    ('["lacking.py:A"]', "cannot be imported: ModuleNotFoundError: No module named 'nothing_of"),
    ('["unfinished.py:A"]', "cannot be imported: SyntaxError"),
    ('["divides.py:A"]', "divides.py cannot be imported: ZeroDivisionError: division by zero"),
    ('["leaves.py:A"]', "leaves.py cannot be imported: SystemExit: 3"),
    ('["copied.py:TopInterval"]', "TopInterval is the name of a policy in evenhand"),
    ('["json.py:Mine"]', "json is also the name of another module; rename json.py"),
]

FILE = 'file = "people.csv"'
TABLES = [
    (FILE, "", 'line 10: data needs either file = "people.csv" or dataset = "compas"'),
    (FILE, f'{FILE}\ndataset = "mortgage"', "line 10: data needs either file"),
    (FILE, 'dataset = "mortgages"', "line 11: data.dataset has 'mortgages', which is unknown; di"),
    (FILE, 'dataset = ["mortgage"]', "line 11: data.dataset is ['mortgage']; allowed is a string"),
    (FILE, "file = 3", "line 11: data.file is 3; allowed is a string"),
    ("people.csv", "peple.csv", "line 11: data.file is 'peple.csv', but there is no such file in"),
    ("people.csv", ".", "line 11: data.file is '.'"),
    ("people.csv", "own_policies.py", "line 11: data.file is"),
    ('group = "sex"\n', "", "line 10: data lacks group, the name of a column"),
    ('reward = "paid"\n', "", "line 10: data lacks reward, the name of a column"),
    ('"sex"', "3", "line 12: data.group is 3; allowed is a string or a list of strings"),
    ('"sex"', "[]", "line 12: data.group is []"),
    ('"sex"', '"sexx"', "line 12: data.group: column 'sexx' is not in the table"),
    ('"sex"', '["sex", "rac"]', "line 12: data.group: column 'rac' is not in the table"),
    ('"paid"', '"payd"', "line 14: data.reward: column 'payd' is not in the table"),
    ('"paid"', '["paid"]', "line 14: data.reward is ['paid']; allowed is a string"),
    ('"paid"', '"word"', "line 14: data.reward is 'word', a column of text with 'yes' in"),
    ('["debt"]', '[\n"debt",\n"dept",\n]', "line 17: data.features: column 'dept' is not in the"),
    ('["debt"]', "3", "line 15: data.features is 3; allowed is a list of strings"),
    ('["debt"]', "[]", "line 15: data.features are none"),
    ('["debt"]', '["paid"]', "line 14: data.reward"),
    ('"F"', '"X"', "line 13: data.sensitive is 'X', which is not a value of sex; allowed is one"),
    ('"F"', '["F"]', "line 13: data.sensitive is ['F']; allowed is a string, a number, true or"),
    ('"F"', "2020-01-01", "line 13: data.sensitive is datetime.date(2020, 1, 1); allowed is a s"),
    ('sensitive = "F"\n', "", "line 2: policies has 'GroupFairTopInterval', which cannot be made"),
    ('"sex"\nsensitive = "F"', '"race"\nsensitive = "a"', "allows exactly two"),
    ('"F"', '"F"\nothers = "x"', "line 14: data.others is 'x'; allowed is one of apart, together"),
    ('"F"', '"F"\nscale = "x"', "line 14: data.scale is 'x'; allowed is one of none, standardise"),
    ('"F"', '"F"\nnominal = "x"', "line 14: data.nominal is 'x'; allowed is one of codes, one-"),
    ('"F"', '"F"\nintercept = "x"', "line 14: data.intercept is 'x'; allowed is true or false"),
    ('"F"', '"F"\nmissing = "x"', "line 14: data.missing is 'x'"),
    ('"F"', '"F"\nmissing = { debt = 3 }', "line 14: data.missing is { debt = 3 }; allowed is a"),
    ('"F"', '"F"\nmissing = { colour = "fill" }', "line 14: data.missing names 'colour'"),
    ('"F"', '"F"\nmissing_marks = "NA"', "line 14: data.missing_marks is 'NA'; allowed is a list"),
    ('"F"', '"F"\nreward_values = 3', "line 14: data.reward_values is 3; allowed is a table of n"),
    ('"F"', '"F"\nreward_values = { a = "b" }', "line 14: data.reward_values is { a = \"b\" }"),
    ('"F"', '"F"\ntrue_reward = "x"', "line 14: data.true_reward: column 'x' is not in the"),
    ('"F"', '"F"\nnoise = -1', "line 14: data.noise is -1; allowed is a finite number of at le"),
    ('"F"', '"F"\nabsolute_rewards = 1', "line 14: data.absolute_rewards is 1; allowed is true"),
    ('"F"', '"F"\nseparator = "::"', "line 14: data.separator is '::'; allowed is a single char"),
    ('"F"', '"F"\nleave_out = "race"', "line 14: data.leave_out is 'race'; allowed is a list"),
    ('"F"', '"F"\nleave_out = ["x"]', "line 14: data.leave_out: column 'x' is not in the table"),
    ('"F"', '"F"\nnominal_columns = ["x"]', "line 14: data.nominal_columns: column 'x' is not"),
    ('"F"', '"F"\ndata = "people.csv"', "line 14: data.data is unknown"),
    ('"F"', '"F"\nn_arms = 3', "line 14: data.n_arms is unknown"),
    ("age = 3", "agee = 3", "line 18: data.arms: column 'agee' is not in the table"),
    ("age = 3", "age = 1", "line 18: data.arms: column 'age' is cut by 1; allowed are"),
    ("age = 3", 'age = "x"', "line 18: data.arms: column 'age' is cut by 'x'"),
    ("age = 3", 'age = ["a", "b"]', "line 17: data.arms is { age = [\"a\", \"b\"] }; allowed is a"),
    ("age = 3", "age = [40, 30]", "line 17: data.arms: "),
    ("age = 3", "age = [30, 40]", "line 18: data.arms: column 'age' has"),
    ("age = 3", "age = { quantiles = 1 }", "line 18: data.arms: column 'age' is cut by"),
    ("age = 3", "age = { quantile = 3 }", "line 18: data.arms: column 'age' is cut by"),
    ("age = 3", "race = 3", "line 18: data.arms: column 'race' is not"),
    ("[data.arms]\nage = 3", "arms = 3", "line 17: data.arms is 3; allowed is a string, a list of"),
    ('"horizon"', '"n_arms"', "line 7: sweep.parameter has 'n_arms', which is unknown; allowed"),
    ('"horizon"', '"features"', "line 7: sweep.parameter has 'features', which is unknown"),
    ("seed = 1", 'chart = "rate"', "line 4: chart is 'rate', which needs true rewards"),
    ("[run]", "[under.PAPER.world]\nn_arms = 3\n[run]", "line 20: under.PAPER.world is unknown"),
]

# fmt: on

MISTAKES = [
    *((WORLD, *case) for case in (*TOP_LEVEL, *SWEEPS, *WORLDS)),
    *((PEOPLE, *case) for case in TABLES),
    *((WORLD, BOTH, new, says) for new, says in POLICIES),
    *((WORLD + "[panels]\nEND", "END", new, says) for new, says in PANELS),
]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Anything that runs by accident writes its report there."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("base", "old", "new", "says"), MISTAKES)
def test_a_mistake_is_reported_with_its_line_and_key(folder, capsys, base, old, new, says):
    path = put(folder, damaged(base, old, new))
    assert says in refused(path, capsys)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "x.toml: run lacks horizon, the number of rounds"),
        (b"# nothing\n", "x.toml: run lacks horizon"),
        (b"title = \n", "line 1"),
        (b"seed = 1\nseed = 2\n", "line 2"),
        (b"[run]\nhorizon = 10\n[run\n", "line 3"),
        (b"title = '\xff'\n", "x.toml is not text in UTF-8"),
        (WORLD.encode("utf-16"), "x.toml is not text in UTF-8"),
        (b"\0", "line 1"),
        (b"note = " + b"[" * 20_000, "x.toml: "),  # deeper than the parser allows
    ],
)
def test_a_file_that_is_not_toml_is_reported(folder, capsys, text, says):
    assert says in refused(put(folder, text), capsys)


def test_files_that_are_not_experiments_are_reported(folder, capsys):
    for name, says in (
        ("absent.toml", "FILE is 'absent.toml', but there is no such file; give a TOML file"),
        (".", "FILE is '.', but there is no such file"),
        ("colour", "or one of T, ablation, arms"),
    ):
        assert main(["run", name]) == 2
        assert says in capsys.readouterr().err
    put(folder, PEOPLE)
    shutil.copy(folder / "people.csv", folder / "table.toml")
    assert "line 1" in refused(folder / "table.toml", capsys)


@pytest.mark.parametrize("kind", ["parquet", "csv.gz", "csv.zip", "csv"])
def test_a_table_that_cannot_be_read_is_reported(folder, capsys, kind):
    (folder / f"garbage.{kind}").write_bytes(bytes(range(256)) * 40)
    path = put(folder, PEOPLE.replace("people.csv", f"garbage.{kind}"))
    assert "line 1" in refused(path, capsys)


@pytest.mark.parametrize(
    "error", [TypeError("odd"), OverflowError("large"), TemplateNotFound("a.html")], ids=repr
)
def test_a_bug_is_no_mistake_in_the_file(error, folder, monkeypatch):
    def fail(*_):
        raise error

    monkeypatch.setattr(Experiment, "points", fail)
    with pytest.raises(type(error)) as caught:
        read_experiment(put(folder, WORLD))
    assert caught.value is error


def test_a_byte_order_mark_does_no_harm(folder):
    path = put(folder, b"\xef\xbb\xbf" + WORLD.replace("\n", "\r\n").encode())
    assert read_experiment(path).title == "made up"


# Damage -------------------------------------------------------------------------------------------

ODD = st.sampled_from(
    [
        None, -1, 0, 1, 3, 1.5, -0.5, 1e300, math.nan, math.inf, 10**30, True, "", "x", "paid", "F",
        "own_policies.py:Mine", "PAPER", [], [1], [0.5, 0.1], ["x"], ["debt", "age"], [[]], [None],
        {}, {"x": 1}, {"quantiles": 2}, {"from": 1, "to": 3, "step": 1},
    ]
).map(deepcopy)  # fmt: skip
GOOD = [WORLD, PEOPLE, template.example(Path("x.toml")), bundled.copy_of("error"),
        bundled.copy_of("mortgage")]  # fmt: skip


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def to_toml(value):
    """The data of a file as inline TOML; None is left out."""
    if isinstance(value, dict):
        rows = [f"{quoted(k)} = {to_toml(v)}" for k, v in value.items() if v is not None]
        return "{ " + ", ".join(rows) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(to_toml(item) for item in value if item is not None) + "]"
    if isinstance(value, str):
        return quoted(value)
    return str(value).lower()  # true, nan, inf, numbers


def places_in(value, path=()):
    yield path
    if isinstance(value, (dict, list)):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in pairs:
            yield from places_in(part, (*path, key))


def reads_or_tells(path):
    try:
        experiment = read_experiment(path, allow_code=True)
    except ValueError as error:
        assert str(error).startswith(path.name), error
        return
    assert all(point.horizon >= 1 for point in experiment.points(eh.PAPER))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # few rows in an arm, constant features
@quick
@given(base=st.sampled_from(GOOD), data=st.data())
def test_any_value_of_a_good_file_may_be_changed(folder, base, data):
    content = tomllib.loads(base)
    for _ in range(data.draw(st.integers(1, 2))):
        *way, last = data.draw(st.sampled_from([path for path in places_in(content) if path]))
        inside = content
        for key in way:
            inside = inside[key]
        if not isinstance(inside, (dict, list)):
            continue
        if isinstance(inside, dict) and data.draw(st.booleans()):
            inside[data.draw(st.sampled_from(["colour", last, "seed", "noise"]))] = data.draw(ODD)
        else:
            inside[last] = data.draw(ODD)
    text = "\n".join(f"{quoted(k)} = {to_toml(v)}" for k, v in content.items() if v is not None)
    reads_or_tells(put(folder, text, name="changed.toml"))


@pytest.mark.filterwarnings("ignore::UserWarning")
@quick
@given(base=st.sampled_from(GOOD), data=st.data())
def test_any_part_of_a_good_file_may_be_lost(folder, base, data):
    start = data.draw(st.integers(0, len(base)))
    stop = min(len(base), start + data.draw(st.integers(0, 40)))
    put_in = data.draw(st.sampled_from(["", "=", "[", '"', "\n", "#", "9", ".", "é", "\0", " "]))
    reads_or_tells(put(folder, base[:start] + put_in + base[stop:], name="damaged.toml"))
