"""Contracts about input: bad values are refused, doubtful ones warned of."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from evenhand.contracts._common import LABELS, contract, learned, make, round_of
from evenhand.errors import InputError
from evenhand.groups import Groups
from evenhand.policies.base import Policy
from evenhand.policies.saving import to_dict


@contract
def bad_input_is_refused(kind: type[Policy]) -> None:
    """Bad input raises an InputError that names it, and nothing is learned."""
    policy = learned(kind)
    before = json.dumps(to_dict(policy))
    good = round_of()
    decision = policy.clone().select(good)
    for wrong in (np.nan, np.inf, -np.inf):
        broken = good.copy()
        broken[2, 1] = wrong
        _refused("contexts of arm 2", policy.select, broken)
        _refused("reward", policy.update, decision, wrong)
        _refused("rewards in row 1", policy.absorb, [0, 1], good[:2], [1.0, wrong])
        _refused("contexts in row 0", policy.absorb, [0], broken[2:3], [1.0])
    _refused("contexts has shape", policy.select, good[:-1])
    _refused("contexts has shape", policy.select, good[:, :-1])
    _refused("contexts has shape", policy.select, good[0])
    _refused("contexts has shape", policy.absorb, [0], good[:1, :1], [1.0])
    _refused("rewards has shape", policy.absorb, [0], good[:1], [1.0, 2.0])
    for arm in (-1, len(LABELS)):
        _refused("arms is", policy.absorb, [arm], good[:1], [1.0])
        _refused("available is", policy.select, good, [arm])
    _refused("names an arm twice", policy.select, good, [0, 1, 0, 1, 0, 1])
    _refused("available leaves no arm", policy.select, good, np.zeros(len(LABELS), dtype=bool))
    _refused("available has shape", policy.select, good, np.ones(2, dtype=bool))
    assert json.dumps(to_dict(policy)) == before, "bad input changed the policy"
    for name, values in {
        "delta": (0.0, 1.0, -0.1, 2.0, np.nan, "much"),
        "horizon": (0, -5, 2.5, np.inf),
        "n_features": (0, -1, 1.5),
        "noise": (0.0, -1.0, np.nan, "loud"),
        "singular": ("none",),
        "ridge": (0.0, -1.0, np.inf),
        "exploration": ("often", -0.1, 1.1, [0.5, 2.0], []),
        "seed": (-1, 0.5),
    }.items():
        for value in values:
            _refused(name, make, kind, **{name: value})
    _refused("a group without arms", Groups, ["F", "M"], "X")


def _refused(words: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> None:
    try:
        function(*arguments, **named)
    except InputError as error:
        text = str(error)
        assert words in text and "\n" not in text, f"{text!r} does not have {words!r} in one line"
    else:
        raise AssertionError(f"bad input was accepted; expected an error with {words!r}")


@contract
def single_arms_warn(kind: type[Policy]) -> None:
    """A policy that learns about groups warns of a group with a single arm."""
    if not kind.learns_groups:
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make(kind, ("F", "M", "M"))
    assert any("single arm" in str(warning.message) for warning in caught)
