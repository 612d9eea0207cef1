"""docs/architecture.md and CONTRIBUTING.md name only files, tests and contracts that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from evenhand.contracts import CONTRACTS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "evenhand"
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def tree_of(text):
    """The paths in a drawn tree: folders by their indentation, and all files that a line names."""
    paths, folders = [], {}
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        within = ROOT.joinpath(*(name for depth, name in folders.items() if depth < indent))
        names = line.split()
        if names and names[0].endswith("/"):
            folders = {depth: name for depth, name in folders.items() if depth < indent}
            folders[indent] = names[0]
            paths += [within / name for name in names if name.endswith("/")]
        else:
            paths += [within / name for name in re.findall(r"\b\w+\.py\b", line)]
    return paths


TREE = tree_of(re.findall(r"```\n(src/evenhand/\n.*?)```", ARCHITECTURE, re.DOTALL)[0])
ROWS = re.findall(r"^\| (.+?) \| (.+?) \|$", ARCHITECTURE.split("## Promises")[1], re.MULTILINE)
PROMISES = ROWS[1:]  # the first is the head of the table


@pytest.mark.parametrize("path", TREE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_everything_in_the_tree_exists(path):
    assert path.exists()


def test_the_tree_shows_every_package_and_module_at_the_top():
    paths = {path for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    known = {"__init__.py", "__main__.py", "__pycache__", "py.typed"}
    assert {path for path in paths if path.name not in known} <= set(TREE)


@pytest.mark.parametrize("text", [ARCHITECTURE, CONTRIBUTING], ids=["architecture", "contributing"])
def test_files_that_the_text_names_exist(text):
    files = [path.as_posix() for path in [*PACKAGE.rglob("*"), *ROOT.glob("*"), *ROOT.glob("*/*")]]
    files += [path.as_posix() for path in (ROOT / "tests").rglob("*.py")]
    named = re.findall(r"`([\w/.-]+(?:\.py|\.md|\.toml|/))`|\b(tests/[\w/]+\.py)\b", text)
    paths = {(first or second).rstrip("/") for first, second in named}
    assert paths, "no file is named at all: is the pattern blind?"
    lost = [path for path in paths if not any(file.endswith(f"/{path}") for file in files)]
    assert not lost


@pytest.mark.parametrize(("promise", "tests"), PROMISES, ids=[promise for promise, _ in PROMISES])
def test_every_promise_names_its_test(promise, tests):
    contracts = re.findall(r"`(\w+)`", tests)
    assert set(contracts) <= {contract.__name__ for contract in CONTRACTS}
    named = re.findall(r"`(tests/[\w/]+\.py)?::(\w+)`", tests)
    assert len(contracts) + len(named) == tests.count("`") // 2, "a name that is no test"
    assert named or contracts, f"nothing checks that {promise}"
    path = ""
    for file, test in named:
        path = file or path
        assert test in names_of_tests(path), f"{path} has no {test}"


def names_of_tests(path):
    """The names of the tests of a file: functions, and state machines that have a name."""
    body = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
    names = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    for node in body:
        if isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {name for name in names if name.startswith(("test_", "Test"))}
