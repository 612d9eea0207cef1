"""Checks of input: what is at the border of the allowed passes, and what is beyond does not."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from evenhand import _checks
from evenhand.errors import DataError, InputError


def refusal(kind, function, *values, **named):
    with pytest.raises(kind) as caught:
        function(*values, **named)
    return str(caught.value)


@pytest.mark.parametrize("value", [1, 2**53, 3.0, np.int8(3), Fraction(6, 2)])
def test_whole_numbers_of_any_type_pass(value):
    result = _checks.whole("horizon", value)
    assert result == value
    assert type(result) is int


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3", None, math.nan, math.inf, [3]])
def test_what_is_no_whole_number_of_at_least_one_is_refused(value):
    told = refusal(InputError, _checks.whole, "horizon", value)
    assert told == f"horizon is {value!r}; allowed is a whole number of at least 1"


def test_the_largest_whole_number_is_named_as_a_power_of_two():
    assert "up to 2^53" in refusal(InputError, _checks.whole, "horizon", 2**53 + 1)
    assert "below 2^128" in refusal(
        InputError, _checks.whole, "seed", 2**128, 0, _checks.LARGEST_SEED
    )
    assert "up to 9" in refusal(InputError, _checks.whole, "arms", 10, most=9)


def test_long_values_are_shortened_in_errors():
    told = refusal(InputError, _checks.whole, "horizon", -(10**400))
    assert told.startswith("horizon is a whole number of about 40")
    told = refusal(InputError, _checks.one_of, "width", "x" * 1000, ["narrow", "wide"])
    assert len(told) < 140
    assert told.endswith("...; allowed is one of narrow, wide")


def test_the_ends_of_a_range_are_allowed_unless_it_is_open():
    assert [_checks.number("share", end, 0.0, 1.0) for end in (0, 1)] == [0.0, 1.0]
    for end in (0, 1):
        told = refusal(InputError, _checks.number, "delta", end, 0.0, 1.0, open_ends=True)
        assert told == f"delta is {end}; allowed is a number between 0 and 1 (not equal)"


@pytest.mark.parametrize("value", [True, "0.5", None, math.nan, math.inf, 10**400])
def test_what_is_no_finite_number_is_refused(value):
    told = refusal(InputError, _checks.number, "noise", value, -math.inf, math.inf)
    assert told.endswith("allowed is any finite number")


def test_an_error_carries_its_parts():
    with pytest.raises(InputError) as caught:
        _checks.number("delta", 2.0, 0.0, 1.0)
    error = caught.value
    assert (error.parameter, error.value) == ("delta", 2.0)
    assert error.allowed == "a number between 0 and 1"


def test_tables_of_numbers_keep_their_shape():
    table = _checks.numbers("contexts", [[1, 2], [3, 4]], (2, 2))
    assert table.dtype == np.float64
    assert "has shape (1, 2)" in refusal(DataError, _checks.numbers, "contexts", [[1, 2]], (2, 2))
    assert "not a table" in refusal(DataError, _checks.numbers, "contexts", [[1, 2], [3]])


def test_missing_numbers_pass_only_where_they_may():
    assert np.isnan(_checks.numbers("rewards", [1.0, math.nan], missing=True)[1])
    assert "a NaN or" in refusal(DataError, _checks.numbers, "rewards", [math.nan])
    assert "NaN where it is missing" in refusal(
        DataError, _checks.numbers, "rewards", [math.inf], missing=True
    )


def test_a_mask_is_seen_in_lists_too():
    hidden = np.ma.array([1.0, 99.0], mask=[False, True])
    _checks.unmasked("x", np.ma.array([1.0, 99.0]))  # nothing is masked
    assert "x has masked values" in refusal(
        DataError, _checks.unmasked, "x", [[1.0, 2.0], [hidden]]
    )


def test_whole_numbers_of_arms():
    arms = _checks.whole_numbers("arms", [0.0, 2.0], rows=2, below=3)
    assert arms.dtype == np.int64
    assert arms.tolist() == [0, 2]
    for wrong in (-1, 0.5, 3):
        told = refusal(DataError, _checks.whole_numbers, "arms", [0, wrong], 2, 3)
        assert told == f"arms has {wrong:g}; allowed are whole numbers from 0 to 2"


def test_words_for_missing_are_not_missing():
    assert [_checks.is_missing(label) for label in (None, math.nan, pd.NA, pd.NaT)] == [True] * 4
    assert [_checks.is_missing(label) for label in ("", "NA", 0, False)] == [False] * 4
