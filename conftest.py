"""Every Python example in README.md and in docs/ runs as a test.

The examples of a page share their names and run in a temporary folder. A block with a title, such
as ```python title="shy.py", is a file of that name, which the blocks after it can import.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from pathlib import Path
from typing import Any

from sybil import Document, Example, Region, Sybil
from sybil.parsers.markdown import PythonCodeBlockParser
from sybil.parsers.markdown.lexers import FencedCodeBlockLexer

ROOT = Path(__file__).parent
FILES = ROOT / ".cache" / "docs"  # always the same place, so that compiled code is found again


def titled_blocks(document: Document) -> Iterator[Region]:
    """The blocks that are files."""
    lexer = FencedCodeBlockLexer(r'python title="[^"]+"', {"language": "title", "source": "source"})
    for found in lexer(document):
        name = re.findall('"(.+)"', found.lexemes["title"])[0]
        yield Region(found.start, found.end, (name, str(found.lexemes["source"])), write)


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
    ],
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
    setup=enter,
    teardown=leave,
).pytest()
