"""Configurations: refusals name the file, the line and the key; --init writes valid ones."""

from __future__ import annotations

import re
import sys
import textwrap

import pandas as pd
import pytest

import evenhand as eh
from commands import evenhand
from evenhand.service.config import load
from serving import BY_ARM, GIVEN, write_config

BASE = """
    wait = "30 days"
    [features.income]
    low = 0
    high = 500
    [features.job]
    type = "category"
    values = ["none", "full"]
    [features.owner]
    type = "yes-no"
    [arms]
    a = "F"
    b = "M"
    [groups]
    sensitive = "F"
"""


def written(folder, text):
    path = folder / "loans.toml"
    path.write_text(textwrap.dedent(text).lstrip(), encoding="utf-8")
    return path


def test_categories_and_yes_no_become_columns(tmp_path):
    encoder = load(written(tmp_path, BASE)).encoder()
    assert encoder.columns == ("intercept", "income", "job=full", "owner")
    rows = encoder.rows([{"income": 3, "job": "full", "owner": True}, [4.0, "none", 0]])
    assert rows.tolist() == [[1, 3, 1, 1], [1, 4, 0, 0]]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"30 days"', '"soon"', "line 1: wait is 'soon'"),
        ("low = 0", "lowest = 0", "line 3: features.income.lowest is unknown"),
        ("low = 0", 'low = "x"', "line 3: features.income.low is 'x'; allowed is a number"),
        ("high = 500", "high = -1", "features.income.low is 0; allowed is a number below high"),
        ('values = ["none", "full"]', "", "features.job is a category"),
        ('type = "yes-no"', 'type = "maybe"', "line 9: features.owner.type is 'maybe'"),
        ('sensitive = "F"', 'sensitive = "X"', "line 14: groups.sensitive is 'X'"),
        ('b = "M"', "b = 3", "line 12: arms.b has no group"),
        ('b = "M"', 'b = "F"', "arms : groups are F alone"),
        ("[groups]", "[policy]\nname = 'Nobody'\n[groups]", "policy.name has 'Nobody'"),
        ("[groups]", "[policy]\nnoise = -1\n[groups]", "policy.noise"),
        ("[groups]", "[server]\nport = 99999\n[groups]", "server.port is 99999"),
        ("wait =", 'store = "oracle"\nwait =', "line 1: store is unknown"),
        ("wait =", 'learn = "never"\nwait =', "line 1: learn is 'never'"),
        ("wait =", "wait = = 3 #", "line 1"),
    ],
)
def test_errors_name_the_line_and_the_key(tmp_path, old, new, says):
    path = written(tmp_path, textwrap.dedent(BASE).lstrip().replace(old, new, 1))
    with pytest.raises(ValueError) as caught:
        load(path)
    message = re.sub(r" : ", " : ", str(caught.value))
    assert message.startswith("loans.toml") and says.replace("arms :", "arms:") in message, message


def test_arms_may_have_several_attributes(tmp_path):
    text = BASE.replace('sensitive = "F"', "")
    for sex in ("F", "M"):
        text = text.replace(f'"{sex}"', f'{{ sex = "{sex}", age = "old" }}')
    path = written(tmp_path, text)
    assert [a.levels for a in load(path).groups.attributes] == [("F", "M"), ("old",)]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("arms = [", "arm = [", "arm is unknown"),
        ('"m2"]', '"m1"]', "line 9: arms has a name twice"),
        ("arms = [", "# [", "arms has groups, but groups.given"),
        ("with each", "by", "groups.given is 'by candidate'"),
        ('with each candidate"', 'by arm"', "arms is a list"),
        ('["F", "M"]', '["F"]', "sex has levels"),
        ('["F", "M"]', '["F", "by probability"]', "which is reserved"),
        ('["F", "M"]', '["F", 1]', "allowed is a list of strings"),
        ('given =', 'sensitive = "F"\ngiven =', "groups.sensitive is for given = 'by arm'"),
        ('sex = ["F", "M"]', "", "groups.attributes is missing"),
        ('seed = 7', 'reference = "X"', "allowed are levels of sex"),
        ("PooledGroupFair", "NaiveFair", "compares arms by the group"),
        ('sex = ["F", "M"]', f"sex = {[str(k) for k in range(300)]}", "has 301 intersections"),
    ],
)  # fmt: skip
def test_groups_of_candidates_are_checked(tmp_path, old, new, says):
    config = write_config(tmp_path, **GIVEN)
    assert load(config).groups == eh.Groups.per_round(4, {"sex": ["F", "M"]})
    config.write_text(config.read_text().replace(old, new, 1))
    with pytest.raises(ValueError, match=says):
        load(config)


@pytest.mark.slow
def test_a_configuration_from_a_table_is_valid(tmp_path):
    table = tmp_path / "past.csv"
    pd.DataFrame(
        {
            "sex": ["F", "M"] * 10,
            "branch": ["north", "south"] * 10,
            "income": [30.5, 40.25] * 10,
            "children": range(20),
            "job": ["none", "full"] * 10,
            "owner": [0, 1] * 10,
            "name": [f"person {k}" for k in range(20)],
            "same": [1] * 10 + [1] * 10,
            "paid": [1, 0] * 10,
        }
    ).to_csv(table, index=False)
    config = tmp_path / "loans.toml"
    result = evenhand(
        "serve", "--init", table, config, "--group", "sex", "--arm", "branch", "--reward", "paid"
    )
    assert result.returncode == 0, result.stderr
    loaded = load(config)
    assert [f.name for f in loaded.features] == ["income", "children", "job", "owner", "same"]
    assert loaded.arms == ("north", "south") and loaded.groups.labels == ("F", "M")
    words = ("--group", "sex,job", "--arm", "branch", "--reward", "paid")
    for more, name in (((), "several.toml"), (("--given",), "given.toml")):
        result = evenhand("serve", "--init", table, tmp_path / name, *words, *more)
        assert result.returncode == 0, result.stderr
        loaded = load(tmp_path / name)
        assert [f.name for f in loaded.features] == ["income", "children", "owner", "same"]
        assert [attribute.name for attribute in loaded.groups.attributes] == ["sex", "job"]
        assert loaded.groups.changes == bool(more) and loaded.arms == ("north", "south")
    missing = evenhand("serve", "--init", table, tmp_path / "other.toml")
    assert missing.returncode == 2 and "--group is missing" in missing.stderr


@pytest.mark.slow
def test_a_table_is_read_as_its_owner_wrote_it(tmp_path):
    """With umlauts of Windows, decimal commas, a mark for missing values, and codes such as 01."""
    rows = ["Geschlecht;Größe;Filiale;Raten;Antwort"]
    rows += [f"{'mw'[i % 2]};{i},5;0{i % 3};{'?' if i == 4 else i};{i % 2}" for i in range(30)]
    table = tmp_path / "past.csv"
    table.write_bytes("\n".join(rows).encode("windows-1252"))
    words = ["--group", "Geschlecht", "--arm", "Filiale", "--reward", "Antwort"]
    reading = ["--encoding", "windows-1252", "--decimal", ","]
    config = tmp_path / "loans.toml"
    result = evenhand("serve", "--init", table, config, *words, *reading)
    assert result.returncode == 0, result.stderr
    loaded = load(config)
    assert [f.name for f in loaded.features] == ["Größe", "Raten"]
    assert (loaded.features[0].low, loaded.features[0].high) == (0.5, 29.5)
    assert "# missing in 1 row; callers must give it" in config.read_text(encoding="utf-8")
    assert {arm.rpartition("-")[2] for arm in loaded.arms} == {"00", "01", "02"}
    undecoded = evenhand("serve", "--init", table, tmp_path / "other.toml", *words)
    assert undecoded.returncode == 2 and "--encoding" in undecoded.stderr
    aimless = evenhand("serve", config, *reading)
    assert aimless.returncode == 2 and "--encoding is for --init" in aimless.stderr


@pytest.mark.slow
def test_a_ledger_of_other_features_or_arms_is_refused(tmp_path):
    config = write_config(tmp_path)
    result = evenhand("serve", config, "--key", "x=read", "--key", "y=decide,reward")
    assert result.returncode == 0, result.stderr
    assert [line.split(": ")[0] for line in result.stdout.splitlines()] == ["x", "y"]
    text = config.read_text()
    for old, new, says in (
        ("[features.age]", "[features.years]", "features are"),
        ('m2 = "M"', 'm2 = "M"\nm3 = "M"', "add it with POST /v1/arms"),
        ("PooledGroupFair", "TopInterval", "policy is TopInterval"),
        (BY_ARM, GIVEN["groups"], "groups are not those"),
    ):
        more = GIVEN["more"] if old is BY_ARM else ""
        config.write_text(f"{more}\n{text.replace(old, new)}")
        told = evenhand("serve", config)
        assert told.returncode == 2 and says in told.stderr, told.stderr


@pytest.mark.slow
def test_without_the_extra_one_line_says_what_to_install(tmp_path):
    code = (
        "import sys; sys.modules['msgspec'] = None\n"
        "import evenhand\n"
        "from evenhand.cli import main\n"
        "sys.exit(main(['serve', '--demo']))"
    )
    import subprocess

    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert result.stderr == (
        "evenhand: the service needs more packages: pip install 'evenhand[serve]'\n"
    )
    lazy = "import sys, evenhand; sys.exit('evenhand.service' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", lazy], check=False).returncode == 0


def test_a_bucket_gives_as_many_as_allowed(monkeypatch):
    from evenhand.service import _rate_limit

    clock = [0.0]
    monkeypatch.setattr(_rate_limit.time, "monotonic", lambda: clock[0])
    bucket = _rate_limit.Bucket(rate=2.0, burst=3.0)
    assert [bucket.take("a") for _ in range(5)] == [True, True, True, False, False]
    assert bucket.take("b")  # others have their own
    clock[0] = 1.0
    assert [bucket.take("a") for _ in range(3)] == [True, True, False]
