"""The documentation site: it builds without a warning, works offline and names everything public.

That the examples in it run is not tested here: conftest.py makes every one of them a test.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import evenhand as eh
from evenhand.cli import parser

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md"])


def build(project, site):
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=project,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},  # an advertisement, not a warning
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    built = build(ROOT, folder)
    assert built.returncode == 0, built.stderr
    return folder


def test_every_page_is_built(site):
    expected = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
    found = {page.relative_to(site) for page in site.rglob("*.html")}
    assert found == expected | {Path("404.html")}


def test_what_is_broken_stops_the_build(tmp_path):
    """The settings in mkdocs.yml are what turns these into errors."""
    shutil.copytree(DOCS, tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    (tmp_path / "src").symlink_to(ROOT / "src")
    (tmp_path / "docs" / "orphan.md").write_text(
        "[no page](nowhere.md) [no place](index.md#nowhere) [from the root](/index.md)\n"
    )
    broken = build(tmp_path, tmp_path / "site")
    assert broken.returncode != 0
    for words in ("not included in the", "'nowhere.md'", "'#nowhere'", "'/index.md'"):
        assert words in broken.stderr, f"nothing is said of {words}"


def test_every_public_name_is_in_the_reference(site):
    pages = (site / "reference").glob("*.html")
    known = {
        name for page in pages for name in re.findall(r'id="(evenhand\.[^"]+)"', page.read_text())
    }
    for name in eh.__all__:
        value = getattr(eh, name)
        home = "evenhand" if name in eh._MODULES else value.__module__
        assert f"{home}.{name}" in known, f"{name} is not in the reference"


class Loaded(HTMLParser):
    """Addresses of what a browser loads by itself with a page. Links to follow are not among it."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attrs):
        wanted = "href" if tag == "link" else "src"
        if tag != "a":
            self.addresses += [value for name, value in attrs if name == wanted and value]


def test_pages_load_nothing_from_the_network(site):
    for page in site.rglob("*.html"):
        parser = Loaded()
        parser.feed(page.read_text())
        assert parser.addresses, f"{page.name} loads no style at all: is this parser blind?"
        outside = [one for one in parser.addresses if re.match(r"(https?:)?//", one)]
        assert not outside, f"{page.name} loads {outside}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//", style.read_text()), style.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_of_code_has_a_known_kind(page):
    """A block marked py or pycon would be shown, and never run."""
    opened = re.findall(r"^ *```(.*)\n(?:.*\n)*? *```$", page.read_text(), flags=re.MULTILINE)
    kinds = {re.sub(r'title="\w+\.py"', "title", kind) for kind in opened}
    assert kinds <= {"", "python", "python title", "console", "text"}
    assert page.read_text().count("```") == 2 * len(opened)


def options(command):
    found = {name for action in command._actions for name in action.option_strings}
    return {name for name in found if name.startswith("--")}


def test_the_options_of_the_command_line_are_the_real_ones():
    whole = parser()
    paper = whole._subparsers._group_actions[0].choices["paper"]
    reference = (DOCS / "reference" / "cli.md").read_text()
    guide = (DOCS / "how-to" / "rerun-the-paper.md").read_text()
    rows = r"^\| `(--\w+)"
    assert set(re.findall(rows, reference, re.MULTILINE)) == options(whole) | options(paper)
    assert set(re.findall(rows, guide, re.MULTILINE)) == options(paper) - {"--help"}


def test_every_convention_has_a_row():
    table = (DOCS / "explanation" / "conventions.md").read_text()
    rows = set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE))
    assert {field.name for field in dataclasses.fields(eh.Conventions)} - {"name"} <= rows


def test_the_table_of_conventions_says_what_was_measured():
    """Numbers in the column of effects come from the examples further down, which are run."""
    text = (DOCS / "explanation" / "conventions.md").read_text()
    table, measured = text.split("## How the effects were measured")
    pattern = r"^(?:share|true_regret) +(\d+\.\d+) +([+-]\d+\.\d+) "
    pairs = [
        (float(a), float(a) + float(b)) for a, b in re.findall(pattern, measured, re.MULTILINE)
    ]
    rows = [
        line for line in table.splitlines() if re.match(r"\| `(width|level|singular|ties)", line)
    ]
    rows += [line for line in table.splitlines() if re.match(r"\| `(chain|group_c|corr)", line)]
    quoted = re.findall(r"(\d*\.\d+) to (\d*\.\d+)", " ".join(rows))
    assert len(quoted) >= 12
    for before, after in quoted:
        digits = len(before.split(".")[1])
        reach = 0.51 * 10.0**-digits  # rounded, from numbers that are rounded themselves
        assert any(
            abs(a - float(before)) <= reach and abs(b - float(after)) <= reach for a, b in pairs
        ), f"{before} to {after} is not among the measured effects"
