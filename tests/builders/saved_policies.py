"""Saved policies of version 1, and files that somebody crafted."""

from __future__ import annotations

import numpy as np

from evenhand.policies.saving import _checksum


def resealed(saved):
    """The data with the checksum that belongs to them, as somebody who crafts a file has it."""
    try:
        tables = [np.asarray(saved[key], dtype=float) for key in ("arms", "groups")]
        return {**saved, "sha256": _checksum(saved, tables)}
    except (KeyError, TypeError, ValueError, OverflowError):
        return saved  # no checksum will do


# What version 1 looked like when it was first written: old files keep loading.
VERSION_1 = {
    "format": "evenhand policy",
    "version": 1,
    "policy": "TopInterval",
    "settings": {
        "groups": {"labels": ["F", "M"], "sensitive": None},
        "n_features": 1,
        "horizon": 10,
        "delta": 0.1,
        "noise": 1.0,
        "singular": "infinite",
        "ridge": None,
        "exploration": "none",
        "conventions": "PAPER",
        "seed": 5,
    },
    "round": 3,
    "arms": [
        [
            [2.0, 0.0, 0.0, 0.0],  # R: four observations at x = 1
            [6.0, 0.0, 0.0, 0.0],  # z: their mean is 3
            [0.5, 0.0, 0.0, 0.0],  # 1 / R
            [4.0, 0.0, 0.0, 0.0],  # count
            [2.0, 0.0, 0.0, 0.0],  # residual sum of squares
            [3.0, 0.0, 0.0, 0.0],  # degrees of freedom
            [1.0, 0.0, 0.0, 0.0],  # rank
            [1.0, 0.0, 0.0, 0.0],  # basis
        ]
    ],
    "groups": [],
}
