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
    as_given,
    blank,
    entries_of,
    lacking,
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


@pytest.mark.parametrize(
    ("message", "allowed", "hint"),
    [
        (f"{setting('missing')} is 3; allowed is one of them, such as "
         f"{setting('missing', {'age': 'fill', 'others': 'drop'})}",
         'one of them, such as missing={"age": "fill", "others": "drop"}', None),
        ("x is 1; allowed are numbers, such as {'a': 1; 'b': 2}: give one",
         "numbers, such as {'a': 1; 'b': 2}", "give one"),
        ("delimiter is '; allowed is: '; allowed is a character: give one", "a character",
         "give one"),
        (f"a value is missing; choose {setting('missing', {'age': 'fill; drop'})}; or none", None,
         'choose missing={"age": "fill; drop"}; or none'),
        ("x is 2; allowed are up to 1; give fewer", "up to 1", "give fewer"),
        ("the log has no rows", None, None),
    ],
)  # fmt: skip
def test_what_is_allowed_is_read_off_the_message_as_a_whole(message, allowed, hint):
    error = InputError(message)
    assert (error.allowed, error.hint) == (allowed, hint)


def test_what_is_given_explicitly_is_kept_on_the_way():
    def refuse():
        raise DataError(
            f"{setting('reward')} is 'r'; leave it out with {setting('leave_out', ['r'])}",
            value="r",
            allowed=f"{setting('reward', 'paid')}",
            hint=f"name {setting('reward', blank('COLUMN'))} with {setting('leave_out', ['r'])}",
        )

    with (
        pytest.raises(DataError) as caught,
        entries_of("columns", ["reward"]),
        lacking("leave_out"),
    ):
        refuse()
    error = pickle.loads(pickle.dumps(caught.value))
    assert str(error) == "columns[\"reward\"] is 'r'; leave it out"
    assert (error.parameter, error.value) == ("columns", "r")
    assert error.allowed == 'columns={"reward": "paid"}'
    assert error.hint == 'name columns={"reward": COLUMN}'
    with speaking("command line"):
        assert error.hint == "name --reward COLUMN"


def test_an_error_may_be_composed_of_what_is_wrong_alone():
    error = InputError(parameter="arms", value={"x": True}, hint=f"say {setting('arms', 'x')}")
    assert str(error) == "arms is {'x': True}; say arms=\"x\""
    assert error.told("file") == 'arms is { x = true }; say arms = "x"'
    assert error.told("command line") == "--arms is 'x=true'; say --arms x"
    assert (error.allowed, error.hint) == (None, 'say arms="x"')


@pytest.mark.parametrize("value", [3, 2.5, "a b", None, ["a", 1], (1, 2), {1: 2}, float("nan")])
def test_most_values_are_written_alike_everywhere(value):
    assert as_given(value) == repr(value)


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


TABLE = {"g": ["F", "M"] * 20, "x": [1, 2, 2, 3] * 10, "y": [0.0, 0.5, 1.0, 0.2] * 10}


def table(**changed):
    return {**TABLE, **{name: (values * 40)[:40] for name, values in changed.items()}}


@pytest.mark.parametrize(
    ("changed", "given", "parameter", "value"),
    [
        ({"x": [1.0, None]}, {}, "missing", None),
        ({"x": [1.0, float("inf"), 2.0]}, {}, "features", "x"),
        ({"x": ["1", "2", "?", "4"]}, {}, "features", "x"),
        ({"x": ["2024-01-31", "2024-02-01", "2024-03-01"]}, {}, "features", "x"),
        ({"y": ["yes", "no"]}, {}, "reward", "y"),
        ({}, {"reward": "zz"}, "reward", "zz"),
        ({}, {"group": "zz"}, "group", "zz"),
        ({}, {"features": ["zz"]}, "features", "zz"),
        ({}, {"leave_out": ["zz"]}, "leave_out", "zz"),
        ({}, {"missing": {"zz": "drop"}}, "missing", "zz"),
        ({}, {"missing_marks": {"zz": ["?"]}}, "missing_marks", "zz"),
    ],
)
@pytest.mark.parametrize("door", ["world", "audit"])
def test_errors_about_tables_carry_the_setting_and_its_value(
    door, changed, given, parameter, value
):
    settings = {"group": "g", "reward": "y", **given}
    with pytest.raises(InputError) as caught:
        if door == "world":
            eh.TableWorld(table(**changed), **settings)
        else:
            eh.audit(table(**changed), **settings)
    error = caught.value
    assert (error.parameter, error.value) == (parameter, value)
    assert error.hint is not None or error.allowed is not None or "; used are" in str(error)


@pytest.mark.parametrize(
    ("changed", "given"),
    [
        ({"p": [0.5, 2.0]}, {"propensity": "p", "weigh_by_propensity": True}),
        ({"w": [1.0, -1.0]}, {"weight": "w"}),
        ({"n": [1.0, 1.5]}, {"count": "n"}),
        ({"t": ["noon"]}, {"timestamp": "t"}),
        ({"q": ["a", "b"]}, {"true_reward": "q"}),
    ],
)
def test_errors_about_columns_in_a_role_name_it(changed, given):
    with pytest.raises(DataError) as caught:
        eh.audit(table(**changed), group="g", reward="y", **given)
    error, (role, column) = caught.value, next(iter(given.items()))
    assert (error.parameter, error.value) == (role, column)
    assert error.allowed is not None and str(error).startswith(f"{role} is {column!r}, ")
    assert "leave_out" not in str(error)  # which is refused for a column that is named


def test_a_decimal_comma_that_was_told_is_not_asked_for_again(tmp_path):
    path = tmp_path / "people.csv"
    rows = "".join(
        f"{'FM'[k % 2]};{k % 3};{'x' if k > 38 else f'1.20{k % 7},5'}\n" for k in range(40)
    )
    path.write_text(f"g;y;x\n{rows}")
    for door in (eh.TableWorld, eh.audit):
        with pytest.raises(DataError, match=r"as text and words.*; write them with a point \(120"):
            door(path, group="g", reward="y")
        with pytest.raises(DataError) as told:
            door(path, group="g", reward="y", decimal=",")
        assert "write all of them without points (120" in str(told.value)
        assert "decimal=" not in str(told.value)


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
        (lambda: eh.PooledGroupFair(["F", "M"], 1, probe=1), "probe", 1, "True or False"),
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
