"""How to read what the paper leaves open: by its text and proofs, or by its code.

`PAPER` is the default. `AUTHORS_CODE` gave the published curves; use it to compare with them. The
table in docs/explanation/conventions.md says what each point changes, with measured effects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Conventions:
    """One reading of the paper, point by point.

    Attributes:
        name: its name in saved policies and reports.
        width: whether the quantile is multiplied by the standard deviation of the estimate, as in
            Algorithm 1 (line 9), or by its variance.
        level: delta / (2 n T) as in the proofs, or delta / (2 n t) as in Algorithm 1 (line 9).
        singular: the default treatment of designs without full rank.
        ties: whether ties between upper bounds are broken at random or by the lowest index.
        chain: the connected component of overlapping intervals, or two passes over the arms.
        group_choice: how NaiveFair picks its group by default.
        correction_scale: a factor on the whole correction of the m-group policy.
        group_size: whose number of arms is in the level of a group's width with m groups.
        bias_centred: whether mu is the mean of the bias or its lower end; either way the bias is
            uniform over a range of one.

    Example:
        >>> import evenhand as eh
        >>> eh.PAPER.width, eh.AUTHORS_CODE.width
        ('standard deviation', 'variance')
    """

    name: str
    width: Literal["standard deviation", "variance"] = "standard deviation"
    level: Literal["horizon", "round"] = "horizon"
    singular: Literal["infinite", "pseudo-inverse"] = "infinite"
    ties: Literal["random", "first"] = "random"
    chain: Literal["closure", "two passes"] = "closure"
    group_choice: Literal["uniform", "proportional"] = "uniform"
    correction_scale: float = 1.0
    group_size: Literal["own", "sensitive"] = "own"
    bias_centred: bool = True


PAPER = Conventions(name="PAPER")

AUTHORS_CODE = Conventions(
    name="AUTHORS_CODE",
    width="variance",
    singular="pseudo-inverse",
    ties="first",
    chain="two passes",
    group_choice="proportional",
    correction_scale=0.9,
    group_size="sensitive",
    bias_centred=False,
)

BY_NAME = {reading.name: reading for reading in (PAPER, AUTHORS_CODE)}
