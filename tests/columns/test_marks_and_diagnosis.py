"""What is the same for every table: marks, values in words, and what text seems to hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand._columns.diagnosis import dates_in_text, likely_marks, numbers_in_text
from evenhand._columns.identifiers import is_identifier
from evenhand._columns.missing import choices
from evenhand._columns.missing_marks import Marks, listed_marks, without_marks
from evenhand._columns.rewards import numbers_for, observed_rewards
from evenhand.errors import DataError, InputError, setting

# Marks


def test_values_and_marks_are_words():
    assert listed_marks("?") == ("?",)
    assert listed_marks([" NA ", -9, -9.0, 0.5]) == ("NA", "-9", "0.5")
    assert numbers_for({1.0: 1, "b ": 0}) == {"1": 1.0, "b": 0.0}


def test_marks_by_column():
    marks = Marks.of({"*": ["?"], "a": -9.0, "b": "x"})
    assert marks == Marks(("?",), {"a": ("-9",), "b": ("x",)}) and Marks.of(marks) is marks
    assert Marks.of(["?"]) == Marks(("?",)) and not Marks.of([])
    assert marks.with_more(["NA"]) == {"a": ["-9"], "b": ["x"], "*": ["?", "NA"]}
    assert Marks.of("?").with_more(["?", "NA"]) == ["?", "NA"]


@pytest.mark.parametrize(
    ("values", "marks", "left"),
    [
        ([1, -9, 3], [-9], [1, None, 3]),
        (np.array([1, -9, 0.1], dtype=np.float32), ["-9", 0.1], [1, None, None]),
        ([True, False, True], ["false"], [True, None, True]),
        (["1", " ?", "2.5"], ["?"], [1.0, None, 2.5]),
        (["1", "2", "3"], ["?"], ["1", "2", "3"]),  # without a mark it is left alone
        (["1", "2", "3"], {"x": ["?"]}, [1, 2, 3]),  # whoever names the column expects some
        (["01", "?", "3"], {"x": ["?"]}, ["01", None, "3"]),  # a code
        (["a", "", "NA"], ["NA"], ["a", None, None]),
        (["a", "", "NA"], [], ["a", "", "NA"]),
        (pd.Categorical(["a", "?", "a"]), ["?"], ["a", None, "a"]),
        ([1, "?", 3], ["?"], [1, None, 3]),
        (pd.array([1, -9, None], "Int64"), [-9], [1, None, None]),
        (pd.to_datetime(["2020-01-01", None, "2020-01-03"]), ["?"], None),
    ],
)
def test_marks_in_every_kind_of_column(values, marks, left):
    table = pd.DataFrame({"x": values})
    before = table.copy(deep=True)
    cleaned = without_marks(table, Marks.of(marks))["x"]
    pd.testing.assert_frame_equal(table, before)
    expected = before["x"].tolist() if left is None else left
    for value, other in zip(cleaned, expected, strict=True):
        assert pd.isna(value) if pd.isna(other) else value == other


# Text that is something else


@pytest.mark.parametrize(
    ("values", "what", "written"),
    [
        (["28,38", "1,5", "17,04", "3"], "a decimal comma, such as '28,38'", "(28.38)"),
        (["28,380", "1,5", "17,040"], "a decimal comma, such as '1,5'", "(1.5)"),
        (["1.028,38", "7,25", "1.000.000,5"], "a decimal comma", "(1028.38)"),
        (["-0,5 €", "7,25 €", "12,00 €"], "a decimal comma", "(-0.5)"),
        (["28,380", "1,500", "17,040", "999"], "separators or signs", "(28380)"),
        (["1,028,380.5", "1,500", "17,040"], "separators or signs", "(1028380.5)"),
        (["12,34,567", "1,500", "17,040"], "separators or signs", "(1234567)"),
        (["$5", "$7", "$9"], "separators or signs", "(5)"),
    ],
)
def test_a_decimal_comma_is_told_from_a_separator(values, what, written):
    held = numbers_in_text(values, Marks())
    assert what in held.what and written in held.advice
    assert (setting("decimal", ",") in held.advice) == ("decimal" in what)


@given(st.lists(st.integers(-(10**8), 10**8), min_size=3, max_size=8), st.integers(0, 4))
def test_the_number_that_is_advised_is_the_number_that_was_meant(numbers, digits):
    """Whatever is written with commas, both ways; three digits after each comma are thousands."""
    if digits == 0:
        texts = [f"{number:,}" for number in numbers]
        meant = {str(number) for number in numbers}
    else:
        texts = [f"{number / 10**digits:.{digits}f}".replace(".", ",") for number in numbers]
        meant = {f"{number / 10**digits:.{digits}f}" for number in numbers}
        if digits == 3 and all(abs(number) < 10**6 for number in numbers):
            meant = {
                f"{scaled:.3f}".replace(".", "") for scaled in (number / 1000 for number in numbers)
            }
    if not any("," in text for text in texts):
        return
    advice = numbers_in_text(texts, Marks()).advice
    assert advice.split("(", 1)[1].split(")", 1)[0] in meant


def test_two_numbers_are_names_unless_they_are_written_as_quantities():
    assert numbers_in_text(["01", "02"], Marks()) is None
    assert numbers_in_text(["1,5", "2,25"], Marks()) is not None
    assert numbers_in_text(["7", "?"], Marks()).word == "?"
    assert numbers_in_text(["yes", "no", "?"], Marks()) is None
    assert not dates_in_text(["2024-01-31", "2024-02-01", "soon"])


def test_the_advice_is_in_the_language_of_the_caller():
    advice = numbers_in_text(["1", "2", "-"], Marks.of({"a": [-1]})).advice
    error = DataError(advice)
    assert str(error).endswith('missing_marks={"a": ["-1"], "*": ["-"]}')
    assert error.told("command line").endswith("--missing-marks a=-1,-")
    assert error.told("file").endswith('missing_marks = { a = ["-1"], "*" = ["-"] }')


def test_likely_marks_stand_among_numbers():
    table = pd.DataFrame({"a": ["1", "n/a", "3"], "b": ["NA", "x", "y"], "c": [[1], [2], [3]]})
    assert likely_marks(table) == ["n/a"]


# The rest


@pytest.mark.parametrize(
    ("name", "rows", "different", "width", "expected"),
    [
        ("id", 3, 3, 900.0, True),
        ("x", 3, 3, 2.0, False),  # three numbers may do so
        ("x", 100, 100, 99.0, True),
        ("x", 100, 99, 99.0, False),
        ("x", 100, 100, 1e6, False),
        ("x", 100, 60, None, True),
        ("x", 80, 50, None, False),
        ("x", 19, 19, None, False),
        ("person_id", 100, 50, None, False),
        ("idle", 100, 60, 1e6, False),
    ],
)
def test_what_tells_rows_apart(name, rows, different, width, expected):
    assert is_identifier(name, rows, different, width) == expected


def test_rewards_of_a_log_may_be_missing():
    column = pd.Series(["paid", None, "default"], name="r")
    rewards = observed_rewards(column, numbers_for({"paid": 1, "default": 0}))
    assert rewards[[0, 2]].tolist() == [1.0, 0.0] and np.isnan(rewards[1])
    with pytest.raises(DataError, match="reward is 'r', a column of text with 'default' in 1 row"):
        observed_rewards(column, None)


def test_choices_are_checked_by_column():
    assert choices(["a", "b"], {"a": "fill"}) == {"a": "fill", "b": "error"}
    with pytest.raises(
        InputError, match="missing names 'c', which is not a used column; used are a"
    ):
        choices(["a", "b"], {"c": "fill"})
