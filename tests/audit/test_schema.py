"""The JSON of every kind of audit follows the published schema, which says what every key is."""

from __future__ import annotations

import json

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import evenhand as eh
from audit_logs import made_log

SCHEMA = eh.audit.Audit.schema()


def full_log(groups=("F", "M"), n=900):
    rng = np.random.default_rng(51)
    log = made_log(51, n=n, d=2, groups=groups)
    log["town"] = rng.choice(["a", "b", "c"], size=n)
    return log


def with_times(log):
    return log.assign(timestamp=np.arange(len(log), dtype=float))


def with_arms(log):
    arms = log["group"] + (np.arange(len(log)) % 3).astype(str)
    return log.assign(arm=arms, propensity=0.3, position=np.arange(len(log)) % 4 + 1, explored=True)


def with_truth(log):
    noise = np.random.default_rng(52).normal(size=len(log))
    return log.assign(true_reward=(log["reward"] + noise).where(log.index % 3 > 0))


def with_gaps(log):
    return log.assign(x1=log["x1"].where(log.index % 20 > 0), town=log["town"].where(log.index > 9))


def as_binary(log):
    return log.assign(reward=(log["reward"] > log["reward"].mean()).astype(int))


KINDS = {
    "plain": (lambda: full_log(), {}),
    "windows": (lambda: with_times(full_log()), {"windows": 4}),
    "clusters": (
        lambda: full_log().assign(person=np.arange(900) // 3),
        {"cluster": "person"},
    ),
    "truth": (lambda: with_truth(full_log()), {}),
    "truth of few": (lambda: with_truth(full_log(n=80)).drop(columns="town"), {}),
    "truth of several columns": (
        lambda: with_truth(full_log()).assign(age=np.where(np.arange(900) % 2, "old", "young")),
        {"group": ["group", "age"]},
    ),
    "counts": (lambda: full_log().assign(people=np.arange(900) % 3), {"count": "people"}),
    "dropped": (lambda: with_gaps(full_log()), {"missing": "drop"}),
    "filled": (lambda: with_gaps(full_log()), {"missing": {"x1": "fill", "others": "drop"}}),
    "weights": (lambda: full_log().assign(w=1.0 + np.arange(900) % 2 / 2), {"weight": "w"}),
    "three groups": (lambda: with_arms(with_times(full_log(("F", "M", "X")))), {}),
    "propensities": (lambda: with_arms(full_log()), {"weigh_by_propensity": True}),
    "binary": (lambda: as_binary(full_log()), {"unfavourable": True, "units": {"x0": 5}}),
    "words": (
        lambda: full_log().assign(reward=np.where(np.arange(900) % 3, "yes", "no")),
        {"reward_values": {"yes": 1, "no": 0}, "missing_marks": {"town": ["?"], "*": ["-"]}},
    ),
    "few rows": (lambda: full_log(n=40), {"reference": "mean", "errors": "classical"}),
    "everything": (
        lambda: with_gaps(with_truth(with_arms(with_times(full_log(("F", "M", "X")))))),
        {"missing": "fill"},
    ),
}


def test_it_is_a_schema_with_a_version():
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"].endswith("draft/2020-12/schema")
    assert SCHEMA["additionalProperties"] is False
    assert SCHEMA["$id"] == SCHEMA["properties"]["$schema"]["const"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_the_json_follows_the_schema(kind):
    made, options = KINDS[kind]
    plain = json.loads(eh.audit(made(), **options).to_json())
    errors = Draft202012Validator(SCHEMA).iter_errors(plain)
    assert [f"{error.json_path}: {error.message[:100]}" for error in errors] == []
    assert list(plain) == list(SCHEMA["properties"]), "keys are listed in the order of the JSON"


def test_what_is_not_in_the_schema_is_told():
    plain = eh.audit(made_log(53, n=60, d=1)).to_dict()
    validator = Draft202012Validator(SCHEMA)
    assert validator.is_valid(plain)
    assert not validator.is_valid({**plain, "more": 1})
    assert not validator.is_valid({key: value for key, value in plain.items() if key != "bias"})
    assert not validator.is_valid({**plain, "groups": [{"group": ["F"]}]})
    assert not validator.is_valid({**plain, "version": 2})


def test_every_key_is_described():
    def look(part, where):
        for name, inside in part.get("properties", {}).items():
            assert inside.get("description"), f"{where}.{name} has no description"
            look(inside, f"{where}.{name}")
        if isinstance(part.get("items"), dict):
            look(part["items"], f"{where}[]")

    look(SCHEMA, "$")
    for name, part in SCHEMA["$defs"].items():
        assert part.get("description"), name
        look(part, name)
    columns = eh.audit(KINDS["everything"][0](), missing="fill").to_dict()
    for key in ("groups", "extras", "arms", "drift", "changes", "missing"):
        known = SCHEMA["properties"][key]["items"]["properties"]
        assert {name for row in columns[key] or () for name in row} <= set(known), key
    for key in ("bias", "totals", "gaps", "weightings"):
        known = SCHEMA["$defs"]["bias_report"]["properties"][key]["items"]["properties"]
        assert set(columns["bias"][key][0]) <= set(known), key


def test_whoever_gets_the_schema_may_change_it():
    eh.audit.Audit.schema()["properties"].clear()
    assert eh.audit.Audit.schema() == SCHEMA
