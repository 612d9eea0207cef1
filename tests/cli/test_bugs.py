"""Bugs in evenhand are reported as bugs, and mistakes of the user are not."""

from __future__ import annotations

import re
import stat
import tempfile
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from jinja2 import TemplateNotFound

import evenhand
from evenhand.cli import data, main
from evenhand.errors import DamagedError, DownloadError, MissingExtraError, setting
from evenhand.experiments import _user_policies


def run(monkeypatch, capsys, error):
    """Run `evenhand data list`, which stops with this error."""

    def fail(*_):
        raise error

    monkeypatch.setattr(data, "_list", fail)
    code = main(["data", "list"])
    output = capsys.readouterr()
    assert output.out == "" and output.err.count("\n") == 1 and output.err.startswith("evenhand: ")
    return code, output.err.removeprefix("evenhand: ").rstrip("\n")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("operands could not\nbe broadcast"),
        TypeError("no such argument"),
        KeyError("x"),
        ImportError("no module"),
        np.linalg.LinAlgError("singular"),
        AssertionError(),
        RecursionError("maximum recursion depth exceeded"),
        OverflowError("large"),
        TemplateNotFound("audit.html"),  # an OSError
        FileNotFoundError(2, "No such file or directory", f"{evenhand.__path__[0]}/style.css"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_bug_is_reported_as_one(error, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code, message = run(monkeypatch, capsys, error)
    about = f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")
    assert code == 70
    assert message.startswith(
        f"this is a bug in evenhand, not in your input: {about}; the traceback "
    )
    (path,) = map(Path, re.findall(r"is kept in (.*): please report it with that file$", message))
    assert path.parent == tmp_path and stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text(encoding="utf-8")
    assert "Traceback (most recent call last)" in text and "in fail" in text


def test_a_bug_is_reported_where_no_file_can_be_kept(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    code, message = run(monkeypatch, capsys, ValueError("odd"))
    assert (
        code == 70 and "could not be kept (No such file or directory): please report it" in message
    )


def test_an_error_in_a_users_policy_is_not_our_bug(monkeypatch, capsys, tmp_path):
    path = tmp_path / "own_and_broken.py"
    path.write_text("def score(*_):\n    return 1 + None\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(_user_policies, "IMPORTED", {path: "its hash"})
    monkeypatch.setattr(data, "_list", import_module("own_and_broken").score)
    assert main(["data", "list"]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith(f"evenhand: {path}, line 2: TypeError: unsupported operand")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (DamagedError(f"x.json is cut off; give {setting('folder')}"), "x.json is cut off; give "
         "--folder"),
        (DamagedError(f"{setting('level')} is 2"), "level is 2"),  # no flag of this command
        (MissingExtraError("pip install 'evenhand[data]'"), "pip install 'evenhand[data]'"),
        (FileNotFoundError(2, "No such file or directory", "x.csv"), "x.csv: No such file or "
         "directory"),
        (MemoryError(), "not enough memory"),
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
        (DownloadError("student could not be downloaded"), "student could not be downloaded"),
    ],
)  # fmt: skip
def test_a_mistake_is_not_a_bug(error, words, monkeypatch, capsys):
    code, message = run(monkeypatch, capsys, error)
    assert code == 2 and message.startswith(words) and "bug" not in message
