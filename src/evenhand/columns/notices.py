"""What is told about a table and is no error."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from evenhand.errors import InputWarning

PACKAGE = str(Path(__file__).parents[1])


def tell(text: str) -> None:
    """Warn, at the line outside of evenhand that gave the table.

    Args:
        text: one line; settings in it are named by `evenhand.errors.setting`.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(InputWarning(text), stacklevel=level)
