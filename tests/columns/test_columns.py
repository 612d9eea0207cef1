"""Tables as users have them: files and frames of all kinds, buckets, features, missing values."""

from __future__ import annotations

import datetime
import gzip
import sys
import zipfile
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand as eh
from evenhand._columns.buckets import bucketed, plain
from evenhand._columns.features import Encoding, encode
from evenhand._columns.missing import filled
from evenhand._columns.table_files import read_table

pytestmark = pytest.mark.filterwarnings("ignore:arms. fewer than 30 rows")

N = 40
TABLE = pd.DataFrame(
    {
        "sex": ["F", "M"] * (N // 2),
        "age": np.arange(N) // 2 + 18,
        "debt": np.linspace(0.5, 9.0, N),
        "job": ["cook", "nurse", "judge", "cook"] * (N // 4),
        "paid": np.arange(N) % 7 + 0.25,
    }
)
CSV = TABLE.to_csv(index=False)


def world(table=None, **changes):
    """With codes, so that a column is a feature; what categories become has tests of its own."""
    roles = {"group": "sex", "sensitive": "F", "arms": {"age": 2}, "reward": "paid"}
    roles["nominal"] = "codes"
    return eh.TableWorld(TABLE if table is None else table, **{**roles, **changes})


def contexts(made):
    return made.begin(np.random.default_rng(1)).contexts


def refused(words, table=None, **changes):
    with pytest.raises(ValueError, match=words) as caught:
        world(table, **changes)
    text = str(caught.value)
    assert "\n" not in text and ("; " in text or ": " in text)


def written(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# Files


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plain.csv", CSV),
        ("upper.CSV", CSV),
        ("mark.csv", b"\xef\xbb\xbf" + CSV.encode()),
        ("quoted mark.csv", b'\xef\xbb\xbf"sex"' + CSV.encode()[3:]),
        ("windows.csv", CSV.replace("\n", "\r\n")),
        ("mac.csv", CSV.replace("\n", "\r")),
        ("blank lines.csv", "\n\n" + CSV.replace("\n", "\n\n", 3)),
        ("semicolons.csv", CSV.replace(",", ";")),
        ("tabs.tsv", CSV.replace(",", "\t")),
        ("bars.txt", CSV.replace(",", "|")),
        ("ends.csv", CSV.replace("\n", ",\n")[:-1]),
        ("small.csv.gz", gzip.compress(CSV.encode())),
    ],
)
def test_csv_files_of_all_kinds(name, content, tmp_path):
    made = world(written(tmp_path / name, content), leave_out=[], features=["debt", "job"])
    assert made.fingerprint() == world().fingerprint()


def test_zip_files(tmp_path):
    for name, inside in {
        "one.csv.zip": ["people.csv"],
        "mac.zip": ["people.csv", "__MACOSX/._people.csv"],
        "two.csv.zip": ["people.csv", "more.csv"],
        "none.csv.zip": [],
    }.items():
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for member in inside:
                archive.writestr(member, CSV)
    assert world(tmp_path / "one.csv.zip").fingerprint() == world().fingerprint()
    assert world(str(tmp_path / "mac.zip")).fingerprint() == world().fingerprint()
    refused(
        "two.csv.zip holds 2 files; give one that holds a single table", tmp_path / "two.csv.zip"
    )
    refused("none.csv.zip holds 0 files", tmp_path / "none.csv.zip")


@pytest.mark.parametrize(
    "name",
    [
        "debt, in euros",
        "debt; in euros",
        'the "debt"',
        "two\nlines",
        "Größe",
        " debt ",
        "a;b;c;d;e;f;g;h",
        "a|b",
    ],
)
def test_names_of_columns_that_are_awkward(name, tmp_path):
    table = TABLE.rename(columns={"debt": name})
    for mark in (",", ";"):
        table.to_csv(tmp_path / "odd.csv", index=False, sep=mark)
        made = world(tmp_path / "odd.csv")
        assert made.feature_names == (name.strip(), "job")
        np.testing.assert_array_equal(contexts(made), contexts(world()))


def test_parquet_and_frames_of_other_libraries(tmp_path):
    TABLE.to_parquet(tmp_path / "people.parquet")
    arrow = pa.Table.from_pandas(TABLE)

    class Stream:
        def __arrow_c_stream__(self, schema=None):
            return arrow.__arrow_c_stream__(schema)

    class Other:
        def to_pandas(self):
            return TABLE

    for data in (
        tmp_path / "people.parquet",
        arrow,
        arrow.to_batches()[0],
        Stream(),
        Other(),
        {name: list(column) for name, column in TABLE.items()},
    ):
        assert world(data).fingerprint() == world().fingerprint()
    few = world(tmp_path / "people.parquet", features=["debt"], leave_out=["job"])
    assert few.feature_names == ("debt",)
    dictionary = arrow.set_column(3, "job", arrow["job"].dictionary_encode())
    assert world(dictionary).fingerprint() == world().fingerprint()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.csv", "", "empty.csv is empty; give a file with a line of column names"),
        ("blank.csv", "\n\n", "blank.csv is empty"),
        ("header.csv", "sex,age,debt,job,paid\n", "data has no rows"),
        ("latin.csv", CSV.replace("cook", "é").encode("latin-1"), "not utf-8; say what it is"),
        ("wide.csv", CSV.encode("utf-16"), "UTF-16, not UTF-8; say so, encoding"),
        ("long.csv", CSV + "F,20,1,cook,3,9\n", "6 values in line 42, and 5 column names"),
        ("longer.csv", CSV.replace("0.5,", "0,5,", 1), "5 column names, but 6 values in row 2"),
        ("short.csv", CSV + "F,20\n", r"in 1 of 41 rows \(paid 1.*, the first in row 42 of"),
        (
            "open.csv",
            CSV.replace("cook", '"cook', 1),
            "has a quote in line .* never closed",
        ),
        ("bad.csv.gz", "no", "bad.csv.gz is not a gzip file"),
        ("cut.csv.gz", gzip.compress(CSV.encode(), mtime=0)[:60], "cut.csv.gz is not a gzip file"),
        ("bad.csv.zip", "no", "bad.csv.zip is not a ZIP archive"),
        ("bad.parquet", "no", "bad.parquet is not a Parquet file, or is incomplete"),
        ("people.xlsx", "no", "is not an Excel file, or is incomplete"),
        ("people.doc", "no", "allowed are files that end in .parquet"),
        ("none.csv", None, "but there is no such file"),
    ],
)
def test_files_that_are_broken(name, content, words, tmp_path):
    if content is not None:
        written(tmp_path / name, content)
    refused(words, tmp_path / name)


def test_repeated_and_nameless_columns_are_told_of(tmp_path):
    repeated = written(tmp_path / "r.csv", CSV.replace("debt", "age", 1))
    said = "r.csv: column 'age' occurs more than once, and column 3 is called 'age_1' here"
    with pytest.warns(UserWarning, match=said):
        made = world(repeated)
    assert made.feature_names == ("age_1", "job")
    assert made.arms["age"].unique().tolist() == world().arms["age"].unique().tolist()
    TABLE.to_csv(tmp_path / "i.csv")
    with pytest.warns(UserWarning, match="i.csv: column 1 has no name and is left out") as told:
        assert world(tmp_path / "i.csv").feature_names == ("debt", "job")
    assert told[0].filename == __file__
    assert world(tmp_path / "i.csv", features=["debt"]).feature_names == ("debt",)  # no warning
    twice = pd.concat([TABLE, TABLE[["debt"]]], axis=1)
    refused("column 'debt' is in the table more than once", twice)
    assert world(twice, features=["job"]).feature_names == ("job",)


def test_rows_of_a_csv_file_are_numbered_as_in_a_spreadsheet(tmp_path):
    lines = CSV.splitlines()
    lines[6] += "oops"
    refused(
        "reward is 'paid', .*oops' .*first row 7", written(tmp_path / "p.csv", "\n".join(lines))
    )
    labelled = TABLE.set_axis([f"p{k}" for k in range(N)]).assign(debt=[np.inf, *[1.0] * (N - 1)])
    refused("column 'debt' .* infinite .* the first in row p0", labelled)


def test_marks_of_missing_values_in_csv_files(tmp_path):
    marked = CSV.replace("0.5,cook", "?,cook", 1)
    path = written(tmp_path / "p.csv", marked)
    refused(r"feature 'debt' holds numbers as text .*'\?' \(first row 2\).*missing_marks", path)
    path = written(tmp_path / "p.csv", marked.replace("9.0", "", 1))
    for marks in (["?"], "?", ("", "?"), {"?"}):
        with pytest.warns(UserWarning, match=r"2 of 40 rows are left out \(missing: debt 2\)"):
            made = world(path, missing="drop", missing_marks=marks)
        assert made.n_rows == 38
    refused("missing_marks is 3; allowed", path, missing_marks=3)
    kept = written(tmp_path / "k.csv", CSV.replace("nurse", "NA").replace("judge", "None"))
    assert world(kept).fingerprint() == world().fingerprint()  # categories, as in family income
    refused("delimiter is for CSV files, which a", TABLE, delimiter=";")
    refused("delimiter is '::'; allowed is a single character", path, delimiter="::")
    refused("'sex' is not in the table", path, delimiter=";")
    refused("'sex' is not in the table", path, separator=";")


def test_marks_by_column_and_as_numbers_in_every_kind_of_table(tmp_path):
    words = TABLE.astype({"debt": object})
    words.loc[[0, 1], "debt"] = ["?", " ? "]
    words.loc[[2, 3], "age"] = -9
    words.loc[4, "job"] = "NA"
    plain = TABLE.astype({"age": float})
    plain.loc[[0, 1], "debt"] = np.nan
    plain.loc[[2, 3], "age"] = np.nan
    plain.loc[4, "job"] = None
    words.to_csv(tmp_path / "p.csv", index=False)
    words.astype({"debt": str}).to_parquet(tmp_path / "p.parquet")
    with pytest.warns(UserWarning, match="left out"):
        expected = world(plain, missing="drop").fingerprint()
    every, own = ["?", -9, "NA"], {"*": "?", "age": -9, "job": ["NA"]}
    for data in (words, tmp_path / "p.csv", tmp_path / "p.parquet"):
        for marks in (every, own):
            with pytest.warns(UserWarning, match="5 of 40 rows are left out .missing: age 2, "):
                made = world(data, missing="drop", missing_marks=marks)
            assert made.fingerprint() == expected
    refused(
        "missing_marks names 'dept', which is not a column", words, missing_marks={"dept": ["?"]}
    )
    refused("both have '.'; a value is", reward_values={"?": 1}, missing_marks="?")
    with pytest.warns(UserWarning, match="missing_marks has 'gone', which is not in any column"):
        world(missing_marks=["gone", "?"])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"sex", "data is a bytes"),
        ([1, 2], "data is a list"),
        (TABLE["sex"], "data is a Series"),
        ({"sex": ["F"], "paid": [1, 2]}, "cannot be turned into a table"),
        ({"sex": "F", "paid": 1}, "cannot be turned into a table"),
        (pd.concat({"x": TABLE}, axis=1), "column names of several levels"),
        (pd.DataFrame(), "it has no columns"),
        (TABLE.head(0), "data has no rows"),
        (TABLE[["sex"]], "'age' is not in the table; it has sex"),
    ],
)
def test_what_is_no_table(data, words):
    refused(words, data)


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    TABLE.to_parquet(tmp_path / "people.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'evenhand\[data\]'"):
        world(tmp_path / "people.parquet")


def test_columns_with_numbers_for_names():
    table = TABLE.set_axis(range(5), axis=1)
    made = eh.TableWorld(table, group=0, sensitive="F", arms={1: 2}, reward=4, nominal="codes")
    assert made.feature_names == ("2", "3")
    np.testing.assert_array_equal(contexts(made), contexts(world()))


# Types


@pytest.mark.parametrize(
    "kind",
    [
        "int64",
        "Int64",
        "UInt8",
        "float32",
        "Float64",
        "int16[pyarrow]",
        "double[pyarrow]",
        "object",
    ],
)
def test_numbers_of_all_types(kind):
    made = world(TABLE.astype({"age": kind, "job": "string"}), features=["age", "job"])
    assert made.fingerprint() == world(features=["age", "job"]).fingerprint()


@pytest.mark.parametrize("kind", ["str", "string", "string[pyarrow]", "object", "category"])
def test_text_of_all_types(kind):
    made = world(TABLE.astype({"sex": kind, "job": kind}))
    assert made.fingerprint() == world().fingerprint()


def test_decimals_and_gaps_in_objects():
    decimals = TABLE.assign(debt=[Decimal(str(value)) for value in TABLE["debt"]])
    np.testing.assert_allclose(contexts(world(decimals)), contexts(world()))
    arrow = TABLE.assign(debt=TABLE["debt"].round(2).astype(pd.ArrowDtype(pa.decimal128(30, 2))))
    np.testing.assert_allclose(contexts(world(arrow)), contexts(world()), atol=0.006)
    truth = pd.Series([True, None, *[False] * (N - 2)], dtype=object)
    with pytest.warns(UserWarning, match="1 row has values filled in"):
        made = world(TABLE.assign(debt=truth), missing="fill", arms="job", features=["debt"])
    assert set(contexts(made)[:, 0]) == {0.0, 1.0}  # a column of 0 and 1 stays one
    mixed = plain(pd.Series([1, 2.0, "a", True, None], dtype=object))
    assert mixed[:4].tolist() == ["1", "2", "a", "True"] and mixed.isna()[4]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            pd.date_range("2020-01-01", periods=N),
            "feature 'debt' holds dates or times; turn it int",
        ),
        (pd.timedelta_range("1 day", periods=N), "holds dates or times"),
        (pd.period_range("2020", periods=N, freq="Y"), "holds dates or times"),
        ([datetime.date(2020, 1, 1)] * N, "holds dates or times"),
        (pd.array([datetime.date(2020, 1, 1)] * N, pd.ArrowDtype(pa.date32())), "holds dates"),
        (pd.array([datetime.timedelta(1)] * N, pd.ArrowDtype(pa.duration("s"))), "holds dates"),
        ([[1, 2]] * N, r"column 'debt' holds lists or similar values \(row 0\)"),
        (pd.array([[1]] * N, pd.ArrowDtype(pa.list_(pa.int64()))), "holds lists"),
        ([{"a": 1}] * N, "holds lists"),
        (np.full(N, 1j), "complex or too large"),
        ([10**400, *range(N - 1)], "complex or too large"),
        ([np.inf, *range(N - 1)], "'debt' has 1 value that is infinite .* in row 0; correct"),
        ([1e101, *range(N - 1)], r"infinite or beyond 1e\+100"),
        ([str(value) for value in range(N)], "feature 'debt' holds numbers as text; turn it into"),
        (["?", *["7"] * (N - 1)], r"words, such as '\?' \(first row 0\)"),
        (["0", "1", "NA", "1"] * (N // 4), "such as 'NA'"),
        (["1,5", "2,25"] * (N // 2), "with a decimal comma, such as '1,5', as text"),
        (["$1,200", "$900"] * (N // 2), "with separators or signs"),
        ([*map(str, range(N - 2)), "-", "n/a"], r"such as '-' .*missing_marks=\[.-., .n/a.\]"),
    ],
)
def test_features_that_are_none(values, words):
    refused(words, TABLE.assign(debt=values))


def test_text_with_some_numbers_is_categories_if_asked():
    values = ["1", "2", "3", "more"] * (N // 4)
    refused("say nominal_columns=..debt.. if it is", TABLE.assign(debt=values))
    made = world(TABLE.assign(debt=values), nominal_columns=["debt"], features=["debt"])
    assert set(contexts(made)[:, 0]) == {0, 1, 2, 3}
    world(TABLE.assign(debt=["1", "0"] * (N // 2)))  # two names
    # A category may be called 0, as in COMPAS; a categorical type is the user's word.
    world(TABLE.assign(debt=["(F3)", "(M1)", "0", "(F2)"] * (N // 4)))
    world(TABLE.assign(debt=pd.Categorical(["1", "2"] * (N // 2))))


# Groups and arms


def test_groups_by_type():
    for values, names in [
        ([True, False] * (N // 2), ("sex=False", "sex=True")),
        ([0, 1] * (N // 2), ("sex=0", "sex=1")),
        (pd.Categorical(["F", "M"] * (N // 2), categories=["X", "M", "F"]), ("F", "M")),
        (pd.array([1, 2] * (N // 2), "int64[pyarrow]"), ("sex=1", "sex=2")),
    ]:
        assert world(TABLE.assign(sex=values), sensitive=None).groups.names == names
    gaps = TABLE.assign(sex=[np.nan, 0.0, 1.0, 1.0] * (N // 4))
    words = r"missing values in 10 of 40 rows \(sex 10\), the first in the row with index 0; "
    refused(words, gaps, sensitive=None)
    with pytest.warns(UserWarning, match=r"10 of 40 rows are left out \(missing: sex 10\)"):
        assert world(gaps, sensitive=1, missing="drop").groups.names == ("sex=0", "sex=1")
    said = r"10 of 40 rows are left out, because what they lack cannot be filled in \(missing: sex"
    with pytest.warns(UserWarning, match=said):
        made = world(gaps, sensitive=1, missing="fill")
    assert made.groups.names == ("sex=0", "sex=1")


def test_few_rows_single_arms_and_single_groups_are_told_of():
    once = TABLE.assign(sex=["X", *TABLE["sex"][1:]])
    with pytest.warns(UserWarning) as told:
        world(once)
    texts = [str(warning.message) for warning in told]
    assert all(warning.filename == __file__ for warning in told)
    assert texts[0].startswith("arms: fewer than 30 rows in (17.981, 27.5] & F (9), ")
    assert "(17.981, 27.5] & X (1)" in texts[0]
    assert texts[1].startswith("group: a single arm in X (1): its bias cannot be told apart from")
    with pytest.warns(UserWarning, match="group: all rows are of F: there is no other group"):
        world(TABLE.assign(sex="F"))


def test_arms_as_they_are_come_in_order():
    for values, order in [
        ([30, 4, 100, 30], ["4", "30", "100"]),
        ([2.5, 1.0, 1.0, -3.0], ["-3", "1", "2.5"]),
        (["b", "a", "c", "b"], ["a", "b", "c"]),
        ([True, False, True, True], ["False", "True"]),
        (pd.Categorical(list("bacb") * (N // 4), categories=list("cxba")), ["c", "b", "a"]),
    ]:
        given = values if len(values) == N else values * (N // 4)
        made = world(TABLE.assign(age=given, sex=["F"] * 20 + ["M"] * 20), arms="age")
        assert made.arms["age"].unique().tolist() == order


def test_arms_are_never_called_the_same():
    alike = TABLE.assign(job=["a", "a & b"] * 20, age=["b & c", "c"] * 20, sex="F")
    refused("arms: two would be called 'a & b & c & F'; rename", alike, arms=["job", "age"])
    typed = TABLE.assign(age=pd.Categorical([1, "1"] * 20), sex=["F"] * 20 + ["M"] * 20)
    refused("arms: two would be called '1 & F'", typed, arms="age")


def test_arms_columns_named_like_our_own():
    for name in ("arm", "group", "rows", "mean_reward"):
        made = world(TABLE.rename(columns={"age": name}), arms={name: 2})
        assert f"{name} (column)" in made.arms
        np.testing.assert_array_equal(contexts(made), contexts(world()))
        assert made.arms["mean_reward"].tolist() == world().arms["mean_reward"].tolist()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (1, "is cut by 1; allowed are"),
        (2.5, "is cut by 2.5"),
        (True, "is cut by True"),
        (None, "is cut by None"),
        ("two", "is cut by 'two'"),
        (10**9, "a number of buckets from 2 to 1000"),
        ({"quantiles": 1}, "is cut by"),
        ({"quantiles": [1, 2]}, "is cut by"),
        ({"quintiles": 4}, "is cut by"),
        ([18], "is cut by"),
        (["a", "b"], "is cut by"),
        ([99, 0], "give them in increasing order"),
        ([0, float("nan")], "give them in increasing order"),
        ([20, 30], "18 values outside the edges 20 to 30, the first 18 in row 0; widen"),
    ],
)
def test_cuts_that_make_no_sense(how, words):
    refused("arms: .*column 'age'", arms={"age": how})
    refused(words, arms={"age": how})


def test_cuts_of_what_cannot_be_cut():
    refused("'job' is not numeric .'cook' in row 0., so it cannot be cut into 3", arms={"job": 3})
    refused("'age' is infinite in row 0", TABLE.assign(age=[np.inf, *range(N - 1)]))
    constant = TABLE.assign(age=1)
    refused("'age' has the same value in every row", constant, arms={"age": {"quantiles": 2}})
    refused("'debt' has 200 values, and each would be an arm", many(200), arms="debt")
    refused("group: column debt has 202 values", many(202), group="debt", sensitive=None)
    tied = TABLE.assign(age=[0] * 30 + list(range(10)))
    with pytest.warns(UserWarning, match="column 'age' has so many equal values that 4 quantiles"):
        world(tied, arms={"age": {"quantiles": 4}, "job": "as is"})


def many(rows):
    return pd.DataFrame(
        {"sex": ["F", "M"] * (rows // 2), "age": 1, "debt": np.arange(rows) / 7, "paid": 1.0}
    ).assign(age=lambda table: table.index % 9)


@given(
    st.lists(st.integers(-20, 20), min_size=1, max_size=30),
    st.lists(st.integers(-30, 30), min_size=2, max_size=6, unique=True).map(sorted),
)
def test_edges_hold_what_their_names_say(values, edges):
    column = pd.Series(values, name="x")
    if min(values) < edges[0] or max(values) > edges[-1]:
        with pytest.raises(ValueError, match="outside the edges"):
            bucketed(column, edges)
        return
    for value, name in zip(values, bucketed(column, edges), strict=True):
        low, high = map(int, name[1:-1].split(", "))
        assert low <= value < high or (value == high == edges[-1] and name.endswith("]"))


def test_quantiles_share_the_rows_out():
    sizes = bucketed(pd.Series(np.arange(400) ** 2), {"quantiles": 4}).value_counts()
    assert sizes.tolist() == [100] * 4
    assert bucketed(pd.Series([10**6, 10**6 + 1]), [10**6, 10**6 + 1, 10**6 + 2]).nunique() == 2


# Features


@given(st.lists(st.sampled_from(["b", "a", "ü", "", "z & y"]), min_size=1, max_size=30))
def test_codes_count_categories_as_they_appear(words):
    column = pd.Series(words, name="x")
    codes = encode(column, True, Encoding(one_hot=False))[0].values
    order = list(dict.fromkeys(words))
    assert [order[code] for code in codes] == words
    hot = encode(column, True, Encoding(intercept=False))
    frequent = sorted(order, key=lambda word: (-words.count(word), word))
    assert [column.name for column in hot] == [f"x={word}" for word in frequent]
    assert [
        frequent[place] for place in np.argmax([column.values for column in hot], axis=0)
    ] == words


def test_categories_with_an_order_keep_it():
    levels = ["low", "middle", "high", "never seen"]
    column = pd.Series(pd.Categorical(["high", "low", "high", "middle"], levels, ordered=True))
    assert encode(column, True, Encoding(one_hot=False))[0].values.tolist() == [2, 0, 2, 1]


OTHER = "name=other"


def test_many_categories():
    table = many(120).assign(name=[f"person {k}" for k in range(120)])
    named = {"features": ["debt", "name"]}
    with pytest.warns(UserWarning, match="'name' has 120 categories, and all but the 20 most"):
        made = world(table, arms="age", nominal="one-hot", **named)
    assert made.n_features == 2 + 20 and made.feature_names[-1] == "name=other"
    with pytest.warns(UserWarning, match="all but the 3 most frequent"):
        few = world(table, arms="age", nominal="one-hot", categories=3, **named)
    assert few.feature_names == ("intercept", "debt", "name=person 1", "name=person 10", OTHER)
    more = many(1200).assign(name=[f"person {k}" for k in range(1200)])
    refused("'name' has about 1,200 categories, as an iden", more, nominal="one-hot", **named)
    with pytest.warns(UserWarning, match="'name' has 120 different values in 120 rows"):
        world(table, arms="age", **named)


@pytest.mark.parametrize("value", [7.0, 0.0])
@pytest.mark.parametrize("scale", ["none", "standardise"])
@pytest.mark.parametrize("intercept", [None, True, False])
def test_constant_features(value, scale, intercept):
    table = TABLE.assign(debt=value)
    acts = value and scale == "none" and not intercept
    words = "debt has the same value in every row: it acts as" if acts else "debt .* is left out"
    with pytest.warns(UserWarning, match=words):
        made = world(table, scale=scale, intercept=intercept)
    assert ("debt" in made.feature_names) == bool(acts)
    assert np.isfinite(contexts(made)).all()
    if intercept is False and not acts:
        with pytest.warns(UserWarning, match="is left out"):
            refused("features are none", table, scale=scale, intercept=False, features=["debt"])


def test_constants_that_are_hard_to_see():
    tiny = TABLE.assign(debt=[5e-324, *[0.0] * (N - 1)])  # its deviation is 0 in floating point
    with pytest.warns(UserWarning, match="debt .* is left out"):
        assert "debt" not in world(tiny, scale="standardise").feature_names
    with pytest.warns(UserWarning, match="job=cook has the same value in every row"):
        made = world(TABLE.assign(job="cook"), nominal="one-hot")
    assert made.feature_names == ("intercept", "debt")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"features": ["paid", "debt"]}, "column 'paid' is a reward and a feature"),
        ({"group": "paid"}, "column 'paid' is a reward and a part of the group or the arms"),
        ({"arms": "paid"}, "column 'paid' is a reward and a part"),
        ({"true_reward": "debt", "features": ["debt"]}, "column 'debt' is a reward and a feature"),
        ({"features": ["debt", "debt"]}, "features names column 'debt' twice"),
        ({"group": ["sex", "sex"]}, "group names column 'sex' twice"),
        ({"features": ["debt"], "leave_out": ["debt"]}, "in features and in leave_out"),
        ({"features": []}, "features are none"),
        ({"features": 2.5}, "features is 2.5; allowed is a list of columns"),
        ({"group": []}, r"group is \[\]; allowed are names of columns"),
        ({"group": None}, "group is None"),
        ({"arms": None}, "arms is None"),
        ({"reward": None}, "reward is None"),
        ({"reward": ["paid", "debt"]}, "allowed is the name of one column"),
        ({"reward": "payed"}, "column 'payed' is not in the table; did you mean 'paid'"),
        ({"leave_out": ["jobs"]}, "column 'jobs' is not in the table; did you mean 'job'"),
        ({"nominal_columns": ["jobs"]}, "column 'jobs' is not in the table"),
        (
            {"sensitive": "f"},
            "sensitive is 'f', which is not a value of sex; allowed is one of F, M",
        ),
        ({"sensitive": None, "others": "together"}, "name the sensitive group"),
        ({"others": "joined"}, "others is 'joined'"),
        ({"nominal": "codes?"}, "nominal is 'codes\\?'"),
        ({"scale": "minmax"}, "scale is 'minmax'"),
        ({"intercept": "no"}, "intercept is 'no'"),
        ({"absolute_rewards": 1}, "absolute_rewards is 1"),
        ({"noise": -1}, "noise is -1"),
        ({"missing": "ignore"}, "missing is 'ignore'; allowed is one of error, drop, fill"),
        ({"missing": {"dept": "fill"}}, "missing names 'dept', which is not a used column"),
        ({"missing": {"debt": "skip"}}, "missing is 'skip' for column 'debt'"),
        ({"reward_values": ["paid"]}, "reward_values is"),
        ({"reward_values": {}}, "reward_values is"),
    ],
)
def test_roles_that_make_no_sense(changes, words):
    refused(words, **changes)


def test_names_of_features_are_never_there_twice():
    clash = TABLE.assign(**{"job=nurse": 2 * TABLE["debt"] + TABLE["age"]})
    refused("two would be called 'job=nurse'", clash, nominal="one-hot")
    named = TABLE.rename(columns={"debt": "intercept"})
    refused("two would be called 'intercept'", named, intercept=True)


def test_the_columns_of_arms_may_be_features_and_the_group_may_not():
    made = world(features=("age", "debt"), arms={"age": 2})
    assert made.feature_names == ("age", "debt")
    refused("features: 'sex' is the group; a group cannot be a feature", features=("age", "sex"))


# Rewards


def test_rewards_of_all_kinds():
    truth = TABLE["paid"] > 3
    expected = world(TABLE.assign(paid=truth.astype(float))).fingerprint()
    for values in (truth, truth.astype("boolean"), truth.astype(int).astype(str), truth * 1):
        assert world(TABLE.assign(paid=values)).fingerprint() == expected
    words = TABLE.assign(paid=np.where(truth, "paid", "default"))
    numbers = {"paid": 1, "default": 0}
    assert world(words, reward_values=numbers).fingerprint() == expected
    assert (
        world(words.astype({"paid": "category"}), reward_values=numbers).fingerprint() == expected
    )
    coded = TABLE.assign(paid=np.where(truth, 2.0, 1.0))
    assert world(coded, reward_values={"2": 1, 1: 0}).fingerprint() == expected
    refused("reward is 'paid', .* with 'paid' in 22 rows, .*reward_values=..paid.: 1, ", words)
    refused(
        "has 'default' in .* which reward_values does not name", words, reward_values={"paid": 1}
    )
    refused("reward_values\\['paid'\\] is 'x'", words, reward_values={"paid": "x"})
    refused("'paid' has 1 value that is infinite", TABLE.assign(paid=[np.inf, *range(N - 1)]))
    refused(
        "reward is 'paid', .* with a decimal comma, such as '1,5', as text",
        TABLE.assign(paid=["1,5", "2"] * (N // 2)),
    )
    refused(
        "reward is 'paid', .*; allowed are numbers",
        TABLE.assign(paid=pd.date_range("2020-01-01", periods=N)),
    )


def test_true_rewards_of_a_nominal_reward():
    words = TABLE.assign(paid=np.where(TABLE["paid"] > 3, "paid", "default"), worth=TABLE["debt"])
    numbers = {"paid": 1, "default": 0}
    made = world(words, reward_values=numbers, true_reward="worth")
    np.testing.assert_array_equal(
        made.begin(np.random.default_rng(1)).true_rewards, contexts(world())[:, 0]
    )
    same = world(words.assign(worth=words["paid"]), reward_values=numbers, true_reward="worth")
    instance = same.begin(np.random.default_rng(1))
    np.testing.assert_array_equal(instance.true_rewards, instance.rewards)
    other = words.assign(worth=["paid", "late"] * (N // 2))
    refused(
        "true_reward 'worth' has 'late' in 20 rows .*, which reward_values does not name",
        other,
        reward_values=numbers,
        true_reward="worth",
    )


# Missing values


@pytest.mark.parametrize("kind", ["float64", "Float64", "Int64", "int64[pyarrow]", "object"])
def test_missing_numbers_under_each_choice(kind):
    values = pd.Series([None, 3, 4, 8] * (N // 4), dtype=kind)
    table = TABLE.assign(debt=values)
    refused(r"missing values in 10 of 40 rows .debt 10.*missing=\{.debt.: .drop., .oth", table)
    with pytest.warns(UserWarning, match=r"10 of 40 rows are left out \(missing: debt 10\)"):
        made = world(table, missing="drop")
    assert (made.n_rows, made.dropped_rows) == (30, 10)
    assert made.missing.to_dict("list") == {"column": ["debt"], "rows": [10], "done": ["drop"]}
    with pytest.warns(UserWarning, match="10 rows have values filled in") as told:
        made = world(table, missing={"debt": "fill"})
    assert told[0].filename == __file__
    assert made.feature_names == ("debt", "debt is missing", "job")
    debt, flag, _ = contexts(made).T
    assert set(debt[flag == 1]) == {5.0} and flag.sum() == 10 and set(debt[flag == 0]) == {3, 4, 8}
    assert made.missing["done"].tolist() == ["fill"]
    with pytest.warns(UserWarning, match="filled in"):
        arms = world(TABLE.assign(age=values), missing="fill").arms["age"].unique()
    assert arms.tolist() == ["(2.995, 5.5]", "(5.5, 8.0]", "missing"]


@pytest.mark.parametrize("kind", ["object", "str", "category", "string[pyarrow]"])
def test_missing_categories_are_one_of_their_own(kind):
    table = TABLE.assign(job=pd.Series(["cook", None, "missing", "judge"] * (N // 4), dtype=kind))
    with pytest.warns(UserWarning, match="10 rows have values filled in"):
        made = world(table, missing="fill", nominal="one-hot", features=["job"])
    assert made.feature_names == ("intercept", "job=judge", "job=missing")
    assert contexts(made).sum(axis=0).tolist() == [40, 10, 20]


def test_choices_by_column():
    table = TABLE.assign(
        debt=[None, *TABLE["debt"][1:]], job=[*TABLE["job"][:-3], None, None, None]
    )
    with pytest.warns(UserWarning) as told:
        made = world(table, missing={"debt": "drop", "others": "fill"})
    assert str(told[0].message) == (
        "1 of 40 rows is left out (missing: debt 1); 3 rows have values filled in (missing: job 3)"
    )
    assert made.n_rows == 39 and made.missing["done"].tolist() == ["drop", "fill"]
    assert (made.dropped_rows, made.filled_rows) == (1, 3)
    refused(
        r"missing values in 3 of 40 rows \(job 3\), the first in the row with index 37; ",
        table,
        missing={"debt": "drop"},
    )


def test_a_row_is_dropped_whichever_column_lacks_a_value():
    table = TABLE.assign(
        debt=[None, 1.0, None, *TABLE["debt"][3:]], job=[None, None, *TABLE["job"][2:]]
    )
    with pytest.warns(UserWarning, match=r"3 of 40 rows are left out \(missing: debt 2, job 2\)"):
        made = world(table, missing="drop")
    assert made.dropped_rows == 3
    rest = world(TABLE[3:], arms={"age": 2})
    np.testing.assert_array_equal(contexts(made)[:, 0], contexts(rest)[:, 0])


def test_missing_rewards_are_never_made_up():
    table = TABLE.assign(paid=[None, *TABLE["paid"][1:]])
    refused(r"missing values in 1 of 40 rows .*missing=\{.paid.: .drop.", table)
    with pytest.warns(
        UserWarning, match="1 of 40 rows is left out, because what it lacks cannot be"
    ):
        assert world(table, missing="fill").n_rows == 39
    with pytest.warns(UserWarning, match=r"1 of 40 rows is left out \(missing: paid 1\)"):
        assert world(table, missing="drop").n_rows == 39


def test_columns_without_any_value():
    for values in (np.full(N, np.nan), [None] * N, pd.array([None] * N, "Int64")):
        table = TABLE.assign(debt=values)
        refused("in all 40 rows .debt 40., and no row remains", table, missing="drop")
        refused("column 'debt' has no value in any row", table, missing="fill")
        refused("missing values in 40 of 40 rows", table)


@pytest.mark.parametrize(
    "labels", [[7] * N, list(range(N, 0, -1)), [f"p{k % 3}" for k in range(N)]]
)
def test_the_index_does_not_matter(labels):
    assert world(TABLE.set_axis(labels)).fingerprint() == world().fingerprint()
    table = TABLE.assign(debt=[None, *TABLE["debt"][1:]])
    with pytest.warns(UserWarning, match="left out"):
        first = world(table, missing="drop")
    with pytest.warns(UserWarning, match="left out"):
        second = world(table.set_axis(labels), missing="drop")
    assert first.fingerprint() == second.fingerprint()
    refused(f"the first in the row with index {labels[0]};", table.set_axis(labels))


def test_read_table_keeps_a_frame_as_it_is():
    assert read_table(TABLE) is TABLE


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%y", "%Y-%m-%d %H:%M"])
def test_dates_as_text_are_not_numbered(form):
    days = pd.date_range("2024-01-01", periods=80, freq="13h").strftime(form)
    table = pd.DataFrame({"sex": ["F", "M"] * 40, "day": days, "paid": np.arange(80.0)})
    with pytest.raises(ValueError, match="feature 'day' holds dates or times"):
        eh.TableWorld(table, group="sex", reward="paid")


def test_a_rare_category_is_told_in_whole_steps():
    """Standardised features of 0 and 1 have no step but 1: a tenth of it would be a false gap."""
    rng = np.random.default_rng(0)
    n = 4000
    table = pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], n),
            "job": rng.choice(["a", "b"], n),
            "town": rng.choice(["Leeds", "York", "Hull"], n, p=[0.87, 0.07, 0.06]),
            "late": (rng.random(n) < 0.05).astype(float),
        }
    )
    worse = (table["sex"] == "F") * (1 + 2 * (table["town"] == "York") + 3 * table["late"])
    table["paid"] = 0.1 * rng.normal(size=n) - worse
    roles = {"group": "sex", "sensitive": "F", "arms": "job", "reward": "paid"}
    world = eh.TableWorld(table, **roles, scale="standardise")
    report = world.bias()
    assert set(report.units) == {1.0}
    assert "is 1.999 below the gap in town Leeds" in str(report)
    assert np.isclose(
        report.to_frame().query("feature == 'late' and group == 'F'").estimate, -3, 0.1
    )


def test_a_filled_column_of_0_and_1_stays_one():
    column, flag = filled(pd.Series([0.0, 1.0, 1.0, None], name="late"), nominal=False)
    assert column.tolist() == [0.0, 1.0, 1.0, 0.0] and flag.tolist() == [False, False, False, True]
