"""Saved policies: versioned, whole or not at all, and clear about what is wrong."""

import json
import os
import stat
from fractions import Fraction

import numpy as np
import pytest

import evenhand as eh
from evenhand.leastsquares._layout import BASIS
from evenhand.leastsquares._saved import saved_tail
from evenhand.policies.saving import from_dict, to_dict
from saved_policies import VERSION_1, resealed


@pytest.fixture
def policy():
    groups = eh.Groups(["F", "F", "M", "M"], sensitive="F")
    policy = eh.GroupFairTopInterval(groups, n_features=3, horizon=50, noise="estimate", seed=2)
    generator = np.random.default_rng(0)
    for _ in range(25):
        decision = policy.select(generator.random((4, 3)))
        policy.update(decision, generator.standard_normal())
    return policy


def test_file_round_trip_decides_alike(policy, tmp_path):
    policy.save(tmp_path / "loans.json")
    again = eh.load(tmp_path / "loans.json")
    assert type(again) is type(policy) and again.settings() == policy.settings()
    generator = np.random.default_rng(1)
    for _ in range(30):
        contexts = generator.random((4, 3))
        first, second = policy.select(contexts), again.select(contexts)
        assert (first.arm, first.propensity, first.explored) == (
            second.arm,
            second.propensity,
            second.explored,
        )
        np.testing.assert_array_equal(first.scores.table, second.scores.table)
        policy.update(first, 0.5)
        again.update(second, 0.5)


def test_a_truncated_file_is_told_at_every_byte(policy, tmp_path):
    path = tmp_path / "loans.json"
    policy.save(path)
    whole = path.read_bytes()
    for end in range(0, len(whole), max(1, len(whole) // 60)):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match="not a saved policy"):
            eh.load(path)


def test_saving_replaces_the_file_at_once(policy, tmp_path):
    path = tmp_path / "loans.json"
    policy.save(path)
    policy.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["loans.json"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "cookies"}, "not a saved policy"),
        ({"version": 99}, "version is 99"),
        ({"policy": "Nobody"}, "import the module"),
        ({"arms": [[[1.0]]]}, "damaged"),
        ({"settings": {}}, "damaged"),
    ],
)
def test_damage_is_named(policy, tmp_path, change, words):
    path = tmp_path / "loans.json"
    policy.save(path)
    path.write_text(json.dumps(resealed({**json.loads(path.read_text()), **change})))
    with pytest.raises(ValueError, match=words):
        eh.load(path)


def test_a_function_cannot_be_saved(tmp_path):
    policy = eh.TopInterval(["F", "M"], n_features=1, horizon=5, exploration=lambda t: 1 / t)
    with pytest.raises(ValueError, match="give its values as a list"):
        policy.save(tmp_path / "p.json")
    assert not list(tmp_path.iterdir())


class Own(eh.Policy):
    """A policy in plain Python with a setting that may be anything."""

    def __init__(self, groups, n_features, horizon=None, delta=0.1, *, part=0.5, **common):
        super().__init__(groups, n_features, horizon, delta, **common)
        self.part = part

    def score(self, contexts):
        estimate, width = self.intervals(contexts)
        return estimate + width


@pytest.mark.parametrize(
    ("given", "back"),
    [
        (np.float32(0.1), float(np.float32(0.1))),
        (np.float16(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (Fraction(1, 4), 0.25),
        ((np.float32(0.1), np.int8(2)), [float(np.float32(0.1)), 2]),
        ([np.array([1.5, 2.5]), {"a": np.uint8(7)}], [[1.5, 2.5], {"a": 7}]),
    ],
)
def test_numpy_numbers_in_settings_come_back(tmp_path, given, back):
    path = tmp_path / "own.json"
    policy = Own(["F", "M"], n_features=1, seed=1, part=given)
    policy.round = np.int64(4)
    policy.save(path)
    again = eh.load(path)
    assert again.part == back and type(again.part) is type(back)
    assert again.round == 4 and to_dict(again) == to_dict(policy)


@pytest.mark.parametrize("given", [np.inf, np.nan, object(), {1, 2}, {(1, 2): 3}, 1j, b"x"])
def test_a_setting_that_json_cannot_hold_is_told(tmp_path, given):
    policy = Own(["F", "M"], n_features=1, seed=1, part=given)
    with pytest.raises(ValueError, match=r"^part is .*, which cannot be saved") as caught:
        policy.save(tmp_path / "own.json")
    assert "\n" not in str(caught.value) and not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077, 0o002])
def test_who_may_read_a_saved_file_is_as_with_open(policy, tmp_path, umask):
    before = os.umask(umask)
    try:
        policy.save(tmp_path / "loans.json")
        (tmp_path / "opened").write_text("")
        modes = [stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()]
        assert modes == [0o666 & ~umask] * 2
        (tmp_path / "loans.json").chmod(0o640)
        policy.save(tmp_path / "loans.json")  # one that is there stays as it was
        assert stat.S_IMODE((tmp_path / "loans.json").stat().st_mode) == 0o640
    finally:
        os.umask(before)


def test_a_link_goes_on_to_point_at_the_saved_file(policy, tmp_path):
    (tmp_path / "now.json").symlink_to(tmp_path / "monday.json")
    policy.save(tmp_path / "now.json")
    assert (tmp_path / "now.json").is_symlink()
    assert to_dict(eh.load(tmp_path / "monday.json")) == to_dict(policy)


def test_a_long_name_can_be_saved(policy, tmp_path):
    path = tmp_path / ("x" * 250 + ".json")
    policy.save(path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("round", [-5, 2**63, 1.5, "a"])
def test_an_impossible_round_is_told(policy, tmp_path, round):
    path = tmp_path / "loans.json"
    policy.save(path)
    path.write_text(json.dumps(resealed({**json.loads(path.read_text()), "round": round})))
    with pytest.raises(ValueError, match="round is"):
        eh.load(path)


@pytest.mark.parametrize("rank", [-50.0, 1e8, 0.5])
def test_an_impossible_rank_is_told_and_not_used(policy, tmp_path, rank):
    path = tmp_path / "loans.json"
    policy.save(path)
    saved = json.loads(path.read_text())
    saved["arms"][0][3 * 4 // 2 + 2 * 3 + 3][0] = rank
    path.write_text(json.dumps(resealed(saved)))
    with pytest.raises(ValueError, match="rank"):
        eh.load(path)


def test_fewer_labels_than_arms_with_data_is_told(policy, tmp_path):
    path = tmp_path / "loans.json"
    policy.save(path)
    saved = json.loads(path.read_text())
    saved["settings"]["groups"]["labels"] = ["F", "M"]
    path.write_text(json.dumps(resealed(saved)))
    with pytest.raises(ValueError, match="damaged"), pytest.warns(UserWarning):
        eh.load(path)


def test_saving_where_nothing_can_be_is_told(policy, tmp_path):
    for path in (tmp_path / "missing" / "p.json", tmp_path):
        with pytest.raises(ValueError, match="a file in a folder that exists"):
            policy.save(path)


def test_version_1_keeps_loading(tmp_path):
    path = tmp_path / "old.json"
    path.write_text(json.dumps(VERSION_1))
    policy = eh.load(path)
    assert policy.round == 3 and policy.counts.tolist() == [4, 0]
    estimate, width = policy.intervals(np.ones((2, 1)))
    assert estimate.tolist() == [3.0, 0.0] and np.isinf(width[1])


def test_a_file_of_version_1_is_saved_as_the_newest(tmp_path):
    policy = from_dict(VERSION_1)
    policy.save(tmp_path / "new.json")
    saved = json.loads((tmp_path / "new.json").read_text())
    assert saved["version"] == 3 and len(saved["sha256"]) == 64
    same = {key: value for key, value in VERSION_1.items() if key not in ("version", "arms")}
    assert {key: saved[key] for key in same} == same
    # The last direction of a regression of full rank says nothing, and is not kept.
    tail = saved_tail(policy._state.arms) + BASIS
    assert (
        np.array(saved["arms"])[:, :tail].tolist() == np.array(VERSION_1["arms"])[:, :tail].tolist()
    )
    assert to_dict(eh.load(tmp_path / "new.json")) == to_dict(policy)


def test_the_checksum_is_what_the_documentation_says(policy):
    import hashlib
    import struct

    saved = to_dict(policy)
    head = {key: saved[key] for key in ("format", "policy", "round", "settings", "version")}
    numbers = [x for key in ("arms", "groups") for x in np.ravel(saved[key])]
    text = json.dumps(head, sort_keys=True).encode() + struct.pack(f"<{len(numbers)}d", *numbers)
    assert saved["sha256"] == hashlib.sha256(text).hexdigest()
