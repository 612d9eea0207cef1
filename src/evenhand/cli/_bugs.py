"""What is no mistake of the user's: shown as a bug, with the traceback kept in a file."""

from __future__ import annotations

import sys
import tempfile
import traceback
from pathlib import Path

import evenhand


def in_own_code(error: Exception) -> str | None:
    """Where in a policy of the user's own an error comes from, if it does."""
    own = getattr(sys.modules.get("evenhand.experiments.model"), "IMPORTED", {})
    frames = traceback.extract_tb(error.__traceback__)
    places = [frame for frame in frames if Path(frame.filename) in own]
    return f"{places[-1].filename}, line {places[-1].lineno}" if places else None


def kept(error: BaseException) -> str:
    """One line about a bug, and its traceback in a file that only the user can read."""
    kind = type(error).__name__
    said = " ".join(str(error).split())
    text = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", prefix="evenhand-bug-", suffix=".txt", delete=False
        ) as file:
            file.write(f"evenhand {evenhand.__version__}\n{text}")
        where = f"the traceback is kept in {file.name}: please report it with that file"
    except OSError as full:  # the disk may be what is wrong
        where = f"the traceback could not be kept ({full.strerror}): please report it"
    about = f"{kind}: {said}" if said else kind
    return f"this is a bug in evenhand, not in your input: {about}; {where}"
