"""What the text of a file is: numbers, truth values, or words and codes, which stay as they are."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from evenhand._columns.words import NUMBER

GROUPED = r"[+-]?[0-9]{1,3}([.][0-9]{3})+(,[0-9]*)?"  # points that group thousands
CODE = r"^[+-]?0[0-9]"  # a number with a zero in front, which would be lost
TRUTHS = {
    word: word.lower() == "true" for word in ("True", "TRUE", "true", "False", "FALSE", "false")
}


def are_numbers(text: pd.Series[Any], decimal: str = ".") -> bool:
    """Whether all of these texts are numbers, and none of them a code such as "01".

    Args:
        text: values of a column, none of them missing.
        decimal: what they have in place of a decimal point.

    Example:
        >>> import pandas as pd
        >>> from evenhand._columns.kinds_of_text import are_numbers
        >>> are_numbers(pd.Series(["1", " 2.5", "+3"])), are_numbers(pd.Series(["01", "2"]))
        (True, False)
        >>> are_numbers(pd.Series(["1,5"])), are_numbers(pd.Series(["1,5"]), ",")
        (False, True)
    """
    if not len(text):
        return False
    words = with_point(text.str.strip(), decimal)
    return bool(words.str.match(NUMBER).all() and not words.str.match(CODE).any())


def numbers_or_codes(text: pd.Series[Any], decimal: str) -> pd.Series[Any]:
    """Names as numbers or truth values if all are, each of them once; otherwise as they are.

    Example:
        >>> import pandas as pd
        >>> from evenhand._columns.kinds_of_text import numbers_or_codes
        >>> numbers_or_codes(pd.Series(["0", "1.5"]), ".").tolist()
        [0.0, 1.5]
        >>> numbers_or_codes(pd.Series(["01", "2"]), ".").tolist()
        ['01', '2']
    """
    truths = text.map(TRUTHS)
    if truths.notna().any() and truths.notna().equals(text.notna()):
        return truths.astype(object if truths.isna().any() else bool)
    known = text.dropna().astype(object)
    if not are_numbers(known, decimal):
        return text
    words = with_point(known.str.strip(), decimal)
    values = pd.to_numeric(words)
    if values.nunique() < words.nunique():
        return text  # "1.1" and "1.10" are two names
    return values.reindex(text.index)


def with_point(text: pd.Series[Any], decimal: str) -> pd.Series[Any]:
    """Text that may be numbers, with a decimal point; with a comma, points group thousands.

    Points that do not are left: those of a date, a version, or a number that has a point after all.

    Example:
        >>> import pandas as pd
        >>> from evenhand._columns.kinds_of_text import with_point
        >>> with_point(pd.Series(["1.200,5", "7", "31.12.2019"]), ",").tolist()
        ['1200.5', '7', '31.12.2019']
    """
    if decimal == ".":
        return text

    def word_with_point(word: str) -> str:
        if "." in word and not re.fullmatch(GROUPED, word.strip()):
            return word
        return word.replace(".", "").replace(decimal, ".")

    return text.map(word_with_point, na_action="ignore")
