"""The mortgage applications as the benchmarks use them: who applied, and with which file."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import evenhand as eh

FEATURES = ["obrat", "loanprc", "unem"]  # debts, loan to price, unemployment in the trade


class Mortgages(NamedTuple):
    """A row per application."""

    files: NDArray[np.float64]  # an intercept, and the features, standardised
    approved: NDArray[np.float64]
    white: NDArray[np.bool_]
    male: NDArray[np.float64]  # NaN if it is not known
    fair: NDArray[np.float64]  # coefficients of approval among white applicants


def mortgages() -> Mortgages:
    """The table, and what a straight line through the approvals of white applicants says."""
    loans = eh.datasets.load("mortgage")
    files = loans[FEATURES].to_numpy(float)
    files = (files - files.mean(axis=0)) / files.std(axis=0)
    files = np.column_stack([np.ones(len(files)), files])
    approved = loans["approve"].to_numpy(float)
    white = (loans["race"] == "white").to_numpy()
    fair = np.linalg.lstsq(files[white], approved[white], rcond=None)[0]
    return Mortgages(files, approved, white, loans["male"].to_numpy(float), fair)
