"""The API of a real server: decide, reward, override, use, and what is refused."""

from __future__ import annotations

import json

import pytest

import evenhand as eh
import waiting
from commands import evenhand
from evenhand.service._page_requests import local
from evenhand.service.config import load
from forking import Forked
from serving import (
    ARMS,
    candidates,
    check_chain,
    check_state,
    make_key,
    write_config,
)

pytestmark = pytest.mark.slow  # a server, or commands, in processes of their own


def test_a_decision_can_be_looked_up_and_explained(running):
    response = running.decide("loan-1")
    assert response.status_code == 201
    answer = response.json()
    assert answer["arm"] in ARMS and answer["candidates"]["arm"] == list(ARMS)
    assert sum(answer["candidates"]["propensity"]) == pytest.approx(1.0)
    assert running.reward("loan-1", 2.0, true=3.0).status_code == 201
    view = running.call("GET", "/v1/decisions/loan-1").json()
    assert view["reward"]["value"] == 2.0 and view["true_reward"]["value"] == 3.0
    assert view["contexts"]["income"] == [c["features"]["income"] for c in candidates()]
    why = running.call("GET", "/v1/decisions/loan-1/reasons").json()
    assert why["same"] is True
    assert [c["arm"] for c in why["candidates"] if c["chosen"]] == [answer["arm"]]


def test_the_same_id_counts_once(running):
    first, again = running.decide("once"), running.decide("once")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.content == again.content
    other = running.decide("once", candidates=candidates(1.0))
    assert other.status_code == 409 and other.json()["field"] == "id"
    assert [running.reward("once", r).status_code for r in (1.0, 1.0, 2.0)] == [201, 200, 409]


def test_reasons_add_up_to_the_difference_of_the_estimates(running):
    for number in range(30):
        id = f"learn-{number}"
        decision = running.decide(id, candidates=candidates(number)).json()
        running.reward(id, float(ARMS.index(decision["arm"])))
    decision = running.decide("explained").json()
    why = running.call("GET", "/v1/decisions/explained/reasons").json()
    scores = decision["candidates"]
    for candidate in why["candidates"]:
        place = scores["arm"].index(candidate["arm"])
        corrected = scores["estimate"][place] + scores["correction"][place]
        total = sum(reason["contribution"] for reason in candidate["reasons"])
        assert total == pytest.approx(corrected, rel=1e-4, abs=1e-4)
        sizes = [abs(reason["against_chosen"]) for reason in candidate["reasons"]]
        assert candidate["chosen"] or sizes == sorted(sizes, reverse=True)


def test_an_override_changes_what_is_learned(running):
    decision = running.decide("overruled").json()
    other = next(arm for arm in ARMS if arm != decision["arm"])
    path = "/v1/decisions/overruled/override"
    body = {"arm": other, "reason": "knows the applicant", "by": "Ada"}
    assert running.call("PUT", path, body).status_code == 201
    assert running.call("PUT", path, body).status_code == 200
    third = next(arm for arm in ARMS if arm not in (decision["arm"], other))
    assert running.call("PUT", path, {**body, "arm": third}).status_code == 409
    assert running.call("PUT", path, {**body, "arm": "nobody"}).status_code in (409, 422)
    running.reward("overruled", 5.0)
    view = running.call("GET", "/v1/decisions/overruled").json()
    assert (view["arm"], view["policy_arm"]) == (other, decision["arm"])
    assert (view["override"]["by"], view["override"]["shadow"]) == ("Ada", False)
    assert running.call("PUT", path, {**body, "arm": third}).status_code == 409


def test_shadow_mode_answers_with_the_callers_choice_and_learns_from_it(running):
    for number, arm in enumerate(ARMS):
        id = f"shadow-{number}"
        decision = running.decide(id, mode="shadow", chosen=arm).json()
        assert (decision["arm"], decision["mode"]) == (arm, "shadow")
        assert running.reward(id, 1.0).status_code == 201
    refused = running.decide(mode="shadow")
    assert (refused.status_code, refused.json()["field"]) == (422, "chosen")
    listed = running.call("GET", "/v1/decisions?status=shadow").json()["decisions"]
    assert all(not line["overridden"] for line in listed)


def test_many_rewards_each_have_a_status(running):
    running.decide("bulk-1")
    given = [("bulk-1", 1), ("bulk-1", 1), ("bulk-1", 2), ("nothing", 1)]
    body = {"rewards": [{"id": id, "observed": value} for id, value in given]}
    answer = running.call("POST", "/v1/rewards", body).json()["rewards"]
    assert [outcome["status"] for outcome in answer] == [201, 200, 409, 404]


def test_search_pages_through_everything_once(running):
    for number in range(7):
        running.decide(f"page-{number}")
    seen, cursor = [], ""
    while True:
        page = running.call("GET", f"/v1/decisions?limit=3{cursor}").json()
        seen += [line["id"] for line in page["decisions"]]
        if page["next"] is None:
            break
        cursor = f"&after={page['next']}"
    assert len(seen) == len(set(seen)) and {f"page-{n}" for n in range(7)} <= set(seen)
    women = running.call("GET", "/v1/decisions?group=F&limit=1000").json()["decisions"]
    assert women and all(line["group"] == "F" for line in women)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"candidates": []}, "candidates"),
        ({"candidates": [{"arm": "nobody", "features": [1, 30]}]}, "candidates[0].arm"),
        ({"candidates": [{"arm": "f1", "features": [1, 17]}]}, "candidates[0].features.age"),
        ({"candidates": [{"arm": "f1", "features": [1]}]}, "candidates[0].features"),
        ({"candidates": [{"arm": "f1", "features": {"age": 30}}]}, "candidates[0].features.income"),
        ({"candidates": [{"arm": "f1", "features": ["x", 30]}]}, "candidates[0].features[0]"),
        ({"candidates": [{"arm": "f1", "group": "M", "features": [1, 30]}]}, "candidates[0].group"),
        ({"candidates": [{"arm": "f1", "features": [1, 30]}] * 2}, "candidates"),
        ({"id": "a/b"}, "id"),
        ({"id": "export"}, "id"),
        ({"available": ["nobody"]}, "available[0]"),
        ({"available": []}, "available"),
        ({"mode": "secret-word"}, "mode"),
        ({"secret-word": 1}, "body"),
    ],
)
def test_a_refusal_names_the_field_and_repeats_nothing(running, change, field):
    answer = running.call("POST", "/v1/decisions", {"candidates": candidates(), **change})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json().get("field") == field
    assert "secret-word" not in answer.text and "nobody" not in answer.text


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "1e101", '"\\ud800"'])
def test_values_that_are_not_numbers_are_refused(running, number):
    text = json.dumps({"candidates": candidates()}).replace("20.0", number)
    headers = {"Authorization": f"Bearer {running.key}"}
    answer = waiting.post(f"{running.url}/v1/decisions", content=text, headers=headers)
    assert answer.status_code in (400, 422)
    running.decide("for-numbers")
    answer = waiting.put(
        f"{running.url}/v1/decisions/for-numbers/reward", content=f'{{"observed": {number}}}',
        headers=headers,
    )  # fmt: skip
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize(
    ("body", "field", "detail"),
    [
        ({}, "candidates", "is missing"),
        ({"candidates": [{"features": [1, 2]}]}, "candidates[0].arm", "is missing"),
        ({"ada@example.org": 1}, "body", "has a field that is not known here"),
        ([], "body", "Expected `object`, got `array`"),
    ],
)
def test_missing_and_unknown_fields_are_named(running, body, field, detail):
    response = running.call("POST", "/v1/decisions", body)
    assert (response.status_code, response.json()["field"], response.json()["detail"]) == (
        422,
        field,
        detail,
    )
    assert "ada" not in response.text


def test_a_body_that_is_cut_anywhere_is_refused(running):
    whole = json.dumps({"candidates": candidates()[:1]}).encode()
    headers = {"Authorization": f"Bearer {running.key}"}
    with waiting.Client(headers=headers) as client:
        for length in range(len(whole)):
            answer = client.post(f"{running.url}/v1/decisions", content=whole[:length])
            assert answer.status_code == 400, whole[:length]


def test_large_bodies_and_other_hosts_are_refused(running):
    headers = {"Authorization": f"Bearer {running.key}"}
    large = waiting.post(f"{running.url}/v1/decisions", content=b" " * 1_100_000, headers=headers)
    assert large.status_code == 413

    def parts():
        for _ in range(12):
            yield b" " * 100_000

    chunked = waiting.post(f"{running.url}/v1/decisions", content=parts(), headers=headers)
    assert chunked.status_code == 413
    answer = waiting.get(f"{running.url}/healthz", headers={"Host": "evil.example"})
    assert answer.status_code == 421


def test_no_route_is_open_without_a_key(running):
    paths = running.call("GET", "/openapi.json").json()["paths"]
    for path, methods in paths.items():
        for method, operation in methods.items():
            url = path.replace("{id}", "x")
            for key in ("", "eh_wrong"):
                answer = running.call(method.upper(), url, {}, key=key)
                expected = 401 if "security" in operation else answer.status_code
                assert answer.status_code == expected, (method, path)
    assert [p for p, m in paths.items() if any("security" not in o for o in m.values())] == [
        "/healthz", "/readyz", "/openapi.json",
    ]  # fmt: skip


def test_every_route_with_every_role(running):
    """A key with the role that the description names is accepted; all others get 403."""
    roles = ("decide", "reward", "review", "read", "admin")
    keys = {}
    for role in roles:
        body = {"name": f"only {role}", "roles": [role]}
        keys[role] = running.call("POST", "/v1/keys", body).json()["key"]
    for path, methods in running.call("GET", "/openapi.json").json()["paths"].items():
        for method, operation in methods.items():
            if "security" not in operation or path in ("/v1/pause", "/v1/resume"):
                continue
            needed = operation["description"].rsplit("role ", 1)[1].rstrip(".")
            for role in roles:
                answer = running.call(method.upper(), path.replace("{id}", "x"), {}, keys[role])
                allowed = role in (needed, "admin")
                assert (answer.status_code != 403) == allowed, (path, method, role)
    assert running.call("DELETE", "/v1/keys/only%20read").status_code == 200
    assert running.call("GET", "/v1/arms", key=keys["read"]).status_code == 401


def test_pause_stops_decisions_but_not_rewards(running):
    running.decide("before-pause")
    reason = {"reason": "a complaint"}
    assert running.call("POST", "/v1/pause", reason).status_code == 201
    try:
        assert running.decide().status_code == 503
        assert running.reward("before-pause").status_code == 201
        assert running.call("GET", "/v1/model/versions").json()["paused"] is True
    finally:
        assert running.call("POST", "/v1/resume", reason).status_code == 201
    assert running.decide().status_code == 201


def test_rolled_back_decisions_are_made_by_the_old_version(running):
    version = running.call("GET", "/v1/model/versions").json()["newest"]
    for number in range(5):
        running.reward(running.decide(f"after-{number}").json()["id"], 9.0)
    body = {"version": version, "reason": "rewards were wrong"}
    assert running.call("POST", "/v1/model/rollback", body).status_code == 201
    assert running.decide("old").json()["version"] == version
    assert running.call("GET", "/v1/decisions/old/reasons").json()["same"] is True
    running.call("POST", "/v1/model/rollback", {"version": None, "reason": "mended"})
    assert running.decide().json()["version"] > version
    ahead = {"version": 10**9, "reason": "no"}
    assert running.call("POST", "/v1/model/rollback", ahead).status_code == 422


def test_arms_are_added_renamed_and_retired_live(running):
    assert running.call("POST", "/v1/arms", {"name": "f3", "group": "F"}).status_code == 201
    assert running.call("POST", "/v1/arms", {"name": "x", "group": "new"}).status_code == 422
    more = [*candidates(), {"arm": "f3", "features": [30, 40]}]
    decision = running.decide("with-f3", candidates=more).json()
    assert decision["candidates"]["arm"] == [*ARMS, "f3"]
    only = running.decide("only-f3", candidates=more[-1:]).json()
    assert (only["arm"], only["policy_propensity"]) == ("f3", 1.0)
    assert running.reward("only-f3", 4.0).status_code == 201
    assert running.call("PUT", "/v1/arms/f3", {"name": "south"}).status_code == 200
    assert running.call("GET", "/v1/decisions/only-f3").json()["arm"] == "south"
    assert running.call("PUT", "/v1/arms/south", {"retired": True}).status_code == 200
    assert running.decide(candidates=[{"arm": "south", "features": [30, 40]}]).status_code == 422
    assert running.call("GET", "/v1/decisions/with-f3/reasons").json()["same"] is True


def test_the_ledger_is_whole_and_equals_its_replay(running, tmp_path):
    store = running.config.parent / "loans.db"
    check_chain(store)
    check_state(f"sqlite:{store}")
    result = evenhand("ledger", "verify", running.config)
    assert result.returncode == 0, result.stderr
    path = tmp_path / "loans.csv"
    path.write_bytes(running.call("GET", "/v1/decisions/export").content)
    frame = eh.read_log(path)
    decisions = frame[frame["propensity_score"].notna()]
    assert decisions["decision_id"].is_unique and decisions["round"].tolist() == [
        *range(1, len(decisions) + 1)
    ]
    text = running.call("GET", "/metrics").text
    assert "evenhand_decisions_total" in text and 'route="/v1/decisions"' in text


def test_texts_are_kept_only_as_hashes(nursery, tmp_path):
    config = write_config(tmp_path)
    text = config.read_text().replace("[arms]", '[features.postcode]\ntype = "text"\n[arms]')
    config.write_text(text)
    with Forked(nursery, config, make_key(config)) as server:
        given = [
            {"arm": arm, "features": {"income": 30, "age": 40, "postcode": code}}
            for arm, code in (("m1", "SECRET-1"), ("f1", "SECRET-2"), ("f2", "SECRET-1"))
        ]
        assert server.decide("d", candidates=given).status_code == 201
        assert server.decide("d", candidates=given).status_code == 200
        given[0]["features"]["postcode"] = "SECRET-3"
        assert server.decide("d", candidates=given).status_code == 409
        (f1,), (f2,), (m1,) = server.call("GET", "/v1/decisions/d").json()["hashed"]
        assert f2 == m1 != f1 and len(f1) == 32
        assert server.call("GET", "/v1/decisions/d/reasons").json()["same"] is True
    for file in tmp_path.iterdir():
        assert b"SECRET" not in file.read_bytes()
    check_state(f"sqlite:{tmp_path / 'loans.db'}")


def test_reviewers_claim_and_judge_by_the_api(running):
    for id in ("review-1", "review-2"):
        running.decide(id)
        assert running.call("PUT", f"/v1/decisions/{id}/review").status_code == 201

    def put(id, what, **body):
        return running.call("PUT", f"/v1/decisions/{id}/{what}", body)

    accepted = {"verdict": "accepted"}
    assert put("nothing", "claim", by="Ada").status_code == 404
    assert put("review-1", "verdict", by="Ada", **accepted).status_code == 409  # not claimed
    assert put("review-1", "claim", by="Ada").status_code == 201
    assert put("review-1", "claim", by="Bo").status_code == 409
    queue = running.call("GET", "/v1/review?limit=1000").json()["queue"]
    claimed = {case["id"]: (case["claimed_by"], case["claimed_until"]) for case in queue}
    assert claimed["review-1"][0] == "Ada" and claimed["review-1"][1] is not None
    assert claimed["review-2"] == (None, None)
    assert put("review-1", "verdict", by="Bo", **accepted).status_code == 409
    statuses = [put("review-1", "verdict", by="Ada", **accepted).status_code for _ in range(2)]
    assert statuses == [201, 200]  # an answer that was lost counts once
    assert put("review-1", "claim", by="Ada").status_code == 409

    arm = running.call("GET", "/v1/decisions/review-2").json()["arm"]
    other = next(name for name in ARMS if name != arm)
    change = {"verdict": "overridden", "arm": other, "by": "Ada"}
    assert put("review-2", "claim", by="Ada").status_code == 201
    assert put("review-2", "verdict", **change).json()["field"] == "reason"
    wrong = {**change, "arm": "nobody", "reason": "why"}
    assert put("review-2", "verdict", **wrong).json()["field"] == "arm"
    assert put("review-2", "verdict", by="Ada", arm=other, **accepted).json()["field"] == "arm"
    change["reason"] = "knows the applicant"
    assert [put("review-2", "verdict", **change).status_code for _ in range(2)] == [201, 200]
    view = running.call("GET", "/v1/decisions/review-2").json()
    assert (view["arm"], view["override"]["reason"]) == (other, "knows the applicant")
    answer = running.call("GET", "/v1/review?limit=1000").json()
    assert not {"review-1", "review-2"} & {case["id"] for case in answer["queue"]}
    (ada,) = [person for person in answer["reviewers"] if person["reviewer"] == "Ada"]
    assert (ada["reviewed"], ada["changed"]) == (2, 0.5)


def test_too_many_requests_are_told_when_to_retry(nursery, tmp_path):
    config = write_config(tmp_path, server="rate = 0.001")
    key, other = make_key(config), make_key(config, "read", "other")
    with Forked(nursery, config, key) as server:
        first, second = (server.call("GET", "/v1/arms") for _ in range(2))
        assert (first.status_code, second.status_code) == (200, 429)
        assert second.headers["content-type"] == "application/problem+json"
        assert second.headers["retry-after"] == "1000"  # seconds until one more is allowed
        assert "0.001 requests a second" in second.json()["detail"]
        assert server.call("GET", "/healthz", key="").status_code == 200
        assert server.call("GET", "/v1/arms", key=other).status_code == 200


def test_the_rate_is_limited_by_default(tmp_path):
    assert load(write_config(tmp_path)).server.rate == 1000
    assert load(write_config(tmp_path, server="rate = 0")).server.rate == 0


@pytest.mark.parametrize(
    ("after", "to"),
    [("/model?a=%20", "/model?a=%20"), ("", "/"), ("model", "/"), ("https://other", "/")]
    + [(after, "/") for after in ("//other", "/\\other", "/\t/other", "/\r\nx: y", "/\0", "/ü")],
)
def test_a_login_leads_to_pages_of_the_service_only(after, to):
    assert local(after) == to
