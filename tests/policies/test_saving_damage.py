"""Saved policies that were damaged or crafted: told in one line, or the same policy."""

import copy
import json
import random
import warnings

import numpy as np
import pytest

import evenhand as eh
from evenhand.policies.saving import _parse, from_dict, to_dict
from saved_policies import VERSION_1, resealed

pytestmark = pytest.mark.filterwarnings("ignore:group . has a single arm")


def small():
    groups = eh.Groups(["F", "M", "M"], sensitive="F")
    policy = eh.GroupFairTopInterval(groups, n_features=1, horizon=9, noise="estimate", seed=2)
    policy.absorb([0, 1, 2, 1], [[1.0], [0.5], [2.0], [0.25]], [1.0, 3.5, -0.125, 2.0])
    return policy


@pytest.fixture(scope="module")
def saved():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return to_dict(small())


def told(path, content):
    """The state that loads, or None for an error that is one line and names the file."""
    path.write_bytes(content)
    try:
        return to_dict(eh.load(path))
    except ValueError as error:
        assert str(path) in str(error) and "\n" not in str(error) and len(str(error)) < 1000
        return None


def test_every_byte_counts():
    """Any byte with a bit flipped, or a digit in its place: told, or the same policy."""
    policy = eh.TopInterval(["F", "M"], n_features=1, horizon=9, exploration="none", seed=2)
    policy.absorb([0, 1, 1], [[1.0], [0.5], [0.25]], [1.0, 3.5, 2.0])
    saved = to_dict(policy)
    whole, same = json.dumps(saved).encode(), 0
    for place, byte in enumerate(whole):
        for other in {byte ^ 1 << bit for bit in range(8)} | set(b"0123456789") - {byte}:
            damaged = whole[:place] + bytes([other]) + whole[place + 1 :]
            try:
                state = to_dict(from_dict(_parse(damaged)))
            except ValueError:
                continue
            assert state == saved, f"byte {place} became {bytes([other])}"
            same += 1
    assert same < 0.01 * 18 * len(whole)  # a zero that is written in another way


def test_a_version_without_a_checksum_does_not_get_around_it(saved):
    changed = {**saved, "round": 5}
    with pytest.raises(ValueError, match="checksum is wrong"):
        from_dict(changed)
    with pytest.raises(ValueError, match="checksum is wrong"):
        from_dict({**saved, "sha256": None})
    with pytest.raises(ValueError, match=r"version 1 has .*; look at own, sha256"):
        from_dict({**changed, "version": 1})
    del changed["sha256"]
    with pytest.raises(ValueError, match=r"version 3 has .*; look at sha256"):
        from_dict(changed)
    del changed["own"]
    assert from_dict({**changed, "version": 1}).round == 5  # as files of old


def put(saved, *keys, value):
    changed = copy.deepcopy(saved)
    place = changed
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    return resealed(changed)


@pytest.mark.parametrize(
    ("keys", "value", "words"),
    [
        (("settings", "n_features"), 10**9, "n_features is 1000000000 with 3 arms; allowed"),
        (("settings", "n_features"), 10**400, "n_features is a whole number of about 400 digits"),
        (("settings", "horizon"), 10**400, "horizon is a whole number of about"),
        (("settings", "delta"), 10**400, "delta is a whole number of about"),
        (("settings", "noise"), "1", "noise is '1'"),
        (("settings", "exploration"), [10**400], "exploration is a whole number of about"),
        (("settings", "groups"), ["F", "M"], "damaged"),
        (("settings", "groups", "labels"), ["F", 1, 2], "labels that are not text"),
        (("settings", "groups", "sensitive"), ["F"], "labels that are not text"),
        (("settings", "groups", "labels"), ["a\nb", "M", "M"], "a group without arms"),
        (("settings", "conventions"), ["PAPER"], "damaged"),
        (("settings", "colour"), "red", "colour"),
        (("settings",), [], "damaged"),
        (("policy",), ["GroupFairTopInterval"], "damaged"),
        (("policy",), None, "policy is None"),
        (("version",), True, "version is True"),
        (("version",), 1e300, "version is 1e"),
        (("round",), 10**400, "round is a whole number of about"),
        (("round",), [], r"round is \[\]"),
        (("arms",), None, "not a finite number"),
        (("arms",), [[[1.0], [1.0, 2.0]]], "different lengths"),
        (("arms", 0, 0, 0), "1.0", "not a finite number"),
        (("arms", 0, 0, 0), 10**400, "not a finite number"),
        (("arms", 0, 0, 0), {}, "not a finite number"),
        (("groups",), [], "a table has shape"),
    ],
)
def test_crafted_data_are_told(saved, tmp_path, keys, value, words):
    path = tmp_path / "p.json"
    path.write_text(json.dumps(put(saved, *keys, value=value)))
    with pytest.raises(ValueError, match=words) as caught:
        eh.load(path)
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 200_000, "nested too deeply"),
        ('{"a":' * 200_000, "nested too deeply"),
        ('{"round": ' + "9" * 100_000 + "}", "too many digits"),
        ('{"round": NaN}', "it has NaN"),
        ('{"round": -Infinity}', "it has -Infinity"),
        ("", "not a saved policy"),
        ("\x00" * 1000, "not a saved policy"),
        ("null", "its format is not"),
        ("[]", "its format is not"),
    ],
)
def test_text_that_is_no_policy_is_told(tmp_path, text, words):
    assert told(tmp_path / "p.json", text.encode()) is None
    with pytest.raises(ValueError, match=words):
        eh.load(tmp_path / "p.json")


def test_numbers_beyond_doubles_are_told(saved, tmp_path):
    text = json.dumps(saved)
    for number in ("1e400", "-1e400", "1" * 400):
        crafted = text.replace("[[[", f"[[[{number}, ", 1).encode()
        assert told(tmp_path / "p.json", crafted) is None
        assert told(tmp_path / "p.json", text.replace("0.1,", f"{number},").encode()) is None


def leaves(data, keys=()):
    """Where all the values in plain data are."""
    inside = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in inside:
        yield (*keys, key)
        if isinstance(value, (dict, list)):
            yield from leaves(value, (*keys, key))


STRANGE = [None, True, -1, 0, 1, 2**63, 2**64, 10**400, 0.5, -0.0, 5e-324, 1e308, "", "1", "F"]
STRANGE += [[], [1], [[1.0]], {}, {"a": 1}, [None], ["F", "M"], "\ud800", "a\nb"]


@pytest.mark.parametrize("version", [1, 3])
def test_anything_anywhere_loads_or_is_told(saved, version):
    """Crafted policies, whose checksum is right: a ValueError, or one that saves and decides."""
    draw = random.Random(version)
    start = saved if version == 3 else {**saved, "version": 1}
    if version == 1:
        start.pop("sha256")
        start.pop("own")
    places, loaded = list(leaves(start)), 0
    for _ in range(400):
        changed = put(start, *draw.choice(places), value=draw.choice(STRANGE))
        if version == 1:
            changed.pop("sha256", None)
        try:
            policy = from_dict(changed)
        except ValueError:
            continue
        loaded += 1
        assert to_dict(from_dict(to_dict(policy))) == to_dict(policy)
        contexts = np.ones((policy.n_arms, policy.n_features))
        assert 0 <= policy.select(contexts).arm < policy.n_arms
    assert loaded > 20  # it is not all refused


def test_version_1_has_just_its_keys():
    with pytest.raises(ValueError, match="look at colour"):
        from_dict({**VERSION_1, "colour": "red"})
    with pytest.raises(ValueError, match="look at round"):
        from_dict({key: value for key, value in VERSION_1.items() if key != "round"})
