"""Names of all kinds come out as they are: they are words on a page, and never a part of it."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand._html import render
from evenhand.experiments import _demo
from evenhand.experiments import run as running
from evenhand.experiments.file import read_experiment
from evenhand.experiments.run import run_all
from evenhand.worlds import TableWorld
from pages import Page

SCRIPT = "<script>alert(1)</script>"
QUOTES = "\"x\" & 'y' &amp; <img src=x onerror=alert(1)>"
BRACES = "{{ 7 * 7 }}{% raw %}"


def harmless(text: str) -> Page:
    """The page, if it holds nothing that runs, is fetched, or is not closed."""
    page = Page(text)
    assert not {"script", "img", "iframe", "link", "object"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "src"]
    assert len(page.ids) == len(set(page.ids))
    assert {"header", "main", "section", "footer"} <= set(page.tags)
    return page


def people(n=240):
    draw = np.random.default_rng(5)
    table = pd.DataFrame(
        {"group": draw.choice([SCRIPT, QUOTES], n), f"age {QUOTES}": draw.random(n)}
    )
    table[f"job {SCRIPT}"] = draw.choice([f"cook {BRACES}", f"judge {QUOTES}"], n)
    table["paid"] = table[f"age {QUOTES}"] + 0.2 * draw.normal(size=n)
    return table


@pytest.mark.slow
def test_an_audit_page(tmp_path):
    log = people(900).rename(columns={"paid": f"paid {SCRIPT}"})
    log["arm"], log["timestamp"] = f"arm {SCRIPT}", np.arange(len(log), dtype=float)
    log[f"truth {QUOTES}"] = log[f"paid {SCRIPT}"]
    log.loc[3, f"age {QUOTES}"] = None
    report = eh.audit(
        log,
        title=f"{SCRIPT} {QUOTES}",
        reward=f"paid {SCRIPT}",
        true_reward=f"truth {QUOTES}",
        arm="arm",
        missing="drop",
    )
    report.save(tmp_path / "a.html")
    page = harmless((tmp_path / "a.html").read_text(encoding="utf-8"))
    for name in (SCRIPT, QUOTES, BRACES, f"age {QUOTES}", f"truth {QUOTES}", f"arm {SCRIPT}"):
        assert name in page.words, name
    assert page.words.lstrip().startswith(f"{SCRIPT} {QUOTES}, by evenhand")
    for section in ("summary", "bias", "truth", "metrics", "drift", "missing", "method", "limits"):
        assert section in page.ids


TEXT = """\
title = {title}
note = {note}
policies = [
    {{ policy = "TopInterval", label = {label} }},
    {{ policy = "TopInterval", label = "TopInterval" }},
]
replications = 2
[data]
file = "people.csv"
group = "group"
sensitive = {sensitive}
reward = "paid"
[data.arms]
{column} = 2
[run]
horizon = 20
[output]
figures = []
"""


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_report_on_an_experiment(tmp_path, monkeypatch):
    people().to_csv(tmp_path / "people.csv", index=False)
    names = {"title": SCRIPT, "note": QUOTES, "label": f"mine {SCRIPT} {BRACES}"}
    names |= {"sensitive": QUOTES, "column": f"age {QUOTES}"}
    text = TEXT.format(**{name: json.dumps(value) for name, value in names.items()})
    (tmp_path / "x.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(running, "run_experiment", made_up)
    monkeypatch.setattr(running, "_warm_up", lambda _: None)
    done = run_all([read_experiment(tmp_path / "x.toml")], tmp_path / "out", f"all {SCRIPT}")
    page = harmless(done.report.read_text(encoding="utf-8"))
    for name in (f"all {SCRIPT}", *(value for key, value in names.items() if key != "column")):
        assert name in page.words, name
    assert page.tags.count("svg") == 2 and "The price of fairness" in page.words


def made_up(experiment, conventions, *_):
    rows = [
        (policy, "", point.x, number, 20, 0.5 + 0.1 * number * place, 3.0 + number, np.nan, 0.1)
        for point in experiment.points(conventions)
        for place, policy in enumerate(experiment.policies)
        for number in range(experiment.replications)
    ]
    names = ["policy", "panel", "x", "replication", "horizon", "share", "perceived_regret",
             "true_regret", "explored"]  # fmt: skip
    runs = pd.DataFrame(rows, columns=names)
    return runs.assign(experiment=experiment.name, conventions=conventions.name), 0.1


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.slow
def test_the_demo(tmp_path):
    world = TableWorld(
        people(),
        group="group",
        sensitive=SCRIPT,
        reward="paid",
        arms={f"age {QUOTES}": 2},
        features=[f"job {SCRIPT}"],
    )
    result = eh.simulate(_demo.POLICIES, world, 5, 2, seed=1, **_demo.ADVISED)
    bias = world.bias(reference=QUOTES)
    path = _demo.write(_demo.Demo(world, 3, result, bias), tmp_path / "new" / "d.html")
    page = harmless(path.read_text(encoding="utf-8"))
    assert SCRIPT in page.words and QUOTES in page.words
    assert "3 applications left out" in " ".join(page.words.split())


def test_claims_of_a_paper():
    """They are our own words, and are escaped all the same."""
    claim = {
        "says": SCRIPT,
        "experiment": f"a b{QUOTES}",
        "verdicts": [{"kind": '"', "verdict": SCRIPT, "numbers": QUOTES}, None],
    }
    begin = {"rounds": "1", "of_paper": True, "repeated": SCRIPT, "marks": QUOTES}
    missing = {"words": SCRIPT, "experiments": QUOTES, "command": SCRIPT, "does": QUOTES}
    text = render(
        "report.html",
        title="t",
        readings=[SCRIPT, QUOTES],
        introduction=begin | {"readings": [(SCRIPT, QUOTES)], "not_here": [missing]},
        beyond=[],
        own_claims=[claim],
        own_readings=[SCRIPT],
        claims=[claim],
        sections=[],
        method=[SCRIPT],
    )
    page = harmless(text)
    assert page.words.count(SCRIPT) == 8 and "not run" in page.words
    links = [value for name, value in page.attributes if name == "href"]
    assert len(links) == 1 and links[0].startswith("#a%20b%22x")
