"""A page on paper: as PDF of our own, and printed by a browser. Nothing that is folded is lost."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import numpy as np
import pypdfium2
import pytest

import evenhand as eh
from audit_logs import made_log
from evenhand._html import drawn, render
from evenhand._html.pdf import content_of, to_pdf
from evenhand.cli import main
from evenhand.errors import MissingExtraError
from pages import Page

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--no-pdf-header-footer",
)  # fmt: skip
BIAS = [[-1.0, 0.5, 0.0], *[[0.0] * 3] * 3]
NAMES = ("Ελένη", "Мария", "李明", "<b>#x</b> $y$ *z* @w \\ `v`")


@pytest.fixture(scope="module")
def audit():
    rng = np.random.default_rng(31)
    log = made_log(31, n=2400, d=2, groups=NAMES, bias=BIAS)
    log["town"] = rng.choice(["Αθήνα", "東京", "x" * 60], size=len(log))
    log["timestamp"] = np.arange(len(log), dtype=float)
    log["true_reward"] = log["reward"] + rng.normal(size=len(log))
    log.loc[::90, "x1"] = np.nan
    return eh.audit(log, missing="fill", title="Loans & more", reference=NAMES[3])


@pytest.fixture(scope="module")
def page(audit):
    return audit.to_html()


@pytest.fixture(scope="module")
def pdf(audit):
    return audit.to_pdf()


def read_pdf(content):
    """The text of every page, without what breaks lines and long words."""
    document = pypdfium2.PdfDocument(content)
    try:
        return [page.get_textpage().get_text_range() for page in document]
    finally:
        document.close()


def squeezed(text):
    return re.sub(r"[\s\u200b\ufffe\u00ad-]+", "", text)


@pytest.mark.slow
def test_all_words_of_the_page_are_in_the_pdf(page, pdf):
    pages = read_pdf(pdf)
    text = squeezed("".join(pages))
    # Letters for which there may be no font on this machine are not looked for.
    words = [squeezed(line) for line in re.split(r"[\n]", Page(page).words)]
    words = [word for word in words if word and not re.search(r"[\u3000-\uffff]", word)]
    main_part = words[words.index("Summary") :]
    assert len(main_part) > 500
    lost = [word for word in main_part if word not in text]
    assert not [word for word in lost if len(word) < 30], lost[:5]
    assert "thebiasoneachfeature" in text and "allsettings" in text  # folded on the page
    assert [f"{k} / {len(pages)}" in page for k, page in enumerate(pages, 1)] == [True] * len(pages)


@pytest.mark.slow
def test_a_table_over_several_pages_repeats_its_head(pdf):
    pages = read_pdf(pdf)
    headed = [page for page in pages if "simultaneous low" in page.replace("\r\n", " ")]
    assert len(headed) >= 3


@pytest.mark.slow
def test_pictures_stay_vectors_and_text_is_no_markup(page, pdf):
    content = content_of(page)
    assert content["title"] == "Loans & more, by evenhand"
    assert str(content).count("'svg': '<svg") == page.count("<svg ")
    assert b"/Subtype/Image" not in pdf.replace(b" ", b"")
    assert squeezed(NAMES[3]) in squeezed("".join(read_pdf(pdf)))


def test_the_same_page_is_the_same_pdf():
    page = render("base.html", title="Loans")
    assert to_pdf(page) == to_pdf(page)


def test_a_picture_that_is_taller_than_a_page_is_made_smaller():
    tall = '<svg xmlns="http://www.w3.org/2000/svg" width="400" height="4000"></svg>'
    text = "{% extends 'base.html' %}{% block main %}{{ svg }}{% endblock %}"
    from evenhand._html import _environment

    page = _environment().from_string(text).render(title="x", svg=drawn(tall))
    assert len(read_pdf(to_pdf(page))) <= 2


def test_a_tall_picture_stays_on_the_page_of_its_heading():
    """It must not leave a first page with nothing but a title."""
    tall = '<svg xmlns="http://www.w3.org/2000/svg" width="600" height="1500"></svg>'
    text = (
        "{% extends 'base.html' %}{% block main %}<h2>The gap</h2><p>" + "A warning. " * 40 + "</p>"
        "<figure>{{ svg }}<figcaption>what it shows</figcaption></figure>{% endblock %}"
    )
    from evenhand._html import _environment

    page = _environment().from_string(text).render(title="x", svg=drawn(tall))
    first = read_pdf(to_pdf(page))[0]
    assert "The gap" in first and "what it shows" in first


@pytest.mark.slow
def test_a_pdf_is_saved_with_its_json(audit, tmp_path):
    paths = audit.save(tmp_path / "audit.pdf")
    assert [path.name for path in paths] == ["audit.pdf", "audit.json"]
    assert paths[0].read_bytes()[:5] == b"%PDF-" and paths[1].read_text()[0] == "{"
    with pytest.raises(ValueError, match=r"ends in \.html, \.pdf or \.json"):
        audit.save(tmp_path / "audit.docx")


@pytest.mark.slow
def test_the_command_writes_a_pdf(tmp_path, capsys, monkeypatch):
    made_log(32, n=200, d=1).to_csv(tmp_path / "log.csv", index=False)
    call = ["audit", str(tmp_path / "log.csv"), "--out", str(tmp_path / "a.pdf")]
    assert main(call) == 0 and (tmp_path / "a.pdf").read_bytes()[:5] == b"%PDF-"
    assert "a.pdf" in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "typst", None)
    monkeypatch.setattr("evenhand.cli._terminal.find_spec", lambda name: None)
    assert main(call) == 2


def test_without_typst_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "typst", None)
    with pytest.raises(MissingExtraError, match=r"PDF needs typst: pip install 'evenhand\[pdf\]'"):
        to_pdf(render("base.html", title="x"))


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
def test_a_browser_prints_what_is_folded(page, tmp_path):
    file, pdf = tmp_path / "a.html", tmp_path / "printed.pdf"
    file.write_text(page, encoding="utf-8")
    where = (f"--user-data-dir={tmp_path / 'profile'}", f"--print-to-pdf={pdf}", file.as_uri())
    subprocess.run([BROWSER, *QUIET, *where], check=True, capture_output=True)
    text = squeezed("".join(read_pdf(pdf.read_bytes())))
    for folded in ("simultaneoushigh", "contribution", "weigh_by_propensity", "nominal_columns"):
        assert folded in text, folded
    document = pypdfium2.PdfDocument(pdf.read_bytes())
    for sheet in document:
        words, width = sheet.get_textpage(), sheet.get_width()
        for place in range(words.count_rects()):
            left, _, right, _ = words.get_rect(place)
            assert left >= 0 and right <= width, "something is wider than the page"
    document.close()


@pytest.mark.slow
def test_numbers_have_three_digits_on_the_page_and_all_in_the_json(audit, page):
    numbers = re.findall(r'class="number">(-?[\d,]*\.\d+(?:e-\d+)?)<', page)
    assert len(numbers) > 300
    for number in numbers:
        assert len(re.sub(r"e.*|[-,.]", "", number).lstrip("0")) <= 3, number
    assert "&lt;0.001" in page
    assert re.search(r'"estimate": -?\d+\.\d{10}', audit.to_json())
