"""Every error about input is one of our own, and no message of the library speaks in flags."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import evenhand

ROOT = Path(evenhand.__file__).parent
FLAG = re.compile(r"(?<![\w-])--[a-z]")
# Where messages may name flags: what only the command line tells, and what is about flags.
OF_FLAGS = ("cli", "errors.py")
FILES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
# Compiled code can raise nothing else; `telling` makes errors of our own of these.
COMPILED = {"policies/_calls.py": 1, "simulation/_compiled_rounds.py": 1}
ERRORS = {"InputError", "DataError", "DamagedError", "MissingExtraError"}
TOLD = {"ValueError", "InputWarning", "SeenWarning", *ERRORS}


def calls(path, names):
    """Calls of these names, such as ValueError(...), with their line."""
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            yield node


@pytest.mark.parametrize("path", FILES, ids=str)
def test_what_a_user_got_wrong_is_an_error_of_our_own(path):
    found = [node.lineno for node in calls(path, {"ValueError", "ImportError"})]
    allowed = COMPILED.get(path.as_posix(), 0)
    assert len(found) <= allowed, (
        f"{path} makes plain errors on lines {found}: use those of evenhand.errors"
    )


@pytest.mark.parametrize("path", FILES, ids=str)
def test_the_library_does_not_speak_in_flags(path):
    if path.parts[0] in OF_FLAGS:
        return
    for node in calls(path, TOLD):
        texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
        flags = [text for text in texts if isinstance(text, str) and FLAG.search(text)]
        assert not flags, f"{path}, line {node.lineno}: name the setting by `setting`"
