"""How to read what the paper leaves open: as its text and proofs say, or as its code does.

`PAPER` is the default and what we promise. `AUTHORS_CODE` is what the published curves were made
with; use it to compare with them. The table in docs/explanation/conventions.md says what each point
changes, with measured effects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Conventions:
    """One reading of the paper, point by point.

    Attributes:
        name: what a saved policy and a report call it.
        width: whether the quantile is multiplied with the standard deviation of the estimate, as
            Algorithm 1 (line 9) says, or with its variance.
        level: delta / (2 n T) as in the proofs, or delta / (2 n t) as in Algorithm 1 (line 9).
        singular: how designs without full rank are treated, unless the policy is told otherwise.
        ties: whether equal upper bounds are decided at random or for the lowest index.
        chain: the connected component of overlapping intervals, or two passes over the arms.
        group_choice: how NaiveFair picks its group, unless it is told otherwise.
        correction_scale: a factor on the whole correction of the m-group policy.
        group_size: whose number of arms is in the level of a group's width with m groups.
        bias_centred: whether mu is the mean of the bias or its lower end; it is uniform either way,
            over a range of one.

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
