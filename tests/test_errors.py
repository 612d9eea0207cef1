"""Errors speak the language of the caller, and stay what they are on the way."""

import pickle
import re
import warnings

import pytest

import evenhand as eh
from evenhand.cli import main
from evenhand.errors import (
    DataError,
    EvenhandError,
    InputError,
    InputWarning,
    MissingExtraError,
    blank,
    setting,
    speaking,
)

WORTH = {"paid": 1, "not paid": 0}


@pytest.mark.parametrize(
    ("name", "value", "python", "flag", "key"),
    [
        ("missing", "drop", 'missing="drop"', "--missing drop", 'missing = "drop"'),
        ("missing_marks", None, "missing_marks", "--missing-marks", "missing_marks"),
        ("arm", blank("COLUMN"), "arm=COLUMN", "--arm COLUMN", "arm = COLUMN"),
        ("features", ["A", "b c"], 'features=["A", "b c"]', "--feature A --feature 'b c'",
         'features = ["A", "b c"]'),
        ("missing_marks", ["?", "NA"], 'missing_marks=["?", "NA"]', "--missing-marks '?,NA'",
         'missing_marks = ["?", "NA"]'),
        ("missing_marks", ["-9"], 'missing_marks=["-9"]', "--missing-marks=-9",
         'missing_marks = ["-9"]'),
        ("reward_values", WORTH, 'reward_values={"paid": 1, "not paid": 0}',
         "--reward-values 'paid=1,not paid=0'", 'reward_values = { paid = 1, "not paid" = 0 }'),
        ("windows", 4, "windows=4", "--windows 4", "windows = 4"),
        ("unfavourable", True, "unfavourable=True", "--unfavourable", "unfavourable = true"),
        ("group", "home town", 'group="home town"', "--group 'home town'", 'group = "home town"'),
        ("group", "\ue002", 'group="\ue002"', "--group '\ue002'", 'group = "\ue002"'),
    ],
)  # fmt: skip
def test_a_setting_in_three_languages(name, value, python, flag, key):
    error = InputError(f"say {setting(name, value)} and go on")
    assert str(error) == error.told("python") == f"say {python} and go on"
    assert error.told("command line") == f"say {flag} and go on"
    assert error.told("file") == f"say {key} and go on"


def test_what_a_command_has_no_flag_for_is_put_as_in_python():
    error = InputError(f"{setting('level')} is 2; choose {setting('folds', 3)}")
    with speaking("command line", {"--level"}):
        assert str(error) == "--level is 2; choose folds=3"
    assert str(error) == "level is 2; choose folds=3"


def test_what_is_wrong_is_kept_apart_from_the_words():
    error = InputError(parameter="level", value=2, allowed="a number between 0 and 1")
    assert str(error) == "level is 2; allowed is a number between 0 and 1"
    assert error.told("command line").startswith("--level is 2")
    assert (error.parameter, error.value) == ("level", 2)
    again = InputError(f"{setting('level')} is 2; allowed is a number: give one", value=2)
    assert (again.parameter, again.allowed, again.hint) == ("level", "a number", "give one")


@pytest.mark.parametrize("kind", [InputError, DataError])
def test_an_error_of_a_worker_process_comes_back_whole(kind):
    error = kind(f"choose {setting('missing', 'drop')}", parameter="missing", value=3)
    again = pickle.loads(pickle.dumps(error.reworded("LOG: {}".format)))
    assert type(again) is kind and again.parameter == "missing" and again.value == 3
    assert again.told("command line") == "LOG: choose --missing drop"


def test_an_extra_and_a_warning_speak_as_well():
    extra = pickle.loads(pickle.dumps(MissingExtraError(f"or give {setting('folder')}")))
    assert isinstance(extra, ImportError) and extra.told("command line") == "or give --folder"
    with pytest.warns(UserWarning, match="^or give folder$") as seen:
        warnings.warn(InputWarning(extra.message), stacklevel=1)
    with speaking("command line"):
        assert str(seen[0].message) == "or give --folder"


def test_callers_may_catch_what_python_has():
    assert issubclass(InputError, ValueError) and issubclass(InputError, EvenhandError)


def test_columns_are_entries_of_a_parameter_where_they_are_one(tmp_path, capsys):
    """`read_logged` takes the columns in a dictionary, and the command line as flags."""
    path = tmp_path / "log.csv"
    path.write_text("arm,reward,chance\na,1,0.5\nb,0,0.5\n")
    with pytest.raises(DataError) as missing:
        eh.offpolicy.read_logged(path)
    assert 'name it, such as columns={"propensity": COLUMN}: the log' in str(missing.value)
    assert main(["value", str(path), "--uniform"]) == 2
    assert "name it, such as --propensity COLUMN: the log" in capsys.readouterr().err
    with pytest.raises(DataError) as wrong:
        eh.offpolicy.read_logged(path, columns={"propensity": "p"})
    assert "columns[\"propensity\"] is 'p', which is not a column;" in str(wrong.value)
    assert wrong.value.parameter == "columns"
    policy = eh.TopInterval(["F", "M"], n_features=1)
    with pytest.raises(DataError, match=r'columns\["reward"\] is \'paid\', which is not a column'):
        eh.replay(path, policy, columns={"reward": "paid"})


PEOPLE = {"sex": ["F", "M"], "paid": [1, 0]}


def a_world(**settings):
    return eh.TableWorld(PEOPLE, group="sex", reward="paid", **settings)


def a_policy(**settings):
    return eh.TopInterval(["F", "M"], n_features=1, **settings)


def decide_and_update(reward):
    policy = a_policy(seed=1)
    policy.update(policy.select([[1.0], [1.0]]), reward)


@pytest.mark.parametrize(
    ("call", "parameter", "value", "allowed"),
    [
        (lambda: a_policy(delta=2.0), "delta", 2.0, "a number between 0 and 1 (not equal)"),
        (lambda: a_policy(horizon=0), "horizon", 0, "a whole number of at least 1"),
        (lambda: a_policy(noise="loud"), "noise", "loud", "a standard deviation or 'estimate'"),
        (lambda: a_policy(conventions="mine"), "conventions", "mine", "PAPER or AUTHORS_CODE"),
        (lambda: a_policy(singular="no"), "singular", "no", "one of ridge, infinite, "),
        (lambda: a_policy(exploration=3), "exploration", 3, "'paper' (t^(-1/3)), 'none', a "),
        (lambda: eh.PooledGroupFair(["F", "M"], 1, shares="equal"), "shares", "equal",
         "'proportional'"),
        (lambda: eh.PooledGroupFair(["F", "M"], 1, probe=1), "probe", 1, "True and False"),
        (lambda: decide_and_update(float("inf")), "reward", float("inf"), "any finite number "),
        (lambda: a_policy().update(3, 1.0), "decision", 3, "the result of select"),
        (lambda: eh.SyntheticWorld(n_arms=0), "n_arms", 0, "a whole number of at least 2"),
        (lambda: eh.SyntheticWorld(noise_shape="odd"), "noise_shape", "odd", "one of "),
        (lambda: eh.SyntheticWorld(conventions=1), "conventions", 1, "PAPER or AUTHORS_CODE"),
        (lambda: a_world(missing="skip"), "missing", "skip", "one of "),
        (lambda: eh.simulate([eh.TopInterval], "a world", horizon=9), "worlds", "a world",
         "a world, or a mapping from names"),
        (lambda: eh.simulate([eh.TopInterval], eh.SyntheticWorld(), 9, trace=3), "trace", 3,
         "True, False, or a folder for Parquet"),
        (lambda: eh.audit(PEOPLE, engine="abacus"), "engine", "abacus", "one of duckdb, spark"),
        (lambda: eh.audit("log.csv", features="age"), "features", "age", "a list of columns"),
        (lambda: eh.offpolicy.read_logged("log.csv", delimiter=";;"), "delimiter", ";;",
         "a single character"),
    ],
)  # fmt: skip
def test_errors_carry_what_their_message_says(call, parameter, value, allowed):
    with pytest.raises(InputError) as caught:
        call()
    error = caught.value
    assert (error.parameter, error.value) == (parameter, value)
    assert error.allowed is not None and error.allowed.startswith(allowed)
    message = str(error)
    assert message.startswith(f"{parameter} is ") and repr(value) in message
    assert re.search(rf"; allowed (is|are) {re.escape(error.allowed)}", message)
