"""Groups that come with each candidate: asked for, checked, kept, counted, shown and erased."""

from __future__ import annotations

import numpy as np
import pytest

import evenhand as eh
from commands import evenhand
from evenhand.recording._replay import checksum
from evenhand.service import SqlLedger, _queries
from evenhand.service._engine import Engine
from evenhand.service._features import membership_rows
from evenhand.service._ledger import asks
from evenhand.service._ledger.erasure import EraseAsk
from evenhand.service._ledger.fold import restored
from evenhand.service._ledger.membership import Membership
from evenhand.service._problems import Refused
from evenhand.service.config import load
from forking import Forked
from serving import (
    ARMS,
    GIVEN,
    TWO_ATTRIBUTES,
    candidates,
    check_chain,
    check_state,
    make_key,
    rows_of,
    with_groups,
    write_config,
)

SEX = {"sex": ["F", "M"]}
BOTH = {**SEX, "age": ["old", "young"]}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def given(request, nursery, tmp_path_factory):
    """A server whose candidates bring their groups."""
    folder = tmp_path_factory.mktemp("given")
    store = "sqlite:loans.db"
    if request.param == "postgresql":
        store = request.getfixturevalue("server_of_postgres").database("given")
    config = write_config(folder, store=store, **GIVEN)
    with Forked(nursery, config, make_key(config)) as server:
        yield server


def decide(server, id, seed=0, **more):
    return server.decide(id, candidates=with_groups(candidates(seed), seed), **more)


# By hand ----------------------------------------------------------------------------------------


def test_probabilities_count_for_every_intersection():
    of = Membership(eh.Groups.per_round(2, BOTH), n_features=1)
    group = {"sex": {"F": 0.25, "M": 0.75}, "age": "old"}
    rows = membership_rows(of.groups, [group, None, {"sex": "F", "age": {"old": 1, "young": 0}}])
    rows = np.column_stack([np.zeros(3), rows])
    assert of.parts(rows[0]) == {"F & old": 0.25, "M & old": 0.75}
    assert of.parts(rows[1].tobytes()) == {"not stated & not stated": 1.0}
    assert [of.label(row) for row in rows] == [
        "by probability", "not stated & not stated", "F & old",
    ]  # fmt: skip
    assert of.expected(rows) == pytest.approx(
        {"F & old": 1.25 / 3, "M & old": 0.25, "not stated & not stated": 1 / 3}
    )
    assert of.words(rows)[0] == "F 25 %, M 75 % & old"
    assert len(of.names) == 9 and of.blank.tolist() == [0, 0, 0, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("attributes", "group", "field"),
    [
        (SEX, "secret", "candidates[1].group"),
        (SEX, {"F": 0.5, "M": 0.4}, "candidates[1].group"),
        (SEX, {"F": 1.5, "M": -0.5}, "candidates[1].group"),
        (SEX, {"secret": 1.0}, "candidates[1].group"),
        (SEX, {}, "candidates[1].group"),
        (BOTH, {"sex": "F"}, "candidates[1].group.age"),
        (BOTH, {"sex": "F", "age": "secret"}, "candidates[1].group.age"),
        (BOTH, {"sex": {"F": 2.0}, "age": None}, "candidates[1].group.sex"),
        (BOTH, {"sex": "F", "age": "old", "secret": "x"}, "candidates[1].group"),
    ],
)
def test_a_group_that_is_not_allowed_is_named_and_not_repeated(attributes, group, field):
    groups = eh.Groups.per_round(2, attributes)
    with pytest.raises(Refused) as caught:
        membership_rows(groups, [None, group])
    assert caught.value.field == field and "secret" not in caught.value.detail


# Over HTTP --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_decision_keeps_and_shows_the_groups(given):
    decision = decide(given, "loan-1").json()
    assert decision["candidates"]["group"] == ["F", "M", "F 25 %, M 75 %", "not stated"]
    place = decision["candidates"]["arm"].index(decision["arm"])
    assert decision["group"] == decision["candidates"]["group"][place]
    assert decide(given, "loan-1").status_code == 200
    other = decide(given, "loan-1", seed=4)  # the same groups, other features
    assert other.status_code == 409
    moved = given.decide("loan-1", candidates=with_groups(candidates(), 1))
    assert moved.status_code == 409  # the same features, other groups
    view = given.call("GET", "/v1/decisions/loan-1").json()
    assert view["candidates"] == decision["candidates"]
    assert list(view["contexts"]) == ["intercept", "income", "age"]
    why = given.call("GET", "/v1/decisions/loan-1/reasons").json()
    assert why["same"] is True
    groups = {candidate["arm"]: candidate["group"] for candidate in why["candidates"]}
    assert groups == dict(zip(ARMS, decision["candidates"]["group"], strict=True))


@pytest.mark.slow
def test_reasons_with_groups_add_up(given):
    for number in range(20):
        decision = decide(given, f"learn-{number}", number).json()
        given.reward(f"learn-{number}", float(ARMS.index(decision["arm"])))
    scores = decide(given, "explained").json()["candidates"]
    why = given.call("GET", "/v1/decisions/explained/reasons").json()
    for candidate in why["candidates"]:
        place = scores["arm"].index(candidate["arm"])
        total = sum(reason["contribution"] for reason in candidate["reasons"])
        corrected = scores["estimate"][place] + scores["correction"][place]
        assert total == pytest.approx(corrected, rel=1e-4, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("group", ["nobody", {"F": 0.5}, {"nobody": 1.0}, {"sex": "F"}, 3, ["F"]])
def test_a_refusal_names_the_field_and_repeats_nothing(given, group):
    body = with_groups(candidates())
    body[2]["group"] = group
    refused = given.decide(candidates=body)
    assert refused.status_code == 422 and "nobody" not in refused.text
    assert refused.json()["field"].startswith("candidates[2].group")
    missing = given.decide(candidates=candidates())
    assert missing.status_code == 422 and "group" in missing.text


@pytest.mark.slow
def test_overrides_shares_and_search_go_by_the_candidates_group(given):
    before = {g["group"]: g for g in given.call("GET", "/v1/shares").json()["groups"]}
    decision = decide(given, "overruled", available=["f1", "m1"]).json()
    assert decision["candidates"]["group"] == ["F", "F 25 %, M 75 %"]
    other = "m1" if decision["arm"] == "f1" else "f1"
    body = {"arm": other, "reason": "knows the applicant"}
    assert given.call("PUT", "/v1/decisions/overruled/override", body).status_code == 201
    assert given.reward("overruled", 8.0).status_code == 201
    view = given.call("GET", "/v1/decisions/overruled").json()
    groups = dict(zip(("f1", "m1"), decision["candidates"]["group"], strict=True))
    assert view["override"]["group"] == view["group"] == groups[other]
    after = {g["group"]: g for g in given.call("GET", "/v1/shares").json()["groups"]}

    def more(group, what):
        return after[group][what] - before.get(group, {}).get(what, 0)

    decided = {"f1": 1.0, "m1": 0.25}
    assert more("F", "decisions") == pytest.approx(decided[decision["arm"]])
    assert more("F", "overridden") == pytest.approx(decided[decision["arm"]])
    assert more("F", "rewards") == pytest.approx(decided[other])
    assert more("M", "rewards") == pytest.approx(1.0 - decided[other])
    label = "F" if other == "f1" else "by probability"
    listed = given.call("GET", f"/v1/decisions?group={label}&limit=1000").json()["decisions"]
    assert "overruled" in [line["id"] for line in listed]
    text = given.call("GET", "/metrics").text
    assert 'evenhand_decisions_total{group="not stated"}' in text


@pytest.mark.slow
def test_arms_come_without_a_group(given):
    refused = given.call("POST", "/v1/arms", {"name": "x", "group": "F"})
    assert (refused.status_code, refused.json()["field"]) == (422, "group")
    given.decide("before-f3", candidates=with_groups(candidates()))
    assert given.call("POST", "/v1/arms", {"name": "f3"}).status_code == 201
    assert given.call("POST", "/v1/arms", {"name": "f3"}).status_code == 200
    arms = given.call("GET", "/v1/arms").json()["arms"]
    assert arms[-1] == {"name": "f3", "group": None, "retired": False}
    more = [*with_groups(candidates()), {"arm": "f3", "features": [1, 30], "group": "M"}]
    decision = given.decide("with-f3", candidates=more).json()
    assert decision["candidates"]["group"][-1] == "M"
    assert given.call("GET", "/v1/decisions/before-f3/reasons").json()["same"] is True
    assert given.call("GET", "/v1/bias").json()["words"]


@pytest.mark.slow
def test_the_ledger_is_whole_and_equals_its_replay(given, tmp_path):
    store = load(given.config).store
    check_chain(store.removeprefix("sqlite:"))
    check_state(store)
    result = evenhand("ledger", "verify", given.config)
    assert result.returncode == 0, result.stderr
    path = tmp_path / "loans.parquet"
    path.write_bytes(given.call("GET", "/v1/decisions/export?format=parquet").content)
    assert checksum(eh.replay(path)) == checksum(eh.replay(SqlLedger(store, write=False)))
    copied = evenhand("ledger", "copy", given.config, f"sqlite:{tmp_path / 'copy.db'}")
    assert copied.returncode == 0, copied.stderr
    check_state(f"sqlite:{tmp_path / 'copy.db'}")


@pytest.mark.slow
def test_the_client_passes_groups_on(given):
    with eh.Client(given.url, given.key) as client:
        decision = client.decide(with_groups(candidates()), chosen="m2")
        assert (decision["arm"], decision["group"]) == ("m2", "not stated")


# Without the network ----------------------------------------------------------------------------


def played(config, number=24):
    engine = Engine(load(config))
    engine.open()
    rng = np.random.default_rng(3)
    for k in range(number):
        given = [c["group"] for c in with_groups(candidates(), k)]
        rows = np.column_stack(
            [np.ones(4), rng.normal(size=(4, 2)), membership_rows(engine.config.groups, given)]
        )
        ask = engine.prepare(f"d{k}", list(ARMS), rows, person=f"p{k % 4}")
        batch = [ask, asks.Reward(f"d{k}", float(rng.normal()), None)] if k % 3 else [ask]
        engine.state.apply(engine.store.write(batch).told)
    return engine


@pytest.mark.slow
def test_an_erased_person_leaves_no_group(tmp_path):
    engine = played(write_config(tmp_path, **GIVEN))
    before, shares = engine.state.checksum(), _queries.shares(engine.store.connection)
    ask = EraseAsk(engine.pseudonym("p1"), "Ada", "asked to", 0, force=True)
    engine.state.apply(engine.store.write([ask]).told)
    assert ask.status == 200
    place = tmp_path / "loans.db"
    erased = rows_of(place, "SELECT d.id, d.grp, e.body, e.salt FROM decisions d "
                          "JOIN entries e ON e.seq = d.seq WHERE d.grp = 'erased'")  # fmt: skip
    assert erased == [(f"d{k}", "erased", None, None) for k in range(1, 24, 4)]
    for table in ("waiting", "overrides", "reviews"):
        rows = rows_of(place, f"SELECT d.grp FROM {table} t JOIN decisions d ON d.seq = t.decision")
        assert ("erased",) not in rows
    assert restored(engine.store.connection).checksum() == before  # what was learned is kept
    assert _queries.shares(engine.store.connection) == shares  # and so are counts
    rounds = _queries.latest_rounds(engine.store.connection, engine.state.given)
    assert {round for round, _, _ in rounds} == {k for k in range(1, 25) if k % 4 != 2}
    engine.close()
    check_chain(place)


@pytest.mark.slow
def test_missing_rewards_count_by_the_candidates_group(tmp_path):
    config = write_config(tmp_path, wait="0 seconds", **GIVEN)
    engine = played(config, 4)
    engine.state.apply(engine.store.write([asks.Expire()]).told)
    rows = rows_of(tmp_path / "loans.db", "SELECT grp, decided, rewarded, missing FROM tallies")
    assert sum(missing for _, _, _, missing in rows) == pytest.approx(2)
    for _, decided, rewarded, missing in rows:
        assert missing == pytest.approx(decided - rewarded)
    engine.close()


@pytest.mark.slow
def test_attributes_of_arms_are_learned_separately(nursery, tmp_path):
    """Fixed attributes are not one crossed label, and an arm can be added to an intersection."""
    arms = """
[arms]
f1 = { sex = "F", age = "old" }
f2 = { sex = "F", age = "young" }
m1 = { sex = "M", age = "old" }
m2 = { age = "young", sex = "M" }
"""
    config = write_config(tmp_path, groups=arms)
    with Forked(nursery, config, make_key(config)) as server:
        for number in range(12):
            decision = server.decide(f"d{number}", candidates=candidates(number)).json()
            server.reward(f"d{number}", float(ARMS.index(decision["arm"])))
        assert decision["candidates"]["group"] == ["F & old", "F & young", "M & old", "M & young"]
        bias = server.call("GET", "/v1/bias").json()
        assert {"sex: F", "age: old", "F & old"} <= {row["group"] for row in bias["rows"]}
        new = {"name": "f3", "group": "F & old"}
        assert server.call("POST", "/v1/arms", new).status_code == 201
        more = [*candidates(), {"arm": "f3", "features": [1, 30]}]
        assert server.decide("five", candidates=more).status_code == 201
    check_state(f"sqlite:{tmp_path / 'loans.db'}")


@pytest.mark.slow
def test_two_attributes_of_candidates(nursery, tmp_path):
    config = write_config(tmp_path, **TWO_ATTRIBUTES)
    with Forked(nursery, config, make_key(config)) as server:
        groups = [{"sex": "F", "age": "old"}, {"sex": None, "age": {"old": 0.5, "young": 0.5}},
                  None, {"sex": "M", "age": "young"}]  # fmt: skip
        body = [{**c, "group": g} for c, g in zip(candidates(), groups, strict=True)]
        decision = server.decide("d", candidates=body).json()
        assert decision["candidates"]["group"] == [
            "F & old", "not stated & old 50 %, young 50 %", "not stated & not stated", "M & young",
        ]  # fmt: skip
        body[0]["group"] = {"sex": "F"}
        refused = server.decide(candidates=body)
        assert refused.json()["field"] == "candidates[0].group.age"
        server.kill()
        server.start()
        assert server.decide("d", candidates=[{**c, "group": g} for c, g in zip(
            candidates(), groups, strict=True)]).status_code == 200  # fmt: skip
    check_state(f"sqlite:{tmp_path / 'loans.db'}")


@pytest.mark.slow
def test_an_export_is_audited_by_the_candidates_group(tmp_path):
    config = write_config(tmp_path, **GIVEN)
    played(config, 300).close()
    result = evenhand("ledger", "export", config, tmp_path / "out.parquet")
    assert result.returncode == 0, result.stderr
    frame = eh.read_log(tmp_path / "out.parquet")
    columns = ["sex: F", "sex: M", "sex: not stated"]
    for label, row in zip(frame["group"], frame[columns].to_numpy(), strict=True):
        certain = dict(zip(("F", "M", "not stated"), row.tolist(), strict=True)).get(label)
        assert (certain == 1.0) if label != "by probability" else row.tolist() == [0.25, 0.75, 0.0]
    for log in (tmp_path / "out.parquet", config):  # an export, and the live ledger
        out = tmp_path / f"{log.stem}.html"
        audited = evenhand("audit", log, "--missing", "drop", "--out", out)
        assert audited.returncode == 0, audited.stderr
        assert "3 groups" in audited.stdout or "4 groups" in audited.stdout
        assert "Held constant: intercept, income, age" in audited.stdout
