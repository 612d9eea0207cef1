"""Answers about candidates: intervals of their worth, and the parts of a score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.groups import Groups
from evenhand.policies.decision import Scores
from evenhand.policies.pooled_group_fair.general._design import ColumnsOfGroups

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.policies.pooled_group_fair.measured import Measured

Array = NDArray[np.float64]


def intervals_of(
    rows: Array,
    learned: tuple[Any, Measured],
    groups: Groups,
    design: ColumnsOfGroups | None,
    reference: Array,
    level: float,
    corrected: bool,
) -> tuple[Array, Array]:
    """Estimate and width of the reward of every candidate.

    Args:
        rows: the context of every arm, with the groups of the candidates if they come with it.
        learned: the posterior, and what true rewards say beside it.
        groups: of the arms.
        design: of the general form, if it is in use.
        reference: the weights of the groups in it.
        level: the probability that an interval holds the truth.
        corrected: whether for the bias of the group, by true rewards where they are in use.
    """
    beliefs, measured = learned
    by_truth = corrected and measured.usable
    if design is None:
        estimate, width = beliefs.of_arms(rows, level, corrected and not by_truth)
        contrasts = np.eye(len(groups))[groups.of] - reference
    else:
        d = rows.shape[1] - (design.n_levels if groups.changes else 0)
        levels = rows[:, d:] if groups.changes else design.levels
        rows, weights = rows[:, :d], design.weights(levels)
        estimate, width = beliefs.of_candidates(rows, weights, level, corrected and not by_truth)
        contrasts = weights - reference
    if not by_truth:
        return estimate, width
    every = np.ones(len(rows), dtype=bool)
    bias, bias_width = measured.of_contrasts(rows, contrasts, every, level)
    return estimate - bias, np.hypot(width, bias_width)


def explanation_of(scores: Scores, z: float, labels: Sequence[str], priced: bool) -> pd.DataFrame:
    """The score of every arm at the z of its round, and the parts that add up to it.

    Args:
        scores: of the decision.
        z: the random number of the round.
        labels: the group of every candidate.
        priced: whether groups have a price, for their shares.
    """
    import pandas as pd

    parts = {
        "estimate": scores.estimate,
        "correction": scores.correction,
        "bonus": z * scores.width,
    }
    if priced:  # what `upper` has beside the parts; nothing before the first reward
        known = np.isfinite(scores.upper)
        others = scores.estimate + scores.width + scores.correction
        parts["price"] = np.where(known, scores.upper, 0.0) - np.where(known, others, 0.0)
    return pd.DataFrame({"group": labels, **parts, "score": sum(parts.values())})
