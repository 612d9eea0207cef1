"""Values as people read them, and which columns stand to the right."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evenhand._html.tables import MISSING, Cell, cell, of_frame, of_rows


@pytest.mark.parametrize(
    ("value", "text", "number"),
    [
        (True, "yes", False),
        (np.False_, "no", False),
        ("<b>", "<b>", False),  # templates escape, tables do not
        (None, MISSING, True),
        (pd.NA, MISSING, True),
        (pd.NaT, MISSING, True),
        (float("nan"), MISSING, True),
        (1234567, "1,234,567", True),
        (np.int64(-5), "-5", True),
        (2000.0, "2,000", True),
        (0.0, "0", True),
        (0.123456789, "0.123", True),
        (12345.6, "12,300", True),
        (999.96, "1,000", True),
        (-1234.5, "-1,230", True),
        (0.00001234, "1.23e-05", True),
        (float("inf"), "\u221e", True),
        (float("-inf"), "\u2212\u221e", True),
        (Cell("3 ± 1", number=True), "3 ± 1", True),
    ],
)
def test_a_value_is_shown_as_people_read_it(value, text, number):
    assert cell(value) == (text, number)


def test_columns_of_numbers_stand_to_the_right():
    frame = pd.DataFrame(
        {
            "group": ["F", None],
            "mean_reward": [0.5, np.nan],
            "unknown": [np.nan, np.nan],
            "told": [True, False],
            3: [1, 2],
        }
    )
    table = of_frame(frame, caption="words")
    assert [part.name for part in table.columns] == ["group", "mean reward", "unknown", "told", "3"]
    assert [part.number for part in table.columns] == [False, True, True, False, True]
    assert table.rows == [
        ["F", "0.5", MISSING, "yes", "1"],
        [MISSING, MISSING, MISSING, "no", "2"],
    ]
    assert table.caption == "words" and table.keys == 1


def test_small_p_values_are_called_small():
    values = [0.0, 0.00099, 0.001, 0.04321, 0.5, 1.0, np.nan]
    frame = pd.DataFrame({"p_value": values, "simultaneous_p_value": values, "mean": values})
    table = of_frame(frame)
    shown = ["<0.001", "<0.001", "0.001", "0.043", "0.5", "1", MISSING]
    assert [row[0] for row in table.rows] == [row[1] for row in table.rows] == shown
    assert [row[2] for row in table.rows][:2] == ["0", "0.00099"]
    assert all(column.number for column in table.columns)


def test_a_table_may_be_empty():
    assert of_frame(pd.DataFrame({"a": [], "b": []})).rows == []
    assert [part.number for part in of_rows(["a"], []).columns] == [False]
