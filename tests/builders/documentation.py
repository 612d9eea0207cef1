"""Every Python example in README.md and docs/ is a test: blocks of code, files, and figures.

The examples of a page share their names and run in a temporary folder. A block with a title, such
as ```python title="shy.py", is a file of that name, which the blocks after it can import.

A figure in the text is what the examples before it found. A comment after the paragraph says which:

    It gave women 49 % of the choices.
    <!-- figures: {shares["F"]:.0%} -->

It is an f-string over the names of the page. The numbers in it must be those of the paragraph.
"""

from __future__ import annotations

import atexit
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

ROOT = Path(__file__).parents[2]
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
    from evenhand.policies import POLICIES  # collecting tests needs none of it

    namespace["__before__"] = (Path.cwd(), list(sys.path), set(sys.modules), dict(POLICIES))
    own = tempfile.mkdtemp()
    # Not after the page: processes that simulate for later tests may have begun in it.
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    os.chdir(own)


def leave(namespace: dict[str, Any]) -> None:
    """After a page: everything as it was."""
    from evenhand.policies import POLICIES

    folder, path, modules, policies = namespace["__before__"]
    os.chdir(folder)
    sys.path[:] = path
    POLICIES.clear()
    POLICIES.update(policies)  # other tests have policies of the same names
    for name in set(sys.modules) - modules:
        if str(FILES) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


EXAMPLES = Sybil(
    path=str(ROOT),
    parsers=[
        PythonCodeBlockParser(doctest_optionflags=ELLIPSIS | NORMALIZE_WHITESPACE),
        titled_blocks,
        figures,
    ],
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
    setup=enter,
    teardown=leave,
)
