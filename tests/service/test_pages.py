"""Every page in a real browser: content, keyboard, 400 pixels, and script in every text."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import waiting
from serving import ARMS, Server, make_key, write_config

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the path"),
]
SCRIPT = "<script>document.title='hacked'</script>\"'><img src=x onerror=alert(1)>"
PAGES = ("/", "/bias", "/decisions", "/review", "/model")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server whose arms, groups and texts all contain script."""
    folder = tmp_path_factory.mktemp("pages")
    config = write_config(folder, more="")
    text = config.read_text().replace('title = "Loans"', f"title = '''Loans {SCRIPT}'''")
    text = text.replace('= "F"', f"= '''F{SCRIPT}'''").replace(
        "[server]", "[review]\nshare = 1.0\n[server]"
    )
    config.write_text(text)
    key = make_key(config)
    with Server(config, key) as server:
        server.call("PUT", "/v1/arms/m2", {"name": "m2<b>"})
        arms = [*ARMS[:3], "m2<b>"]
        for number in range(40):
            candidates = [
                {"arm": arm, "features": [20.0 + number % 5 * 9 + k, 30.0 + number]}
                for k, arm in enumerate(arms)
            ]
            decision = server.decide(f"loan-{number}", candidates=candidates, person=SCRIPT).json()
            other = next(arm for arm in arms if arm != decision["arm"])
            if number % 5 == 0:
                body = {"arm": other, "reason": SCRIPT, "by": SCRIPT[:200]}
                server.call("PUT", f"/v1/decisions/loan-{number}/override", body)
            if number % 3:
                server.reward(f"loan-{number}", number / 10)
        yield server


@pytest.fixture(scope="module")
def browser(served):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page(served, browser):
    """A browser that is logged in with the printed token."""
    token = re.search(r"token=(\S+)", served.printed())[1]
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.set_default_timeout(0)
    page.goto(f"{served.url}/login?token={token}")
    page.fill("#name", "Ada")
    page.fill("#password", "short")
    page.click("main button")
    assert "at least 10 characters" in page.inner_text("main")
    page.fill("#name", "Ada")
    page.fill("#password", "correct horse battery")
    page.click("main button")
    assert page.inner_text("h1") == "Overview"
    again = waiting.post(
        f"{served.url}/login",
        data={"token": token, "name": "Eve", "password": "another password"},
    )
    assert again.status_code == 403 and "used before" in again.text
    return page


@pytest.mark.parametrize("path", [*PAGES, "/decisions/loan-5", "/decisions/nothing", "/nowhere"])
def test_no_script_runs_and_nothing_is_loaded_from_elsewhere(served, page, path):
    asked, wrong = [], []
    told = {
        "request": lambda request: asked.append(request.url),
        "console": lambda message: wrong.append(message.text),
        "dialog": lambda dialog: wrong.append(dialog.message),
    }
    for name, listener in told.items():
        page.on(name, listener)
    page.goto(served.url + path)
    for name, listener in told.items():
        page.remove_listener(name, listener)
    assert page.title() != "hacked"
    assert page.evaluate("document.querySelectorAll('script, img[onerror]').length") == 0
    assert all(url.startswith(served.url) for url in asked), asked
    missing = [text for text in wrong if "404" in text or "410" in text]
    assert wrong == missing and (not missing or path in ("/decisions/nothing", "/nowhere"))


@pytest.mark.parametrize("path", [*PAGES, "/decisions/loan-5"])
def test_pages_fit_a_phone_and_have_one_heading_and_labels(served, page, path):
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(served.url + path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.set_viewport_size({"width": 1200, "height": 900})
    assert page.evaluate("document.querySelectorAll('h1').length") == 1
    unlabelled = page.evaluate(
        """[...document.querySelectorAll('input:not([type=hidden]), select, textarea')]
           .filter(field => !field.labels.length).map(field => field.name)"""
    )
    assert unlabelled == []
    assert page.evaluate("[...document.images].every(image => image.complete && image.alt)")
    assert page.evaluate("[...document.images].every(image => image.naturalWidth > 10)")


def test_the_keyboard_reaches_everything(served, page):
    page.goto(f"{served.url}/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    names = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        names.add(page.evaluate("document.activeElement.textContent"))
    assert {"Overview", "Bias", "Decisions", "Review", "Model", "Log out"} <= names


def test_a_decision_says_why_and_who_overrode_it(served, page):
    page.goto(f"{served.url}/decisions?status=overridden")
    page.click("tbody a >> nth=0")
    text = page.inner_text("main")
    assert "recomputed from it, the decision is the same" in text
    assert "Overridden" in text and SCRIPT in text
    assert "corrected estimate" in text
    assert "was not drawn, so it has no probability" in text
    assert "income (1000 EUR a year), " in text  # with its value
    page.goto(f"{served.url}/decisions")
    page.fill("#id", "loan-7")
    page.click("main button")
    assert page.inner_text("h1") == "Decision loan-7"


@pytest.mark.parametrize("path", ["/decisions/nothing", "/nowhere", "/model?compare=99999999"])
def test_a_problem_is_a_page_with_the_navigation_for_those_who_are_logged_in(served, page, path):
    assert page.goto(served.url + path).status in (404, 422)
    assert "Overview" in page.inner_text("nav") and "Log out" in page.inner_text("header")
    stranger = waiting.get(served.url + "/nowhere")
    assert stranger.status_code == 404 and "<nav" not in stranger.text


def test_a_reward_that_came_leaves_nothing_to_review(served, page):
    page.goto(f"{served.url}/decisions/loan-1")
    assert "there is nothing to review" in page.inner_text("#review")
    page.goto(f"{served.url}/review")
    queued = page.inner_text("table[aria-label^='decisions to review']")
    assert "loan-3\n" in queued.replace("\t", "\n") and "loan-1\n" not in queued.replace("\t", "\n")
    page.goto(f"{served.url}/decisions?status=missing")
    assert "No decision matches." in page.inner_text("main")


def test_a_reviewer_claims_and_overrides_and_it_shows(served, page):
    page.goto(f"{served.url}/review")
    first = page.inner_text("tbody a >> nth=0")
    page.click("tbody button >> nth=0")
    assert page.inner_text("h1") == f"Decision {first}"
    page.goto(f"{served.url}/review")
    assert "Ada" in page.inner_text("tbody tr >> nth=0")
    waiting = next(
        line["id"]
        for line in served.call("GET", "/v1/decisions?status=waiting").json()["decisions"]
        if not line["overridden"]
    )
    page.goto(f"{served.url}/decisions/{waiting}")
    assert "Give the verdict" not in page.inner_text("#review")  # before it is claimed
    page.click("text=Claim")
    assert "Claim" not in page.inner_text("#review")
    page.select_option("#arm", index=1)
    page.click("text=Give the verdict")
    assert "an override needs a reason" in page.inner_text("main")
    page.goto(f"{served.url}/decisions/{waiting}")
    page.select_option("#arm", index=1)
    page.fill("#reason", SCRIPT)
    page.click("text=Give the verdict")
    assert page.inner_text("h1") == "Review"
    assert "100.0 %" in page.inner_text("table[aria-label=reviewers]")
    view = served.call("GET", f"/v1/decisions/{waiting}").json()["override"]
    assert (view["by"], view["reason"]) == ("Ada", SCRIPT)
    page.goto(f"{served.url}/decisions/{waiting}")
    assert page.inner_text("#review").split("\n")[-1] == "It was reviewed."


def test_pause_and_roll_back_by_page(served, page):
    page.goto(f"{served.url}/model")
    page.fill("#why-pause", "a complaint")
    page.click("text=Pause all decisions")
    assert "A human has paused" in page.inner_text("header")
    assert served.decide().status_code == 503
    page.fill("#why-resume", "it was settled")
    page.click("text=Resume decisions")
    assert "paused" not in page.inner_text("header")
    page.fill("#version", "5")
    page.fill("#why-back", "to compare")
    page.click("button:has-text('Roll back')")
    assert "version 5" in page.inner_text("header")
    page.fill("#version", "0")
    page.fill("#why-back", "enough")
    page.click("button:has-text('Roll back')")
    assert "version 5" not in page.inner_text("header")


def test_versions_are_compared(served, page):
    page.goto(f"{served.url}/model")
    page.fill("#compare", "10")
    page.click("text=Compare >> nth=-1")
    text = page.inner_text("table[aria-label='bias by version']")
    assert "version 10" in text and " to " in text
    answer = page.goto(f"{served.url}/model?compare=99999999")
    assert answer.status == 422


def test_forms_need_their_session(served, page):
    cookies = {c["name"]: c["value"] for c in page.context.cookies()}
    for form in ({}, {"csrf": "wrong"}):
        answer = waiting.post(
            f"{served.url}/model/pause", data={"reason": "x", **form}, cookies=cookies
        )
        assert answer.status_code == 403
    assert waiting.post(f"{served.url}/model/pause", data={}).status_code == 401
    cookie = next(c for c in page.context.cookies() if c["name"] == "evenhand")
    assert cookie["httpOnly"] and cookie["sameSite"] == "Lax"
    answer = waiting.get(f"{served.url}/login")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    for _ in range(8):
        tried = waiting.post(f"{served.url}/login", data={"name": "Ada", "password": "guess"})
    assert tried.status_code == 429


def test_a_key_is_shown_once_and_logging_out_ends_it(served, page):
    page.goto(f"{served.url}/model")
    page.fill("#key-name", "website")
    page.check("form[action='/model/key'] input[name=decide]")
    page.click("text=Make a key")
    key = page.inner_text(".said code")
    assert served.call("GET", "/v1/arms", key=key).status_code == 403
    page.goto(f"{served.url}/model")
    assert page.query_selector(".said") is None
    cookies = {c["name"]: c["value"] for c in page.context.cookies()}
    page.click("text=Log out")
    assert page.inner_text("h1") == "Log in"
    after = waiting.get(f"{served.url}/", cookies=cookies)
    assert after.status_code == 303
    for path in served.config.parent.glob("*.log"):
        assert SCRIPT not in path.read_text() and "correct horse" not in path.read_text()
    assert Path(served.config.parent / "loans.db").exists()
