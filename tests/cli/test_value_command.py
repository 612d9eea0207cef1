"""`evenhand value`: the same numbers as in Python, and one line for a mistake."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.cli import main
from evenhand.errors import SeenWarning
from evenhand.offpolicy import Logged, evaluate
from log_scripts import LABELS

WORLD = eh.LinearWorld(
    LABELS,
    coefficients=np.array([[2.0, 1.0], [1.0, 2.0], [1.0, 1.0], [2.0, 2.0]]),
    bias=np.array([[-1.0, 0.0], [0.0, 0.0]]),
    noise=0.5,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log with candidates, one without, one of another program, and two saved policies."""
    folder = tmp_path_factory.mktemp("value")
    how = {"horizon": 800, "seed": 3, "exploration": 0.5, "features": ["age", "income"]}
    log = eh.simulate_log(
        eh.TopInterval, WORLD, path=folder / "log.parquet", candidates=True, **how
    )
    eh.simulate_log(eh.TopInterval, WORLD, path=folder / "plain.csv", **how)
    first = log[log["round"] <= 300]
    target = eh.MultiGroupFairTopInterval(LABELS, n_features=2, exploration=0.2, seed=1)
    eh.replay(first, target, features=["age", "income"]).save(folder / "target.json")
    eh.replay(folder / "log.parquet").save(folder / "itself.json")
    eh.TopInterval(["F", "M"], n_features=2, seed=1).save(folder / "small.json")
    eh.TopInterval(LABELS, n_features=3, seed=1).save(folder / "long.json")
    rng = np.random.default_rng(7)
    arms = rng.integers(4, size=300)
    names = np.array(["north", "east", "south", "west"])
    others = pd.DataFrame({"branch": names[arms], "paid": rng.random(300), "p": 0.25})
    others["age"], others["one"] = rng.random(300), 1.0
    others["sex"], others["number"] = np.array(LABELS)[arms], arms
    others.to_csv(folder / "others.csv", index=False)
    pd.DataFrame({"arm": names, "group": LABELS}).to_csv(folder / "arms.csv", index=False)
    return folder


def run(folder, capsys, *arguments):
    """The exit code, the output and the errors; paths are relative to the folder."""
    given = [
        str(folder / argument) if argument.endswith((".json", "quet", "csv")) else argument
        for argument in arguments
    ]
    code = main(["value", *given])
    output = capsys.readouterr()
    return code, output.out, output.err


OF_OTHERS = ["--arm", "branch", "--reward", "paid", "--propensity", "p"]


def test_a_saved_policy_on_our_own_log(folder, capsys):
    out = folder / "value.json"
    arguments = ["log.parquet", "--policy", "target.json", "--after", "300", "--out", "value.json"]
    code, output, errors = run(folder, capsys, *arguments, "--correct", "--reference", "M")
    assert (code, errors) == (0, "")
    log, target = eh.read_log(folder / "log.parquet"), eh.load(folder / "target.json")
    expected = evaluate(log, target, after=300, bias=target.bias(reference="M"))
    assert output == f"{expected.to_words()}\n\nread {out}\n"
    assert json.loads(out.read_text()) == json.loads(expected.to_json())
    assert "In corrected reward the target would have earned" in output


def test_a_policy_with_its_own_kind_of_report(folder, capsys):
    """PooledGroupFair.bias is a different report; values are corrected by that of `Policy`."""
    log = eh.read_log(folder / "log.parquet")
    target = eh.PooledGroupFair(LABELS, n_features=2, exploration=0.2, seed=1)
    eh.replay(log[log["round"] <= 300], target, features=["age", "income"])
    target.save(folder / "pooled.json")
    arguments = ["log.parquet", "--policy", "pooled.json", "--after", "300", "--correct"]
    code, output, errors = run(folder, capsys, *arguments, "--reference", "M")
    assert (code, errors) == (0, "")
    expected = evaluate(log, target, after=300, bias=eh.Policy.bias(target, reference="M"))
    assert output.startswith(expected.to_words())


@pytest.mark.slow
def test_uniform_level_and_another_policys_bias(folder, capsys):
    code, output, _ = run(
        folder, capsys, "plain.csv", "--uniform", "--level", "0.9", "--interval", "bootstrap",
        "--bias-from", "target.json", "--weighting", "arms",
    )  # fmt: skip
    bias = eh.load(folder / "target.json").bias("mean", level=0.9, weighting="arms")
    expected = evaluate(folder / "plain.csv", "uniform", bias=bias, level=0.9, interval="bootstrap")
    assert (code, output) == (0, f"{expected.to_words()}\n")
    assert "DR" not in output and "90 % interval" in output


@pytest.mark.filterwarnings("default")
def test_a_policy_that_learned_from_the_log_is_reported(folder, capsys):
    code, _, errors = run(folder, capsys, "log.parquet", "--policy", "itself.json")
    assert code == 0
    assert errors.startswith("evenhand: warning: --policy is in the state in which this log ended")
    assert errors.count("\n") == 1


@pytest.mark.filterwarnings("default")
def test_a_policy_that_may_have_learned_from_the_log_is_reported(folder, capsys):
    """It has as many rewards of every arm; not if rounds are left out, nor without observations."""
    code, _, errors = run(folder, capsys, "log.parquet", "--policy", "target.json")
    assert (code, errors.count("\n")) == (0, 1)
    assert errors.startswith("evenhand: warning: --policy may have learned from rows of this log")
    assert "(300 in all)" in errors and "--after ROUND" in errors
    for after in ("300", "0"):
        ask = ["log.parquet", "--policy", "target.json", "--after", after]
        assert run(folder, capsys, *ask)[::2] == (0, "")
    eh.TopInterval(LABELS, n_features=2, seed=1).save(folder / "fresh.json")
    other = eh.load(folder / "target.json")  # one arm has more than the log
    many = int((eh.read_log(folder / "log.parquet")["item_id"] == 0).sum())
    other.absorb([0] * many, np.ones((many, 2)), np.ones(many))
    other.save(folder / "other.json")
    for policy in ("fresh.json", "other.json"):
        assert run(folder, capsys, "log.parquet", "--policy", policy)[::2] == (0, "")


@pytest.mark.filterwarnings("default")
def test_a_policy_as_the_log_found_it_has_not_seen_it(folder, capsys):
    policy = eh.TopInterval(LABELS, n_features=2, exploration=0.5, seed=1)
    rng = np.random.default_rng(8)
    policy.absorb([0, 1, 2, 3], rng.random((4, 2)), rng.random(4))
    policy.save(folder / "first.json")
    with eh.log_to(folder / "later.parquet", policy, candidates=True) as logged:
        for _ in range(200):
            logged.update(logged.select(rng.random((4, 2))), rng.random())
    assert run(folder, capsys, "later.parquet", "--policy", "first.json")[::2] == (0, "")
    again = eh.load(folder / "first.json")
    again.absorb([0], rng.random((1, 2)), [1.0])
    again.save(folder / "first.json")
    assert "may have" in run(folder, capsys, "later.parquet", "--policy", "first.json")[2]


@pytest.mark.filterwarnings("default")
def test_a_log_of_another_program_may_have_been_seen_too(folder, capsys):
    frame = pd.read_csv(folder / "others.csv")
    policy = eh.TopInterval(LABELS, n_features=2, exploration=0.5, seed=1)
    half = frame[:150]
    policy.absorb(half["number"], half[["age", "one"]], half["paid"])
    policy.save(folder / "half.json")
    ask = ["--arm", "number", *OF_OTHERS[2:], "--feature", "age", "--feature", "one", "--shared"]
    code, _, errors = run(folder, capsys, "others.csv", *ask, "--policy", "half.json")
    assert code == 0 and "(150 in all)" in errors
    assert "use rows that it has not seen" in errors and "--after" not in errors


def test_callers_in_python_get_the_same_warnings(folder):
    """Also for a frame and for arrays, which know less than the file."""
    path, itself = folder / "log.parquet", eh.load(folder / "itself.json")
    with pytest.warns(
        SeenWarning, match="^target is in the state in which this log ended"
    ) as warned:
        evaluate(path, itself)
    assert warned[0].filename == __file__
    target = eh.load(folder / "target.json")
    for log, remedy in (
        (path, r"with after=ROUND, or give after=0 if it has seen none$"),
        (eh.read_log(path), "or give after=0 if"),
        (Logged.from_log(path), "or give after=0 if"),
    ):
        with pytest.warns(SeenWarning, match=f"target may have learned .*{remedy}") as warned:
            evaluate(log, target)
        assert warned[0].filename == __file__
    report = evaluate(path, target, after=300)
    assert report.to_json() == evaluate(eh.read_log(path), target, after=300).to_json()


def test_an_untrained_policy_corrects_nothing(folder, capsys):
    eh.TopInterval(LABELS, n_features=2, seed=1).save(folder / "fresh.json")
    code, output, _ = run(folder, capsys, "log.parquet", "--policy", "fresh.json", "--correct")
    about = [line for line in output.split("\n") if "correct" in line]
    why = [
        f"the bias of group {name} is not identified (where it was learned: group {name} was "
        "never chosen)"
        for name in "FM"
    ]
    assert code == 0
    assert about == [
        "The corrected value is not known, neither for the target nor for the log, because "
        f"{' and '.join(why)}."
    ]


def test_words_and_marks_in_a_log_of_another_program(folder, capsys):
    table = pd.read_csv(folder / "others.csv")
    good = table["paid"] > 0.5
    plain = table.assign(paid=good.astype(float).where(table.index % 50 != 0))
    words = table.assign(paid=np.where(table.index % 50 == 0, "?", np.where(good, "yes", "no")))
    plain.to_csv(folder / "plain numbers.csv", index=False)
    words.to_csv(folder / "words.csv", index=False)
    roles = [*OF_OTHERS, "--group", "sex", "--uniform"]
    code, expected, _ = run(folder, capsys, "plain numbers.csv", *roles)
    assert code == 0
    code, _, errors = run(folder, capsys, "words.csv", *roles)
    assert code == 2 and "--reward-values yes=1,no=0 --missing-marks '?', or name another" in errors
    flags = ["--reward-values", "yes=1,no=0", "--missing-marks", "?"]
    assert run(folder, capsys, "words.csv", *roles, *flags) == (0, expected, "")
    code, _, errors = run(folder, capsys, "log.parquet", "--uniform", *flags)
    assert code == 2 and "--reward-values is for logs that evenhand did not write" in errors
    given = {"arm": "branch", "reward": "paid", "propensity": "p"}
    meant = {"reward_values": {"yes": 1, "no": 0}, "missing_marks": ["?"]}
    names = pd.read_csv(folder / "arms.csv")["arm"]
    logged = Logged.from_frame(words, LABELS, arm_names=names, **given, **meant)
    np.testing.assert_array_equal(logged.rewards, plain["paid"])


def test_a_log_of_another_program_with_its_own_names(folder, capsys):
    """Groups are read from the log or from a file; arms go by name or by number."""
    frame = pd.read_csv(folder / "others.csv")
    read = {"arm": "branch", "reward": "paid", "propensity": "p"}
    names = ["east", "north", "south", "west"]  # in their order
    expected = evaluate(
        Logged.from_frame(frame, ["M", "F", "F", "M"], arm_names=names, **read), "uniform"
    )
    code, output, _ = run(folder, capsys, "others.csv", *OF_OTHERS, "--group", "sex", "--uniform")
    assert (code, output) == (0, f"{expected.to_words()}\n")
    names = ["north", "east", "south", "west"]
    logged = Logged.from_frame(frame, LABELS, features=["age", "one"], arm_names=names, **read)
    target = eh.load(folder / "target.json")
    expected = evaluate(logged, target)
    features = ["--feature", "age", "--feature", "one", "--shared", "--policy", "target.json"]
    for arms in (
        [*OF_OTHERS, "--groups", "arms.csv"],
        ["--arm", "number", *OF_OTHERS[2:]],
        ["--arm", "number", *OF_OTHERS[2:], "--group", "sex"],
    ):
        code, output, _ = run(folder, capsys, "others.csv", *arms, *features)
        assert (code, output) == (0, f"{expected.to_words()}\n"), arms


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("give either --policy FILE or --uniform", ["log.parquet"]),
        ("give either --policy FILE", ["log.parquet", "--uniform", "--policy", "x.json"]),
        ("--correct needs --policy", ["log.parquet", "--uniform", "--correct"]),
        ("--reference is for a bias", ["log.parquet", "--uniform", "--reference", "M"]),
        ("--interval is 'wide'", ["log.parquet", "--uniform", "--interval", "wide"]),
        ("v.html'; allowed is a name that ends in .json",
         ["log.parquet", "--uniform", "--out", "v.html"]),
        ("level is 2.0", ["log.parquet", "--uniform", "--level", "2"]),
        ("--after is -1", ["log.parquet", "--uniform", "--after", "-1"]),
        ("the log has rounds up to 800", ["log.parquet", "--uniform", "--after", "900"]),
        ("but there is no such log", ["nothing.parquet", "--uniform"]),
        ("but there is no such log", ["log.txt", "--uniform"]),
        ("nothing.json: No such file", ["log.parquet", "--policy", "nothing.json"]),
        ("arms.csv is not a saved policy", ["log.parquet", "--policy", "arms.csv"]),
        ("--policy has 2 arms", ["log.parquet", "--policy", "small.json"]),
        ("--policy has 3 features; the log has 2", ["log.parquet", "--policy", "long.json"]),
        ("such as --uniform", ["plain.csv", "--policy", "target.json"]),
        ("--arm is for logs that evenhand", ["plain.csv", "--uniform", "--arm", "item_id"]),
        ("reference is 'X'; allowed is one of F, M", ["log.parquet", "--policy", "target.json",
         "--correct", "--reference", "X"]),
        ("no column is the reward", ["others.csv", "--uniform", "--arm", "branch"]),
        ("no column is the propensity", ["others.csv", "--uniform", *OF_OTHERS[:4]]),
        ("no column holds the group", ["others.csv", "--uniform", *OF_OTHERS]),
        ("which is not a column; did you mean 'paid'",
         ["others.csv", "--uniform", "--arm", "branch", "--reward", "payd"]),
        ("arm F is in groups", ["others.csv", "--uniform", "--arm", "sex",
         "--reward", "paid", "--propensity", "p", "--group", "branch"]),
        ("branch has names; give --groups", ["others.csv", *OF_OTHERS, "--policy", "target.json"]),
        ("--policy needs the context of the round", ["others.csv", *OF_OTHERS, "--groups",
         "arms.csv", "--policy", "target.json", "--feature", "age"]),
        ("--policy has 2 features; the log has 1", ["others.csv", *OF_OTHERS, "--groups",
         "arms.csv", "--policy", "target.json", "--feature", "age", "--shared"]),
        ("columns arm and group", ["others.csv", *OF_OTHERS, "--uniform", "--groups",
         "others.csv"]),
        ("group is 'M' in row 3, of an arm in group 'F'", ["others.csv", *OF_OTHERS, "--groups",
         "arms.csv", "--uniform", "--group", "wrong"]),
        ("--after is 3, and the log has no column round", ["others.csv", *OF_OTHERS, "--uniform",
         "--after", "3"]),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(words, arguments, folder, capsys):
    if "wrong" in arguments:  # a file with other groups for the arms
        frame = pd.read_csv(folder / "others.csv").assign(wrong="M").rename(columns={"sex": "was"})
        frame.rename(columns={"wrong": "group"}).to_csv(folder / "wrong.csv", index=False)
        arguments = ["wrong.csv", *arguments[1:-2]]
    code, output, errors = run(folder, capsys, *arguments)
    assert (code, output) == (2, "")
    assert errors.startswith("evenhand: ") and words in errors and errors.count("\n") == 1


def test_a_file_that_cannot_be_written(folder, capsys):
    code, output, errors = run(
        folder, capsys, "plain.csv", "--uniform", "--out", "nowhere/value.json"
    )
    assert (code, output) == (2, "") and "nowhere" in errors and errors.count("\n") == 1
