"""Tests are the same on every machine, and every Python example in README.md and docs/ is one.

The examples of a page share their names and run in a temporary folder. A block with a title, such
as ```python title="shy.py", is a file of that name, which the blocks after it can import.

A figure in the text is what the examples before it found. A comment after the paragraph says which:

    It gave women 49 % of the choices.
    <!-- figures: {shares["F"]:.0%} -->

It is an f-string over the names of the page. The numbers in it must be those of the paragraph.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from sybil import Document, Example, Region, Sybil
from sybil.parsers.markdown import PythonCodeBlockParser
from sybil.parsers.markdown.lexers import FencedCodeBlockLexer

# No test depends on how fast the machine is, and a commit that passed once passes again: examples
# are the same in every run. What fails says how to make it again.
settings.register_profile(
    "evenhand",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("evenhand")
os.environ.setdefault("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "30 minutes")  # 30 s unless told
# Tests run in a process per core. More threads in each only wait for one another: solving 40 x 40
# systems took three times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long first: at the end, one of them would keep a single core busy.

    These are files with many slow tests, and pages whose examples compile users' code.
    """
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    pages = {item.path for item in items if item.path.suffix == ".md"}
    slow.update({path: LONG_PAGE for path in pages if "kernel(" in path.read_text("utf-8")})
    items.sort(key=lambda item: -slow[item.path])


LONG_PAGE = 20  # slow tests that take as long
MANY = 1_000_000  # objects: some hundred MB
_kept = 0


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After a file, let go of what compiling left behind, if that is much.

    Of 1.2 million objects after the first decision of a policy that was compiled, 0.9 million were
    cycles that nobody needs. Python counts them as old and seldom looks for them, so that a worker
    grew to 3.5 GB.
    """
    global _kept
    if nextitem is not None and nextitem.path == item.path:
        return
    if len(gc.get_objects()) > _kept + MANY:
        gc.collect()
        _kept = len(gc.get_objects())


ROOT = Path(__file__).parent
FILES = ROOT / ".cache" / "docs"  # always the same place, so that compiled code is found again


def titled_blocks(document: Document) -> Iterator[Region]:
    """The blocks that are files."""
    lexer = FencedCodeBlockLexer(r'python title="[^"]+"', {"language": "title", "source": "source"})
    for block in lexer(document):
        name = re.findall('"(.+)"', block.lexemes["title"])[0]
        yield Region(block.start, block.end, (name, str(block.lexemes["source"])), write)


def write(example: Example) -> None:
    """Write the file of a titled block to a folder of its page that is on the path."""
    name, text = example.parsed
    folder = FILES / Path(example.path).stem
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def figures(document: Document) -> Iterator[Region]:
    """The comments that say where the figures of the paragraph before come from."""
    pattern = re.compile(r"^ *<!-- figures: (.+?) -->$", re.MULTILINE | re.DOTALL)
    for comment in pattern.finditer(document.text):
        before = re.sub(r"<!--.*?-->", "", document.text[: comment.start()], flags=re.DOTALL)
        paragraph = re.split(r"\n\s*\n", before.rstrip())[-1]
        yield Region(comment.start(), comment.end(), (paragraph, comment[1]), compare)


def compare(example: Example) -> str | None:
    """The numbers of a paragraph and of its comment, in their order."""
    paragraph, template = example.parsed
    stated = numbers(paragraph)
    computed = numbers(eval(f'f"""{template}"""', example.namespace))
    if stated == computed:
        return None
    return f"the text says {stated}, and the examples {computed}:\n{paragraph}"


def numbers(text: str) -> list[str]:
    """The numbers of a text: 17 %, 4,000, -.5; none of code, addresses and names such as T_1."""
    prose = re.sub(r"`[^`]*`|\]\([^)]*\)", " ", text)
    written = re.findall(r"(?<![\w.,])-?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)", prose)
    return [re.sub(r"^(-?)\.", r"\g<1>0.", number) for number in written]


def enter(namespace: dict[str, Any]) -> None:
    """Before a page: go to a folder of its own."""
    namespace["__before__"] = (Path.cwd(), list(sys.path), set(sys.modules))
    os.chdir(tempfile.mkdtemp())


def leave(namespace: dict[str, Any]) -> None:
    """After a page: everything as it was."""
    folder, path, modules = namespace["__before__"]
    shutil.rmtree(Path.cwd())
    os.chdir(folder)
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(FILES) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


pytest_collect_file = Sybil(
    parsers=[
        PythonCodeBlockParser(doctest_optionflags=ELLIPSIS | NORMALIZE_WHITESPACE),
        titled_blocks,
        figures,
    ],
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
    setup=enter,
    teardown=leave,
).pytest()
