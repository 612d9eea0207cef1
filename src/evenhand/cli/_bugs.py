"""What is no mistake of the user's: shown as a bug, with the traceback kept in a file."""

from __future__ import annotations

import tempfile
import traceback
from pathlib import Path

import evenhand

ROOT = Path(evenhand.__file__).parent
# Packages that still raise plain ValueErrors and ImportErrors for what a user got wrong.
PLAIN = ("events", "leastsquares", "policies", "recording", "simulation", "html.py")


def is_input(error: BaseException) -> bool:
    """Whether a plain error is of a package that has no other for bad input yet.

    It has to be raised there on purpose: by its own line, and not by what that line calls.
    """
    if type(error) not in (ValueError, ImportError):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    inside = frames and Path(frames[-1].filename).is_relative_to(ROOT)
    if not inside:
        return False
    place = Path(frames[-1].filename).relative_to(ROOT)
    return place.parts[0] in PLAIN and "raise " in (frames[-1].line or "")


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
