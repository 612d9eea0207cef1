"""Every error about input is one of our own, and its message is in no single caller's language."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import evenhand

ROOT = Path(evenhand.__file__).parent
# Flags, keywords and values, public names as Python has them, and code between backticks.
OF_ONE_LANGUAGE = re.compile(r"(?<![\w-])--[a-z]|\bLOG\b|(?<![\w.])\w+ ?=(?!=)|\beh\.\w|`")
# Where messages may be in one language: modules of the command line, and the one that translates.
OF_LANGUAGES = ("cli/", "service/_operator_commands.py", "_setting_names.py")
FILES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
# Compiled code can raise nothing else; `telling` turns these into errors of our own.
COMPILED = {
    "policies/_live_calls.py": 1,
    "policies/_state.py": 1,
    "simulation/_compiled_rounds.py": 1,
}
ERRORS = {"InputError", "DataError", "DamagedError", "MissingExtraError", "DownloadError"}
TRANSLATED = {"setting", "literal", "blank", "in_python"}
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


def texts_in(node):
    """The plain text of a message: what is not put into the caller's language."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    if not (named and node.func.id in TRANSLATED):
        for part in ast.iter_child_nodes(node):
            yield from texts_in(part)


@pytest.mark.parametrize("path", FILES, ids=str)
def test_messages_are_in_no_single_language(path):
    if path.as_posix().startswith(OF_LANGUAGES):
        return
    for node in calls(path, TOLD):
        wrong = [text for text in texts_in(node) if OF_ONE_LANGUAGE.search(text)]
        assert not wrong, f"{path}, line {node.lineno}: name settings by `setting`: {wrong}"


@pytest.mark.parametrize(
    ("code", "is_wrong"),
    [
        ("InputError(f'choose --missing drop')", True),
        ("InputError(f'x has {n} rows; choose missing=\"drop\"')", True),
        ("InputError('give groups=[...]')", True),
        ("InputError('x is 3; allowed is eh.PAPER')", True),
        ("InputError('allowed is the result of `select`')", True),
        ("InputError(f\"x is {x!r}; choose {setting('missing', 'drop')}\")", False),
        ("InputError(f\"give {literal('a=b')}, a well-known one\")", False),
    ],
)
def test_text_of_one_language_is_found(code, is_wrong):
    texts = texts_in(ast.parse(code))
    assert any(OF_ONE_LANGUAGE.search(text) for text in texts) == is_wrong
