"""TOML files whose errors name the line, whatever stands around the key."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand import _checks
from evenhand._toml import Kind, TomlFile, line_of
from evenhand.errors import InputError

TEXT = Kind("text", lambda value: isinstance(value, str))
LOANS = """seed = 7

[data]
group = "sex"
features = [
    "age",  # in years
    "debt",
]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "loans.toml"
    path.write_text(LOANS, encoding="utf-8")
    return TomlFile(path, above=["seed"])


def refusal(function, *values):
    with pytest.raises(InputError) as caught:
        function(*values)
    return str(caught.value)


def test_a_table_is_what_the_file_has(file):
    kinds = {"group": TEXT, "features": Kind("a list", lambda value: isinstance(value, list))}
    assert file.table("data", kinds) == {"group": "sex", "features": ["age", "debt"]}
    assert file.table("absent", kinds) == {}


def test_a_wrong_value_is_shown_with_what_is_allowed(file):
    assert refusal(file.table, "data", {"group": TEXT, "features": TEXT}) == (
        "loans.toml, line 5: data.features is ['age', 'debt']; allowed is text"
    )


def test_an_unknown_key_gets_a_suggestion(file):
    assert refusal(file.table, "data", {"groups": TEXT, "reward": TEXT}) == (
        "loans.toml, line 4: data.group is unknown; did you mean 'groups'? allowed are groups, "
        "reward"
    )


def test_an_unknown_name_in_a_long_value_has_its_own_line(file):
    problem = refusal(file.known, "data.features", "debt", ["age", "income"], " as a column")
    assert problem == (
        "loans.toml, line 7: data.features has 'debt' as a column, which is unknown; allowed are "
        "age, income"
    )


def test_a_key_that_belongs_above_the_first_table_is_sent_there(tmp_path):
    path = tmp_path / "loans.toml"
    path.write_text("[data]\nseed = 7\n", encoding="utf-8")
    problem = refusal(TomlFile(path, above=["seed"]).table, "data", {"group": TEXT})
    assert problem.startswith("loans.toml, line 2: data.seed is unknown; it belongs above")


def test_an_error_about_a_value_gets_its_line(file):
    assert file.check("seed", _checks.whole, 7) == 7
    assert refusal(file.check, "data.group", _checks.whole, "sex") == (
        "loans.toml, line 4: data.group is 'sex'; allowed is a whole number of at least 1"
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"seed = \xff", "is not text in UTF-8"), (b"seed = ", "loans.toml: ")],
)
def test_what_is_no_toml_is_refused_by_the_name_of_the_file(tmp_path, content, problem):
    path = tmp_path / "loans.toml"
    path.write_bytes(content)
    assert problem in refusal(TomlFile, path, [])


# The lines of keys --------------------------------------------------------------------------------

BARE = st.from_regex(r"[A-Za-z0-9_-]{1,6}", fullmatch=True)
NAMES = st.one_of(BARE, st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=6))
TRAPS = st.sampled_from(["seed = 1", "[data]", "# x", '"""', "a.b = [", "}", "]", "'", "=", "\\"])


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


VALUES_IN_LINES = st.one_of(
    st.integers(-5, 5).map(str),
    st.booleans().map(lambda value: str(value).lower()),
    st.lists(TRAPS, max_size=3).map(lambda parts: quoted(" ".join(parts))),
    st.lists(TRAPS, max_size=4).map(
        lambda parts: (
            "[  # many\n" + "".join(f"    {quoted(part)},  # [x]\n" for part in parts) + "]"
        )
    ),
    st.lists(TRAPS, max_size=4).map(
        lambda parts: "'''\n" + "\n".join(part.replace("'", "") for part in parts) + "\n'''"
    ),
    st.lists(BARE, max_size=2, unique=True).map(
        lambda names: "{ " + ", ".join(f"{name} = 1" for name in names) + " }"
    ),
)
FILLING = st.lists(st.sampled_from(["", "   ", "# a = 1", "# [table]"]), max_size=2)
SECTIONS = st.dictionaries(
    NAMES, st.dictionaries(NAMES, st.tuples(VALUES_IN_LINES, FILLING), max_size=4), max_size=3
)


@pytest.mark.slow
@settings(max_examples=150)
@given(top=st.dictionaries(NAMES, st.tuples(VALUES_IN_LINES, FILLING), max_size=3), rest=SECTIONS)
def test_the_line_of_every_key(top, rest):
    lines, where = [], {}
    for table, content in [("", top), *rest.items()]:
        if table and table not in top:
            lines.append(f"[{quoted(table)}]  # [other]")
            where[table] = len(lines)
        elif table:
            continue
        for name, (value, filling) in content.items():
            lines += filling
            where[f"{table}.{name}" if table else name] = len(lines) + 1
            lines += f"{quoted(name)} = {value}".split("\n")
    text = "\n".join(lines)
    known = tomllib.loads(text)
    for key, line in where.items():
        if sum(written == key or key.startswith(f"{written}.") for written in where) > 2:
            continue  # "a.b" is a key of its own beside b of [a]: either may be meant
        if key in known or "." not in key or key.split(".")[0] not in top:
            assert line_of(text, key) == line, (key, text)
    for table in rest:
        if table in where and f"{table}.absent" not in where:
            assert line_of(text, f"{table}.absent") == where[table]
    assert line_of(text, "nowhere at all") == 0


def test_the_line_of_a_table_in_a_list():
    text = (
        'seed = 1\n[[policies]]\npolicy = "A"\n[[policies]]\npolicy = "B"\n[under.X.run]\nb = 1\n'
    )
    assert line_of(text, "policies") == 2
    assert line_of(text, "under.X") == line_of(text, "under.X.world") == 6
    assert line_of(text, "under.X.run.b") == 7
