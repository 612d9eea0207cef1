"""What every page promises: one look, nothing to fetch, and nothing but what a template wrote."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import jinja2
import pytest

import evenhand
from evenhand import _html
from evenhand._html import drawn, render
from evenhand._html.tables import of_rows
from evenhand.errors import MissingExtraError
from pages import Page

SOURCE = Path(evenhand.__file__).parent
TEMPLATES = sorted((SOURCE / "_html" / "templates").iterdir())
HOSTILE = "</style><script>alert('1')</script> & \"co\""


def test_a_page_is_whole_and_needs_nothing_else():
    page = render("base.html", title=HOSTILE)
    assert page.startswith('<!doctype html>\n<html lang="en">')
    parsed = Page(page)
    assert parsed.tags == [
        *("html", "head", "meta", "meta", "title", "style", "body", "header", "h1", "main"),
        *("footer", "p"),
    ]
    assert parsed.words.count(HOSTILE) == 2  # the title and the heading
    style = files("evenhand._html").joinpath("style.css").read_text(encoding="utf-8")
    assert style in page, "the style sheet was escaped, or is not there"
    assert not re.search("@import|url[(]|https?:", style)
    assert "@media print" in style and "::details-content" in style


def test_a_name_that_is_not_given_is_an_error():
    with pytest.raises(jinja2.UndefinedError, match="'title' is undefined"):
        render("base.html")
    with pytest.raises(jinja2.TemplateNotFound):
        render("absent.html")


def part(call: str, **names: object) -> str:
    text = "{% import 'parts.html' as parts %}{{ parts." + call + " }}"
    return _html._environment().from_string(text).render(**names)


def test_only_what_our_charts_drew_is_put_in_as_it_is():
    assert "<svg></svg>" in part("figure(svg, 'a < b')", svg=drawn("<svg></svg>"))
    assert "<figcaption>a &lt; b</figcaption>" in part("figure('', 'a < b')")
    assert "<svg>" not in part("figure('<svg></svg>', '')")


def test_a_table_says_what_its_headings_are_about():
    table = of_rows(["", "policy", "n < 5"], [["a", "b", 3], ["c", HOSTILE, 4.0]], keys=2)
    text = part("table(table, 'x \"y\"')", table=table)
    page = Page(text)
    scopes = [value for name, value in page.attributes if name == "scope"]
    assert scopes == ["col", "col", *["row"] * 4]
    assert HOSTILE in page.words and ("aria-label", 'x "y"') in page.attributes
    assert '<th scope="col" class="number">n &lt; 5</th>' in text
    assert '<td class="number">3</td>' in text
    named = part("table(table, 'label')", table=table._replace(caption="what & why"))
    assert "<caption><div>what &amp; why</div></caption>" in named and "aria-label" not in named


def test_without_jinja_the_message_says_what_to_install(monkeypatch):
    _html._environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    for call in (lambda: render("base.html", title="x"), lambda: drawn("<svg/>")):
        with pytest.raises(MissingExtraError, match=r"need jinja2: pip install 'evenhand\[charts"):
            call()


@pytest.mark.slow
def test_decisions_do_not_load_what_writes_pages():
    code = (
        "import sys, evenhand as eh, evenhand._html\n"
        "policy = eh.TopInterval(eh.Groups(['F', 'M']), 1)\n"
        "policy.update(policy.select([[1.0], [1.0]]), 1.0)\n"
        "assert not {'jinja2', 'markupsafe'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_mark_nothing_safe(path):
    """What is safe is told in one place, `drawn`; a template has no reason to."""
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"\|\s*safe\b|autoescape|style=|<script|https?:", text)


@pytest.mark.slow
def test_no_html_is_written_outside_of_templates():
    element = re.compile(
        r"</?(?:p|t[dhr]|table|h[1-6]|div|span|[ou]l|li|details|figure|b|a|code)\b"
    )
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        told = {  # docstrings may speak of it
            id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and id(node) not in told:
                markup = element.search(node.value) if isinstance(node.value, str) else None
                assert not markup, f"{path}:{node.lineno} writes {markup[0]}"


def test_templates_are_found_as_a_part_of_the_package():
    names = {template.name for template in files("evenhand._html").joinpath("templates").iterdir()}
    of_reports = {"base", "parts", "audit", "cells", "report", "demo"}
    of_service = {
        "bias",
        "decision",
        "decisions",
        "login",
        "model",
        "overview",
        "problem",
        "review",
    }
    expected = {*of_reports, "service", *(f"service_{page}" for page in of_service)}
    assert names == {f"{name}.html" for name in expected}
