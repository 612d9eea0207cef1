"""Errors speak the language of the caller, and stay what they are on the way."""

import pickle

import pytest

from evenhand.errors import DataError, EvenhandError, InputError, setting


@pytest.mark.parametrize(
    ("name", "value", "python", "flag", "key"),
    [
        ("missing", "drop", "missing='drop'", "--missing drop", 'missing = "drop"'),
        ("missing_marks", None, "missing_marks", "--missing-marks", "missing_marks"),
        ("features", "COLUMN", "features=COLUMN", "--feature COLUMN", "features = COLUMN"),
        ("windows", 4, "windows=4", "--windows 4", "windows = 4"),
        ("unfavourable", True, "unfavourable=True", "--unfavourable", "unfavourable = true"),
        ("group", "home town", "group='home town'", "--group 'home town'", 'group = "home town"'),
    ],
)
def test_a_setting_in_three_languages(name, value, python, flag, key):
    error = InputError(f"say {setting(name, value)} and go on")
    assert str(error) == error.told("python") == f"say {python} and go on"
    assert error.told("command line") == f"say {flag} and go on"
    assert error.told("file") == f"say {key} and go on"


def test_what_is_wrong_is_kept_apart_from_the_words():
    error = InputError(parameter="level", value=2, allowed="a number between 0 and 1")
    assert str(error) == "level is 2; allowed is a number between 0 and 1"
    assert error.told("command line").startswith("--level is 2")
    assert (error.parameter, error.value) == ("level", 2)


@pytest.mark.parametrize("kind", [InputError, DataError])
def test_an_error_of_a_worker_process_comes_back_whole(kind):
    error = kind(f"choose {setting('missing', 'drop')}", parameter="missing", value=3)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and again.parameter == "missing" and again.value == 3
    assert again.told("command line") == "choose --missing drop"


def test_callers_may_catch_what_python_has():
    assert issubclass(InputError, ValueError) and issubclass(InputError, EvenhandError)
