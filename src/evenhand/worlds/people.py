"""A synthetic world whose candidates, and so their groups, are new in every round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand._random import fill_uniform
from evenhand.errors import InputError, setting
from evenhand.groups import Groups
from evenhand.worlds.base import World, world_kernel

CLOSE = 1e-9  # how far from 1 a sum of shares may be


class PeopleInstance(NamedTuple):
    """The numbers fixed during a replication.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> world = eh.PeopleWorld(4, {"sex": {"F": 0.5, "M": 0.5}})
        >>> world.begin(np.random.default_rng(1)).effects.shape  # a row per level
        (2, 2)
    """

    coefficients: NDArray[np.float64]  # beta, (arms, features)
    effects: NDArray[np.float64]  # psi, (levels of all attributes, features)
    shares: NDArray[np.float64]  # of the levels
    starts: NDArray[np.int64]  # where the levels of an attribute begin; and where the last ends
    advantages: NDArray[np.float64]  # by how much a level is truly better, on every feature
    concentration: float  # of probabilities; 0 if levels are told
    missing: float  # the share of candidates who do not say
    noise: float


@world_kernel(PeopleInstance)
def _draw_round(instance, t, generator, contexts, observed, true):  # type: ignore[no-untyped-def]
    """Contexts; then per candidate and attribute what is told, and the true level.

    Probabilities have a Dirichlet distribution, and levels are drawn from them, so they are
    calibrated.
    """
    n, d = instance.coefficients.shape
    fill_uniform(generator, contexts[:, :d])
    for i in range(n):
        worth = distortion = 0.0
        for k in range(d):
            worth += instance.coefficients[i, k] * contexts[i, k]
        place = d
        for a in range(instance.starts.size - 1):
            first, last = instance.starts[a], instance.starts[a + 1]
            told, total = contexts[i, place : place + last - first + 1], 0.0
            for j in range(last - first):
                told[j] = instance.shares[first + j]
                if instance.concentration > 0.0:
                    # Independent gamma numbers with these shapes, over their sum, are Dirichlet:
                    # the mean is the share, and a larger concentration keeps them closer to it.
                    told[j] = generator.standard_gamma(instance.concentration * told[j])
                total += told[j]
            # The level is drawn from what is told, so that probabilities are calibrated by
            # construction.
            u, level = generator.random() * total, 0
            for j in range(last - first - 1):
                u -= told[j]
                if u >= 0.0 and level == j:
                    level = j + 1
            # Drawn after the level and in any case: who is silent does not depend on the level, and
            # the stream does not depend on who is.
            silent = generator.random() < instance.missing
            for j in range(last - first):
                if silent:
                    told[j] = 0.0
                elif instance.concentration > 0.0:
                    told[j] /= total
                else:
                    told[j] = 1.0 if j == level else 0.0
            told[last - first] = 1.0 if silent else 0.0
            for k in range(d):
                distortion += instance.effects[first + level, k] * contexts[i, k]
                worth += instance.advantages[first + level] * contexts[i, k]
            place += last - first + 1
        true[i] = worth
        observed[i] = worth + distortion


class PeopleWorld(World):
    """Candidates whose groups come with the round (`Groups.per_round`).

    An arm is a seat, an office or a product; it has another candidate in every round, with another
    group. The last level of an attribute has no bias; each of the others has a bias vector, uniform
    over a range of one around -`bias_mean`.

    Args:
        n_arms: the number of candidates in a round.
        attributes: the share of every level, by the names of attributes and levels.
        bias_mean: by how much the feedback on every feature is lowered.
        concentration: 0 if candidates tell their level. Otherwise only probabilities are told,
            which are calibrated; the larger the number, the closer they are to the shares, and the
            less they say. At 1 and two levels of one half, they are uniform.
        missing: the share of candidates who do not say, for each attribute.
        advantage: how much higher the true coefficients are at the first level of every attribute.
        n_features: the length d of a context.
        coefficient_range: over which range the true coefficients of an arm are uniform; 0 for
            candidates who come once, where arms mean nothing.
        lowest_coefficient: where that range begins.
        noise: the standard deviation of observed rewards around their mean.

    Example:
        >>> import evenhand as eh
        >>> world = eh.PeopleWorld(4, {"sex": {"F": 0.5, "M": 0.5}}, concentration=1.0)
        >>> world.groups.columns, world.row_length
        (('sex: F', 'sex: M', 'sex: not stated'), 5)
    """

    def __init__(
        self,
        n_arms: int,
        attributes: Mapping[str, Mapping[str, float]],
        bias_mean: float = 10.0,
        concentration: float = 0.0,
        missing: float = 0.0,
        n_features: int = 2,
        coefficient_range: float = 10.0,
        lowest_coefficient: float = 30.0,
        noise: float = 1.0,
        advantage: float = 0.0,
    ) -> None:
        self.groups = Groups.per_round(
            n_arms, {str(name): list(shares) for name, shares in attributes.items()}
        )
        self.attributes = {str(name): dict(shares) for name, shares in attributes.items()}
        for name, shares in self.attributes.items():
            good = all(isinstance(share, (int, float)) and share > 0 for share in shares.values())
            if not good or abs(sum(shares.values()) - 1.0) > CLOSE:
                raise InputError(
                    f"{setting('attributes')} has shares {_checks.shown(shares)} for {name}; "
                    "allowed are positive numbers that sum to 1"
                )
        self.n_features = _checks.whole("n_features", n_features)
        self.bias_mean = _checks.number("bias_mean", bias_mean, -np.inf, np.inf)
        self.advantage = _checks.number("advantage", advantage, -np.inf, np.inf)
        self.concentration = _checks.number("concentration", concentration, 0.0, 1e6)
        self.missing = _checks.number("missing", missing, 0.0, 1.0)
        self.coefficient_range = _checks.number("coefficient_range", coefficient_range, 0.0, np.inf)
        self.lowest_coefficient = _checks.number(
            "lowest_coefficient", lowest_coefficient, -np.inf, np.inf
        )
        self.noise = _checks.number("noise", noise, 0.0, np.inf)

    def begin(self, generator: np.random.Generator) -> PeopleInstance:
        """Draw the bias, then the coefficients."""
        sizes = [len(shares) for shares in self.attributes.values()]
        starts = np.cumsum([0, *sizes])
        bias = -(self.bias_mean - 0.5 + generator.random((int(starts[-1]), self.n_features)))
        bias[starts[1:] - 1] = 0.0
        drawn = generator.random((self.n_arms, self.n_features))
        shares = [share for of_levels in self.attributes.values() for share in of_levels.values()]
        advantages = np.zeros(len(shares))
        advantages[starts[:-1]] = self.advantage
        return PeopleInstance(
            drawn * self.coefficient_range + self.lowest_coefficient,
            bias,
            np.array(shares, dtype=np.float64),
            starts.astype(np.int64),
            advantages,
            self.concentration,
            self.missing,
            self.noise,
        )
