"""The second pass: rows as batches say what sums by SQL say, and robust errors have no limit."""

from __future__ import annotations

import numpy as np
import pytest

import evenhand as eh
from audit_logs import made_log
from evenhand.audit._inference import second_pass
from evenhand.audit._inference.second_pass import _queried, _queried_squares
from evenhand.audit._sums import batches


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("arms", [False, True])
def test_batches_say_what_sums_by_sql_say(monkeypatch, weighted, arms):
    """Of the whole log, of its windows and within them; some rows have no time."""
    log = made_log(1, n=1500, groups=("A", "B", "C"))
    log["timestamp"] = np.where(np.arange(1500) % 50 == 7, np.nan, np.arange(1500.0))
    roles = {}
    if arms:
        log["arm"] = log["group"] + (np.arange(1500) % 2).astype(str)
    if weighted:
        log["w"], roles = np.random.default_rng(2).uniform(0.5, 2.0, size=1500), {"weight": "w"}
    passes = []

    def remembered(asked):
        answers = streamed(asked)
        passes.append((asked, answers))
        by_sql = {
            name: _queried(asked.source, question)
            if question.context is None
            else _queried_squares(asked.source, question)[:, None, None]
            for name, question in asked.questions.items()
        }
        for name, answer in answers.items():
            size = np.abs(by_sql[name]).max()
            np.testing.assert_allclose(answer, by_sql[name], rtol=1e-9, atol=1e-11 * size)
        return answers

    streamed = second_pass._streamed
    monkeypatch.setattr(second_pass, "_streamed", remembered)
    monkeypatch.setattr(batches, "MOST_ROWS", 400)  # several batches
    audit = eh.audit(log, reference="C", windows=4, errors="robust", **roles)
    assert audit.within is not None and audit.bias.weighting == ("arms" if arms else "pulls")
    assert len(passes) == 1, "one pass is enough for all of them"
    assert set(passes[0][1]) == {"whole", "windows", "within"}


def test_robust_errors_have_no_limit():
    """The groups decide by their rows for every coefficient, and not the log by its size."""
    from evenhand.audit._inference import standard_errors as errors
    from evenhand.audit._settings import AuditSettings
    from evenhand.bias.statistics import Statistics

    x = np.column_stack([np.ones(200), np.arange(200.0)])
    stats = Statistics.from_rows(x, np.arange(200.0) % 7, ["F", "M"] * 100)
    large = Statistics(**{**vars(stats), "n": stats.n * 1e9})
    assert errors.robust_groups(large, AuditSettings(), "pulls", False).all()
