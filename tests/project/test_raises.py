"""Every error about input is one of our own, and no message of the library names flags."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import evenhand

ROOT = Path(evenhand.__file__).parent
FLAG = re.compile(r"(?<![\w-])--[a-z]")
# Where messages may name flags: modules of the command line, and those about flags.
OF_FLAGS = ("cli", "_setting_names.py")
FILES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
# Compiled code can raise nothing else; `telling` turns these into errors of our own.
COMPILED = {"policies/_calls.py": 1, "simulation/_compiled_rounds.py": 1}
ERRORS = {"InputError", "DataError", "DamagedError", "MissingExtraError", "DownloadError"}
TOLD = {"ValueError", "InputWarning", "SeenWarning", *ERRORS}


def calls(path, names):
    """Calls of these names, such as ValueError(...), with their line."""
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            yield node


@pytest.mark.parametrize("path", FILES, ids=str)
def test_errors_about_input_are_our_own(path):
    lines = [node.lineno for node in calls(path, {"ValueError", "ImportError"})]
    allowed = COMPILED.get(path.as_posix(), 0)
    assert len(lines) <= allowed, (
        f"{path} makes plain errors on lines {lines}: use those of evenhand.errors"
    )


@pytest.mark.parametrize("path", FILES, ids=str)
def test_the_library_does_not_name_flags(path):
    if path.parts[0] in OF_FLAGS:
        return
    for node in calls(path, TOLD):
        texts = [
            constant.value for constant in ast.walk(node) if isinstance(constant, ast.Constant)
        ]
        flags = [text for text in texts if isinstance(text, str) and FLAG.search(text)]
        assert not flags, f"{path}, line {node.lineno}: name the setting by `setting`"
