"""Linear worlds: true coefficients per arm, a bias vector per group, uniform contexts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand import _checks
from evenhand.conventions import PAPER, Conventions
from evenhand.errors import InputError, setting
from evenhand.groups import Groups
from evenhand.worlds._uniforms import fill_uniform
from evenhand.worlds.base import World, world_kernel

_MOST_NUMBERS = 2**28  # of coefficients: arms times features, 2 GiB


class LinearInstance(NamedTuple):
    """What is fixed during a replication. Inherit from it for other noise, or for drift.

    Example:
        >>> import numpy as np, evenhand as eh
        >>> world = eh.LinearWorld(["F", "M"], [[1.0], [2.0]], bias=[[-1.0], [0.0]])
        >>> world.begin(np.random.default_rng(1)).bias.tolist()  # a row per arm
        [[-1.0], [0.0]]
    """

    coefficients: NDArray[np.float64]  # beta, (arms, features)
    bias: NDArray[np.float64]  # psi of the arm's group, (arms, features)
    noise: float


@world_kernel(LinearInstance)
def _draw_round(instance, t, generator, contexts, observed, true):  # type: ignore[no-untyped-def]
    """Equation 2: true reward beta_i . x, observed reward beta_i . x + psi_g(i) . x + noise."""
    n, d = instance.coefficients.shape
    fill_uniform(generator, contexts)
    for i in range(n):
        worth = distortion = 0.0
        for k in range(d):
            x = contexts[i, k]
            worth += instance.coefficients[i, k] * x
            distortion += instance.bias[i, k] * x
        true[i] = worth
        observed[i] = worth + distortion


class LinearWorld(World):
    """A world with the coefficients and bias vectors that you give; contexts uniform on [0, 1]^d.

    Args:
        groups: the group of every arm.
        coefficients: beta, one row per arm.
        bias: psi, one row per group in the order of `groups.names`; it is *added* to rewards.
        noise: the standard deviation of observed rewards around their mean.

    Example:
        >>> import evenhand as eh
        >>> groups = eh.Groups(["F", "M"], sensitive="F")
        >>> world = eh.LinearWorld(groups, [[1.0, 2.0], [2.0, 1.0]], bias=[[-1.0, 0.0], [0.0, 0.0]])
        >>> world.n_arms, world.n_features
        (2, 2)
    """

    def __init__(
        self,
        groups: Groups | Sequence[object],
        coefficients: ArrayLike,
        bias: ArrayLike,
        noise: float = 1.0,
    ) -> None:
        self.groups = groups if isinstance(groups, Groups) else Groups(groups)
        self.coefficients = np.array(coefficients, dtype=np.float64, ndmin=2)
        self.bias = np.array(bias, dtype=np.float64, ndmin=2)
        self.noise = _checks.number("noise", noise, 0.0, np.inf)
        self.n_features = self.coefficients.shape[1]
        for name, array, rows in (
            ("coefficients", self.coefficients, self.groups.n_arms),
            ("bias", self.bias, len(self.groups)),
        ):
            if array.shape != (rows, self.n_features) or not np.isfinite(array).all():
                raise InputError(
                    f"{name} has shape {array.shape}; allowed are ({rows}, {self.n_features}) "
                    "finite numbers"
                )

    def begin(self, generator: np.random.Generator) -> LinearInstance:
        """The same in every replication."""
        return LinearInstance(self.coefficients, self.bias[self.groups.of], self.noise)


class SyntheticWorld(World):
    """The paper's synthetic world: coefficients and bias are drawn anew in every replication.

    True coefficients are uniform on [lowest_coefficient, lowest_coefficient + coefficient_range].
    The text says "uniformly at random" and, in its appendix, "between [0, c]"; the published curves
    were made with [30, 30 + c], which is the default here. All arms of the sensitive group have the
    same bias vector, uniform over a range of one around -`bias_mean` (PAPER) or below it
    (AUTHORS_CODE).

    Args:
        n_arms: the number of arms n.
        n_features: the length d of a context.
        n_sensitive: how many of the arms are sensitive, by default half; they come first.
        bias_mean: mu, by how much the feedback on every feature is lowered.
        coefficient_range: c.
        lowest_coefficient: where that range begins.
        noise: the standard deviation of observed rewards around their mean.
        conventions: PAPER or AUTHORS_CODE.

    Example:
        >>> import evenhand as eh
        >>> eh.SyntheticWorld(n_arms=10, n_sensitive=3).groups.sizes.tolist()
        [3, 7]
    """

    def __init__(
        self,
        n_arms: int = 10,
        n_features: int = 2,
        n_sensitive: int | None = None,
        bias_mean: float = 10.0,
        coefficient_range: float = 10.0,
        lowest_coefficient: float = 30.0,
        noise: float = 1.0,
        conventions: Conventions = PAPER,
    ) -> None:
        n = _checks.whole("n_arms", n_arms, least=2, most=10**7)
        self.n_features = _checks.whole("n_features", n_features, most=_MOST_NUMBERS // n)
        self.n_sensitive = (
            n // 2 if n_sensitive is None else _checks.whole("n_sensitive", n_sensitive)
        )
        if self.n_sensitive >= n:
            raise InputError(
                f"{setting('n_sensitive')} is {n_sensitive}; allowed is 1 to {n - 1} of {n} arms"
            )
        self.bias_mean = _checks.number("bias_mean", bias_mean, -np.inf, np.inf)
        self.coefficient_range = _checks.number("coefficient_range", coefficient_range, 0.0, np.inf)
        self.lowest_coefficient = _checks.number(
            "lowest_coefficient", lowest_coefficient, -np.inf, np.inf
        )
        self.noise = _checks.number("noise", noise, 0.0, np.inf)
        if not isinstance(conventions, Conventions):
            raise InputError(
                f"{setting('conventions')} is {conventions!r}; allowed is eh.PAPER or "
                "eh.AUTHORS_CODE",
                value=conventions,
            )
        self.conventions = conventions
        self.groups = Groups(
            ["sensitive"] * self.n_sensitive + ["other"] * (n - self.n_sensitive), "sensitive"
        )

    def begin(self, generator: np.random.Generator) -> LinearInstance:
        """Draw the bias, then the coefficients."""
        n, d = self.n_arms, self.n_features
        lowest = self.bias_mean - (0.5 if self.conventions.bias_centred else 0.0)
        bias = np.zeros((n, d))
        bias[: self.n_sensitive] = -(lowest + generator.random(d))
        coefficients = generator.random((n, d)) * self.coefficient_range + self.lowest_coefficient
        return LinearInstance(coefficients, bias, self.noise)
