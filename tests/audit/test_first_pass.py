"""The first pass: rows as batches say what sums by SQL say, and a log that changes is noticed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from audit_logs import in_duckdb, made_log
from evenhand.audit._sums import aggregate, batches, streamed
from evenhand.audit._sums.batches import Coding
from evenhand.audit._sums.streamed import Middle


def full_log(seed: int = 1, n: int = 900) -> pd.DataFrame:
    """A log with all that can be summed up."""
    rng = np.random.default_rng(seed)
    log = made_log(seed, n=n, groups=("A", "B", "C"))
    log["timestamp"] = np.where(np.arange(n) % 50 == 7, np.nan, np.arange(float(n)))
    log["arm"] = rng.integers(0, 3, size=n)
    log["propensity"] = np.where(np.arange(n) % 40 == 3, np.nan, rng.uniform(0.1, 1.0, size=n))
    log["true_reward"] = np.where(rng.random(n) < 0.4, rng.normal(size=n), np.nan)
    log["override"] = np.where(rng.random(n) < 0.1, "other", None)
    log["explored"], log["position"] = rng.random(n) < 0.3, rng.integers(1, 5, size=n)
    return log


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_batches_say_what_sums_by_sql_say(monkeypatch, weighted):
    """Of all kinds of sums, with rows that lack a time, a propensity or a true reward."""
    log, roles = full_log(), {"cluster": "person"} if weighted else {}
    if weighted:
        log["w"] = np.random.default_rng(2).uniform(0.5, 2.0, size=len(log))
        log["person"] = np.arange(len(log)) // 3
        roles["weight"] = "w"
    compared = []

    def both(source, rows, keys, p, windows, more, *others):
        frame, beyond = streamed(source, rows, keys, p, windows, more, *others)
        by_sql = aggregate.queried(source, rows, keys, p, more)
        assert set(frame.columns) == set(by_sql.columns)
        for name in frame.columns:
            own, other = frame[name], by_sql[name]
            if name in ("g", "a"):
                assert own.tolist() == other.tolist()
                continue
            sums = not name.startswith(("surest", "t", "low", "high", "least", "most", "s_"))
            # No number at all is a sum of 0 in one, and nothing in the other.
            other = other.fillna(0.0) if sums else other
            np.testing.assert_allclose(
                own.astype(float), other.astype(float), rtol=1e-9, atol=1e-9, err_msg=name
            )
        compared.append(keys)
        return frame, beyond

    streamed = aggregate.streamed
    monkeypatch.setattr(aggregate, "streamed", both)
    monkeypatch.setattr(batches, "MOST_ROWS", 200)  # several batches
    eh.audit(log, reference="C", windows=4, **roles)
    assert ["g", "a", "t"] in compared


@pytest.mark.slow
@pytest.mark.parametrize("unfavourable", [False, True])
@pytest.mark.parametrize("sort", [False, True])
def test_the_median_of_the_pass_is_that_of_the_log(sort, unfavourable):
    """Also of a log that begins with its least rewards, where no sample knows the median."""
    log = made_log(3, n=30_000)
    log["reward"] = log["reward"].round(2)  # some are at the median
    log = log.sort_values("reward", ignore_index=True) if sort else log
    impact = eh.audit(log, unfavourable=unfavourable, errors="classical").impact
    median, by_group = log["reward"].median(), log.groupby("group")["reward"]
    selected = by_group.apply(lambda y: int((y < median if unfavourable else y > median).sum()))
    assert impact.set_index("category")["selected"].to_dict() == selected.to_dict()


def test_a_median_elsewhere_is_not_guessed():
    class Rows:
        strange, present, starts, sizes = 0, np.array([0]), np.array([0]), np.array([5])

    coding = Coding(["g"], [("F",)], 1)
    for span, expected in [((1.5, 4.0), {"above": 2.0, "below": 2.0}), ((3.5, 9.0), None)]:
        held = Middle(span, 1)
        held.add(Rows(), np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
        beyond = held.beyond(np.array([5]), coding)
        assert (
            None if beyond is None else beyond.loc["F", ["above", "below"]].to_dict()
        ) == expected
    assert streamed.MOST_SORTED == 20_000_000


def test_cells_by_their_labels():
    """Also labels that are missing, and values that no label has."""
    coding = Coding(["g", "a"], [("F", "1"), ("M", "1"), (None, "2")], 3)
    _, table = in_duckdb(
        pd.DataFrame(
            {
                "g": ["F", "M", None, "F", "X"],
                "a": ["1", "1", "2", "2", "1"],
                "t": pd.array([0, None, 1, 0, 0], dtype="Int64"),
            }
        )
    )
    numbers = table.mutate(code=coding.number_of(table)).to_pyarrow()["code"].to_numpy()
    cells = coding.cells_of(numbers)
    assert cells.tolist()[:3] == [0, 3 + 2, 6 + 1]
    assert (cells[3:] < 0).all()


@pytest.mark.parametrize(
    ("arms", "labels"),
    [
        ([3, 1, 5, 4, None, 9, -7, 2**62], ["5", "1", "3"]),  # 4 is in between, and no label
        ([0, -1, 1, 2, None, -2, 10, -(2**62)], ["-1", "0", "1"]),
        ([10**12, 1, 2, 3, None, 0, 5, -1], ["1", "1000000000000"]),  # far apart: one by one
    ],
)
def test_arms_that_are_numbers_have_the_cells_of_their_labels(arms, labels):
    """Whole numbers are counted from the least; text of the same arms is compared."""
    coding = Coding(["a"], [(label,) for label in labels], 1)
    numbers = pd.DataFrame({"arm_number": pd.array(arms, dtype="Int64")})
    _, table = in_duckdb(numbers.assign(a=numbers["arm_number"].astype("string")))
    texts = [None if pd.isna(arm) else str(arm) for arm in arms]
    expected = [labels.index(text) if text in labels else -1 for text in texts]
    for rows in (table, table.drop("arm_number")):
        codes = rows.mutate(code=coding.number_of(rows))
        assert coding.cells_of(codes.to_pyarrow()["code"].to_numpy()).tolist() == expected


def test_groups_that_come_after_the_first_look_stop_the_audit():
    """A group that was not there at first must not be left out in silence."""
    con, table = in_duckdb(made_log(4, n=400, d=1))

    def tell(words: str) -> None:
        if "summing up" in words:
            con.execute("UPDATE log SET \"group\" = 'late' WHERE rowid < 10")

    with pytest.raises(ValueError, match="changed while it was read"):
        eh.audit(table, reference="M", tell=tell)


def test_linear_algebra_has_its_threads_back():
    from threadpoolctl import threadpool_info

    before = [pool["num_threads"] for pool in threadpool_info()]
    eh.audit(made_log(5, n=300), errors="classical")
    with pytest.raises(ValueError, match="no column is the reward"):
        eh.audit(made_log(5, n=300).drop(columns="reward"))
    assert [pool["num_threads"] for pool in threadpool_info()] == before
