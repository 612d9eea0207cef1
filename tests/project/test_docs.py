"""The documentation site: it builds without a warning, works offline and names everything public.

That the examples in it run is not tested here: `documentation`, in tests/builders, makes every
one of them a test.
"""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from sybil import Document
from sybil.example import SybilFailure

import evenhand as eh
from documentation import figures
from evenhand.cli._main import parser
from evenhand.experiments._user_policies import settings_of
from evenhand.experiments._worlds import SECTION, SOURCES, TABLE, WORLD
from evenhand.experiments.file import TOP
from evenhand.experiments.model import Output, Published

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXPERIMENTS = DOCS / "how-to" / "run-an-experiment.md"
BLOCK = re.MULTILINE | re.DOTALL
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


@pytest.mark.slow
def test_every_page_is_built(site):
    expected = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
    pages = {page.relative_to(site) for page in site.rglob("*.html")}
    assert pages == expected | {Path("404.html")}


@pytest.mark.slow
def test_anything_broken_stops_the_build(tmp_path):
    """The settings in mkdocs.yml turn these into errors, for two pages as for all."""
    text = (ROOT / "mkdocs.yml").read_text()
    sections = re.split(r"^(?=\w)", text, flags=re.MULTILINE)
    kept = [part for part in sections if not part.startswith(("nav:", "plugins:", "extra_css:"))]
    assert any(part.startswith("validation:") for part in kept)
    (tmp_path / "mkdocs.yml").write_text("".join([*kept, "nav:\n  - Home: index.md\n"]))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Home\n")
    (tmp_path / "docs" / "orphan.md").write_text(
        "[no page](nowhere.md) [no place](index.md#nowhere) [from the root](/index.md)\n"
    )
    broken = build(tmp_path, tmp_path / "site")
    assert broken.returncode != 0
    for words in ("not included in the", "'nowhere.md'", "'#nowhere'", "'/index.md'"):
        assert words in broken.stderr, f"nothing is said of {words}"


@pytest.mark.slow
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
    """Addresses that a browser loads with a page by itself; links to follow are not among them."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attrs):
        wanted = "href" if tag == "link" else "src"
        if tag != "a":
            self.addresses += [value for name, value in attrs if name == wanted and value]


@pytest.mark.slow
def test_pages_load_nothing_from_the_network(site):
    for page in site.rglob("*.html"):
        parser = Loaded()
        parser.feed(page.read_text())
        assert parser.addresses, f"{page.name} loads no style at all: is this parser blind?"
        outside = [address for address in parser.addresses if re.match(r"(https?:)?//", address)]
        assert not outside, f"{page.name} loads {outside}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//", style.read_text()), style.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_of_code_has_a_known_kind(page):
    """A block marked py or pycon would be shown, and never run."""
    opened = re.findall(r"^ *```(.*)\n(?:.*\n)*? *```$", page.read_text(), flags=re.MULTILINE)
    kinds = {re.sub(r'title="\w+\.py"', "title", kind) for kind in opened}
    assert kinds <= {"", "python", "python title", "console", "text", "toml"}
    assert page.read_text().count("```") == 2 * len(opened)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_figures_beside_an_example_are_checked(page):
    """A comment lists them (`documentation` compares them), or the text says what measured them."""
    after = r"^```python\n(?:.*\n)*?```\n\n(?!```|#|\|)((?:.+\n)+(?:\n<!-- figures: .*)?)"
    for paragraph in re.findall(after, page.read_text(), re.MULTILINE):
        prose = re.sub(r"<!--(?:.|\n)*?-->|`[^`]*`|\]\([^)]*\)", " ", paragraph)
        if re.search(r"(?<![\w.,])\d*\.\d|\d %", prose):
            known = r"<!-- figures: |`(make|evenhand|python -m|pytest) "
            assert re.search(known, paragraph), f"say where these figures come from:\n{paragraph}"


@pytest.mark.parametrize(
    ("said", "comment", "right"),
    [
        ("It gave F 49 % of 4,000.", "{share:.0%} 4,000", True),
        ("It gave F 48 % of 4,000.", "{share:.0%} 4,000", False),
        ("Of 4,000 it gave F 49 %.", "{share:.0%} 4,000", False),
        ("It gave F 49 %, and M 51 %.", "{share:.0%}", False),
        ("From .49 to -.5 after T_1 in `x = 3`.", "{share:.2f} {-0.5}", True),
        ("One more 7.\n\nIt gave F 49 %.\n<!-- 8 -->\n", "{share:.0%}", True),
    ],
)
def test_figures_are_compared_with_what_the_page_found(tmp_path, said, comment, right):
    (tmp_path / "page.md").write_text(f"{said}\n<!-- figures: {comment} -->\n")
    (example,) = Document.parse(str(tmp_path / "page.md"), figures).examples()
    example.namespace["share"] = 0.4851
    if right:
        example.evaluate()
    else:
        with pytest.raises(SybilFailure, match=r"the text says .*, and the examples "):
            example.evaluate()


def options(command):
    """The options of a command and of its tasks, and the names of its arguments."""
    names = set()
    for action in command._actions:
        if isinstance(action.choices, dict):  # tasks
            names.update(*(options(task) for task in action.choices.values()))
        elif action.option_strings:
            names |= {name for name in action.option_strings if name.startswith("--")}
        else:
            names.add(action.metavar)
    return names - {"--help"}


def rows(text):
    """The first cell of every table row, if it is code: an option, an argument or a key."""
    return re.findall(r"^\| `(--[\w-]+|\w+)[^`]*` \|", text, re.MULTILINE)


def section(text, heading):
    _, separator, rest = text.partition(f"\n{heading}\n")
    assert separator, f"there is no {heading}"
    level = heading.split()[0]
    return re.split(rf"^#{{1,{len(level)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def test_the_options_of_the_command_line_are_the_real_ones():
    commands = parser()._subparsers._group_actions[0].choices
    reference = (DOCS / "reference" / "cli.md").read_text()
    assert rows(reference.split("\n## ")[0]) == ["--help", "--version"]
    for name, command in commands.items():
        listed = rows(section(reference, f"## evenhand {name}"))
        assert sorted(listed) == sorted(options(command)), name
    guide = (DOCS / "how-to" / "rerun-the-paper.md").read_text()
    assert sorted(rows(guide)) == sorted(options(commands["paper"]))


@pytest.mark.slow
def test_every_experiment_in_the_documentation_is_valid(tmp_path):
    """In its own process: it imports the policy of the page by name."""
    text = EXPERIMENTS.read_text()
    for name, code in re.findall(r'^```python title="(\w+\.py)"\n(.*?)^```', text, BLOCK):
        (tmp_path / name).write_text(code)
    pythons = re.findall(r"^```python\n(.*?)^```", text, BLOCK)
    (tmp_path / "make_table.py").write_text(next(code for code in pythons if "to_csv" in code))
    tomls = re.findall(r"^```toml\n(.*?)^```", text, BLOCK)
    assert len(tomls) >= 4
    for number, toml in enumerate(tomls):
        (tmp_path / f"block{number}.toml").write_text(toml)
    read = (
        "import sys, make_table; from pathlib import Path\n"
        "from evenhand.experiments.file import read_experiment\n"
        "for name in sys.argv[1:]: print(read_experiment(Path(name), allow_code=True).title)\n"
        "try: read_experiment(Path('mistake.toml'))\n"
        "except ValueError as error: print(error)\n"
    )
    (tmp_path / "mistake.toml").write_text(tomls[0].replace('"F"', '"f"'))
    names = [f"block{number}.toml" for number in range(len(tomls))]
    done = subprocess.run(
        [sys.executable, "-c", read, *names],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    error_line = re.search(r"^evenhand: loans\.toml(, line .*)$", text, re.MULTILINE)
    assert done.stdout.splitlines()[-1] == f"mistake.toml{error_line[1]}"


def test_every_key_of_an_experiment_has_a_row():
    text = EXPERIMENTS.read_text()
    settings = settings_of(eh.Policy)
    for heading, keys in {
        "The file itself": {name for name, kind in TOP.items() if kind is not SECTION},
        "[sweep] and [panels]": {"parameter", "values", "multiples"},
        "[world]": set(WORLD),
        "[data]": {*TABLE, *SOURCES},
        "[run]": settings | {"horizon"},
        "[output]": set(Output._fields),
        "[published]": set(Published._fields),
    }.items():
        assert sorted(rows(section(text, f"### {heading}"))) == sorted(keys), heading
    headings = " ".join(re.findall(r"^### (.*)$", text, re.MULTILINE))
    for name, kind in TOP.items():
        assert kind is not SECTION or f"[{name}" in headings, name


def test_every_convention_has_a_row():
    table = (DOCS / "explanation" / "conventions.md").read_text()
    rows = set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE))
    assert {field.name for field in dataclasses.fields(eh.Conventions)} - {"name"} <= rows


def test_the_table_of_conventions_says_what_was_measured():
    """Numbers in the column of effects come from the examples below, which are run."""
    text = (DOCS / "explanation" / "conventions.md").read_text()
    table, measured = text.split("## How the effects were measured")
    pattern = r"^(?:share|true_regret) +(\d+\.\d+) +([+-]\d+\.\d+) "
    pairs = [
        (float(a), float(a) + float(b)) for a, b in re.findall(pattern, measured, re.MULTILINE)
    ]
    of_worlds = measured.split("The two that belong to the world:")[1].split("\n## ")[0]
    means = re.findall(r"TopInterval +(\d+\.\d+) +(\d+\.\d+)$", of_worlds, re.MULTILINE)
    for before, after in ((0, 2), (1, 3), (4, 6), (5, 7)):  # two policies in each of four worlds
        pairs += [(float(a), float(b)) for a, b in zip(means[before], means[after], strict=True)]
    rows = " ".join(line for line in table.splitlines() if line.startswith("| `"))
    quoted = re.findall(r"(\d*\.\d+) to (\d*\.\d+)", rows)
    assert len(quoted) >= 18
    for before, after in quoted:
        digits = len(before.split(".")[1])
        reach = 0.51 * 10.0**-digits  # rounded, from numbers that are rounded themselves
        assert any(
            abs(a - float(before)) <= reach and abs(b - float(after)) <= reach for a, b in pairs
        ), f"{before} to {after} is not among the measured effects"
