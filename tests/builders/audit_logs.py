"""Logs for the tests of the audit, and what several of them need."""

from __future__ import annotations

import warnings
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import evenhand as eh
from evenhand.audit._report import page
from evenhand.errors import InputError


def made_log(seed=0, n=600, d=3, groups=("F", "M"), shift=0.0, bias=None, noise=1.0):
    """Correlated features, groups of unlike size, and rewards with the bias that is given."""
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(d, d)) + 2.0 * np.eye(d)
    x = rng.normal(size=(n, d)) @ mixing + shift
    of = rng.choice(len(groups), size=n, p=_parts(len(groups)))
    bias = np.zeros((len(groups), d + 1)) if bias is None else np.asarray(bias)
    whole = np.column_stack([np.ones(n), x])
    beta = np.linspace(1.0, 2.0, d + 1)
    y = np.sum(whole * (beta + bias[of]), axis=1) + noise * rng.normal(size=n)
    log = pd.DataFrame(x, columns=[f"x{k}" for k in range(d)])
    log["group"] = np.array(groups, dtype=object)[of]
    log["reward"] = y
    return log


def _parts(count):
    sizes = np.arange(1.0, count + 1.0)
    return sizes / sizes.sum()


def interacted(log, features, group="group", reward="reward", weights=None):
    """A regression of statsmodels on all groups: an intercept and all features for each of them."""
    names = sorted(log[group].astype(str).unique())
    x = np.column_stack([np.ones(len(log)), log[features].to_numpy(dtype=float)])
    blocks = [x * (log[group].astype(str) == name).to_numpy()[:, None] for name in names]
    y = log[reward].to_numpy(dtype=float)
    if weights is None:
        return names, sm.OLS(y, np.hstack(blocks))
    return names, sm.WLS(y, np.hstack(blocks), weights=weights)


def differences(fitted, names, reference, d):
    """Coefficients of each group less those of the reference, and their standard errors."""
    out = {}
    r = names.index(reference)
    for g, name in enumerate(names):
        for k in range(d):
            contrast = np.zeros(len(fitted.params))
            contrast[g * d + k] += 1.0
            contrast[r * d + k] -= 1.0
            variance = contrast @ fitted.cov_params() @ contrast
            out[name, k] = (contrast @ fitted.params, np.sqrt(max(variance, 0.0)))
    return out


def assert_same(report, expected, rtol=1e-8):
    """Estimates and errors of a report, but of the reference, against `differences`."""
    table = report.to_frame()
    d = len(report.features)
    compared = 0
    for g, name in enumerate(report.groups):
        if name == report.reference:
            continue
        for k in range(d):
            row = table.iloc[g * d + k]
            estimate, error = expected[name, k]
            # An estimate near zero is right to a part of its error.
            np.testing.assert_allclose(row["estimate"], estimate, rtol=rtol, atol=rtol * error)
            np.testing.assert_allclose(row["standard_error"], error, rtol=rtol)
            compared += 1
    assert compared == (len(report.groups) - 1) * d


def refused_with_flags(table, **options):
    """The same line as it is told on the command line."""
    with pytest.raises(InputError) as error:
        eh.audit(table, **options)
    return error.value.told("command line")


def refused(table, **options):
    """The one line that an audit stops with."""
    with pytest.raises(InputError) as error:
        eh.audit(table, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


class LookedAt(Exception):
    """Raised in place of the sums of an audit."""


def warned_at_first(table, **options):
    """What an audit warns of when it opens and looks at a log, without summing it up."""

    def stop(*_):
        raise LookedAt

    with warnings.catch_warnings(record=True) as caught, pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("always")
        patch.setattr("evenhand.audit.api.audit_log", stop)
        with pytest.raises(LookedAt):
            eh.audit(table, **options)
    return [str(warning.message) for warning in caught]


def page_of(audit):
    """The page of an audit without its pictures, which take most of its time."""
    without = MagicMock(name="charts")
    without.to_svg.return_value = "<svg></svg>"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "charts", without)
        return audit.to_html()


def in_duckdb(log):
    """A log as a table of DuckDB: the connection to change it by, and the table."""
    import ibis
    import pyarrow as pa

    con = ibis.duckdb.connect()
    con.con.register("frame", pa.Table.from_pandas(log))
    con.con.execute("CREATE TABLE log AS SELECT * FROM frame")
    with warnings.catch_warnings():  # of Ibis about DuckDB
        warnings.simplefilter("ignore", DeprecationWarning)
        return con.con, con.table("log")
