"""Both readings of the paper: what they differ in, where they are found, and what they change."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, fields, replace

import pytest

import evenhand as eh
from evenhand.conventions import BY_NAME


def test_readings_are_found_by_their_own_names():
    assert BY_NAME == {"PAPER": eh.PAPER, "AUTHORS_CODE": eh.AUTHORS_CODE}


def test_the_readings_differ_in_everything_but_the_level():
    """As the table in docs/explanation/conventions.md says."""
    same = {
        field.name
        for field in fields(eh.PAPER)
        if getattr(eh.PAPER, field.name) == getattr(eh.AUTHORS_CODE, field.name)
    }
    assert same == {"level"}


def test_a_reading_cannot_be_changed_in_place():
    with pytest.raises(FrozenInstanceError):
        eh.PAPER.width = "variance"
    assert replace(eh.PAPER, width="variance").name == "PAPER"


def test_what_the_readings_make_of_the_same_rewards():
    """After four rewards at (1, 0), the estimate there has variance 1/4, and none at (0, 1)."""

    def width(conventions, context):
        policy = eh.TopInterval(["F"], n_features=2, horizon=10, conventions=conventions)
        policy.absorb([0] * 4, [[1.0, 0.0]] * 4, [1.0, 2.0, 3.0, 4.0])
        return policy.intervals([context])[1].item()

    seen, never = [1.0, 0.0], [0.0, 1.0]
    # A quantile times 1/4 or times its root, 1/2.
    assert width(eh.AUTHORS_CODE, seen) == pytest.approx(width(eh.PAPER, seen) / 2)
    assert (width(eh.PAPER, never), width(eh.AUTHORS_CODE, never)) == (math.inf, 0.0)


def test_what_is_no_reading_is_refused():
    with pytest.raises(ValueError, match=r"conventions is 'PAPER'; allowed is PAPER or"):
        eh.TopInterval(["F", "M"], n_features=1, conventions="PAPER")
