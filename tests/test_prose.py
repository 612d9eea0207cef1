"""Tables and numbers as plain data for JSON, and numbers and names as people write them."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand._prose import in_digits, quoted, records, value


@pytest.mark.parametrize(
    ("cell", "plain"),
    [
        (None, None),
        (pd.NA, None),
        (np.nan, None),
        (-np.inf, None),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (False, False),
        ("NA", "NA"),
    ],
)
def test_cells_as_plain_data(cell, plain):
    assert value(cell) == plain
    assert type(value(cell)) is type(plain)


def test_a_table_as_json_has_no_nan():
    table = pd.DataFrame({"group": ["F", None], "n": [3, 4], 0: [0.5, np.inf]})
    rows = records(table)
    assert rows == [{"group": "F", "n": 3, "0": 0.5}, {"group": None, "n": 4, "0": None}]
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


@pytest.mark.parametrize(
    ("number", "sign", "text"),
    [
        (1234567.0, "", "1,234,567"),
        (-0.0, "", "0"),
        (1e-10, "", "0.0000000001"),
        (0.1 + 0.2, "", "0.3"),
        (-1.5, "", "-1.5"),
        (2.0, "+", "+2"),
        (-2.0, "+", "-2"),
        (1e21, "", "1,000,000,000,000,000,000,000"),
    ],
)
def test_numbers_in_digits(number, sign, text):
    assert in_digits(number, sign) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_digits_read_back_as_the_number_to_twelve_digits(number):
    text = in_digits(number)
    assert "e" not in text.lower()
    assert float(Decimal(text.replace(",", ""))) == float(f"{number:.12g}")


@pytest.mark.parametrize("name", ["F", "40-65", "São", "a&b", "x1", "N/A"])
def test_a_name_that_reads_as_one_word_stays(name):
    assert quoted(name) == name


@pytest.mark.parametrize("name", ["", "New York", "a,b", "f(x)", "it's", "two\nlines", 'a"b'])
def test_other_names_are_in_quotes_on_one_line(name):
    assert quoted(name) == repr(name)
    assert "\n" not in quoted(name)
