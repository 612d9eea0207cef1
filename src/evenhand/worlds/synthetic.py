"""Linear worlds: true coefficients per arm and a bias vector per group, given or drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand import _checks
from evenhand._random import fill_uniform
from evenhand.conventions import PAPER, Conventions
from evenhand.errors import InputError, setting
from evenhand.groups import Groups
from evenhand.worlds._settings import groups_by_size, one_or_several, scales_of
from evenhand.worlds._variations import (
    CONTEXTS,
    NOISE_SHAPES,
    REWARDS,
    VariedInstance,
    weight_of_common,
)
from evenhand.worlds.base import World, world_kernel

_MOST_NUMBERS = 2**28  # of coefficients: arms times features, 2 GiB
_AVERAGES = ("drawn", "equal")
_ROUNDING = 1e-9  # of probabilities that are sums


class LinearInstance(NamedTuple):
    """The numbers fixed during a replication. Inherit from it for other noise, or for drift.

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
    """The paper's synthetic world: every replication draws new coefficients and a new bias.

    True coefficients are uniform on [lowest_coefficient, lowest_coefficient + coefficient_range].
    The text says "uniformly at random" and, in its appendix, "between [0, c]"; the published curves
    were made with [30, 30 + c], which is the default here. All arms of the sensitive group have the
    same bias vector, uniform over a range of one around -`bias_mean` (PAPER) or below it
    (AUTHORS_CODE).

    The settings after `conventions` depart from the paper, each in one respect. With their defaults
    the world is the paper's, number for number.

    Args:
        n_arms: the number of arms n, by default 10.
        n_features: the length d of a context.
        n_sensitive: how many of the arms are sensitive, by default half; they come first.
        bias_mean: mu, by how much the feedback on every feature is lowered; or a list with a
            number per feature.
        coefficient_range: c.
        lowest_coefficient: where that range begins.
        noise: the standard deviation of observed rewards around their mean.
        conventions: PAPER or AUTHORS_CODE.
        group_sizes: the number of arms of every group, instead of n_arms and n_sensitive. Each
            group but the last has a bias vector of its own, drawn around the same mean. More than
            two groups are called "group 1", "group 2" and so on, and the first is sensitive.
        bias_range: over which range a coordinate of the bias is uniform.
        spread: the standard deviation of the coefficients in a group, a number or a list with one
            per group, instead of `coefficient_range`; the middle of the range stays.
        averages: "drawn" if the groups' true averages are equal in distribution only, as in the
            paper's experiments; "equal" if they are exactly equal, as its text assumes: the arms of
            every group are then shifted so that their average is the middle of the range.
        advantage: by how much every true coefficient of the first group is raised, after all else:
            its true average is then higher, against the assumption.
        outstanding: by how much every true coefficient of the first arm is raised, before averages
            are made equal.
        contexts: "own" if every arm has its own in every round, "shared" if all arms of a round
            have the same, "constant" if all features are always 1.
        correlation: between any two features of an arm. A feature is then a weighted mean of a
            uniform number of its own and one that the arm's features have in common.
        scales: what each feature is multiplied by, and its coefficients divided by: other units,
            and the same rewards.
        noise_shape: "normal", or "t3" for Student's t with 3 degrees of freedom, scaled to the
            standard deviation `noise`.
        rewards: "numbers", or "binary" for rewards of 0 and 1 whose means are their probabilities
            (then `noise` is not used).
        drift: the round in which the bias reaches its full size, growing linearly from zero; 0 for
            the full size from the beginning.

    Example:
        >>> import evenhand as eh
        >>> eh.SyntheticWorld(n_arms=10, n_sensitive=3).groups.sizes.tolist()
        [3, 7]
        >>> world = eh.SyntheticWorld(group_sizes=[2, 3, 5], averages="equal", contexts="shared")
        >>> world.groups.names
        ('group 1', 'group 2', 'group 3')
    """

    def __init__(
        self,
        n_arms: int | None = None,
        n_features: int = 2,
        n_sensitive: int | None = None,
        bias_mean: float | Sequence[float] = 10.0,
        coefficient_range: float = 10.0,
        lowest_coefficient: float = 30.0,
        noise: float = 1.0,
        conventions: Conventions = PAPER,
        *,
        group_sizes: Sequence[int] | None = None,
        bias_range: float = 1.0,
        spread: float | Sequence[float] | None = None,
        averages: str = "drawn",
        advantage: float = 0.0,
        outstanding: float = 0.0,
        contexts: str = "own",
        correlation: float = 0.0,
        scales: Sequence[float] | None = None,
        noise_shape: str = "normal",
        rewards: str = "numbers",
        drift: int = 0,
    ) -> None:
        self.groups = groups_by_size(n_arms, n_sensitive, group_sizes)
        self.n_sensitive = int(self.groups.sizes[0])
        self.group_sizes = None if group_sizes is None else tuple(self.groups.sizes.tolist())
        self.n_features = _checks.whole(
            "n_features", n_features, most=_MOST_NUMBERS // self.groups.n_arms
        )
        self.bias_mean = one_or_several("bias_mean", bias_mean, self.n_features, -np.inf)
        self.bias_range = _checks.number("bias_range", bias_range, 0.0, np.inf)
        self.coefficient_range = _checks.number("coefficient_range", coefficient_range, 0.0, np.inf)
        self.lowest_coefficient = _checks.number(
            "lowest_coefficient", lowest_coefficient, -np.inf, np.inf
        )
        self.spread = (
            None if spread is None else one_or_several("spread", spread, len(self.groups), 0.0)
        )
        self.averages = _checks.one_of("averages", averages, _AVERAGES)
        self.advantage = _checks.number("advantage", advantage, -np.inf, np.inf)
        self.outstanding = _checks.number("outstanding", outstanding, -np.inf, np.inf)
        self.contexts = _checks.one_of("contexts", contexts, CONTEXTS)
        self.correlation = _checks.number("correlation", correlation, 0.0, 1.0)
        self.scales = None if scales is None else scales_of(scales, self.n_features)
        self.noise = _checks.number("noise", noise, 0.0, np.inf)
        self.noise_shape = _checks.one_of("noise_shape", noise_shape, NOISE_SHAPES)
        self.rewards = _checks.one_of("rewards", rewards, REWARDS)
        self.drift = _checks.whole("drift", drift, least=0)
        if not isinstance(conventions, Conventions):
            raise InputError(
                f"{setting('conventions')} is {conventions!r}; allowed is PAPER or AUTHORS_CODE",
                value=conventions,
            )
        self.conventions = conventions
        if rewards == "binary":
            self._check_chances()

    @property
    def middle(self) -> float:
        """The middle of the range of true coefficients, which is their mean."""
        return self.lowest_coefficient + self.coefficient_range / 2.0

    def begin(self, generator: np.random.Generator) -> LinearInstance | VariedInstance:
        """Draw the bias, then the coefficients."""
        # In this order always: the numbers of a seed depend on it.
        bias = self._draw_bias(generator)
        coefficients = self._draw_coefficients(generator)
        if not self._is_varied:
            return LinearInstance(coefficients, bias, self.noise)
        scales = np.array(self.scales or np.ones(self.n_features), dtype=np.float64)
        return VariedInstance(
            # Features are multiplied by these, so rewards stay the same.
            coefficients / scales,
            bias / scales,
            self.noise,
            scales,
            weight_of_common(self.correlation),
            CONTEXTS[self.contexts],
            NOISE_SHAPES[self.noise_shape],
            REWARDS[self.rewards],
            self.drift,
        )

    @property
    def _is_varied(self) -> bool:
        """Whether rounds are drawn in another way than in the paper's world, which is faster."""
        varied = (self.contexts, self.correlation, self.noise_shape, self.rewards, self.drift)
        return self.scales is not None or varied != ("own", 0.0, "normal", "numbers", 0)

    @property
    def _below(self) -> float:
        """How far the range of the bias begins below its mean."""
        return 0.5 * self.bias_range if self.conventions.bias_centred else 0.0

    def _draw_bias(self, generator: np.random.Generator) -> NDArray[np.float64]:
        """psi of every arm: a vector per group, and none for the last one."""
        lowest = np.asarray(self.bias_mean) - self._below
        bias = np.zeros((self.n_arms, self.n_features))
        for group in range(len(self.groups) - 1):
            drawn = generator.random(self.n_features) * self.bias_range
            bias[self.groups.of == group] = -(lowest + drawn)
        return bias

    def _draw_coefficients(self, generator: np.random.Generator) -> NDArray[np.float64]:
        """beta of every arm."""
        drawn, of = generator.random((self.n_arms, self.n_features)), self.groups.of
        if self.spread is None:
            coefficients = drawn * self.coefficient_range + self.lowest_coefficient
        else:  # a uniform number has the standard deviation 1 / sqrt(12)
            deviations = np.broadcast_to(self.spread, len(self.groups))[of]
            coefficients = self.middle + deviations[:, None] * np.sqrt(12.0) * (drawn - 0.5)
        coefficients[0] += self.outstanding
        if self.averages == "equal":
            for group in range(len(self.groups)):
                own = coefficients[of == group]
                # Shifted, not scaled: the differences between the arms of a group stay.
                coefficients[of == group] = own + (self.middle - own.mean(axis=0))
        # After the averages were made equal, or it would be taken back.
        coefficients[of == 0] += self.advantage
        return coefficients

    def _check_chances(self) -> None:
        """Refuse 0/1 rewards whose probability could be below 0 or above 1."""
        half = self.coefficient_range / 2.0
        if self.spread is not None:
            half = float(np.max(self.spread)) * 3.0**0.5
        if self.averages == "equal":
            half *= 2.0  # the average of a group may be anywhere in the range
        raised = [0.0, self.advantage, self.outstanding, self.advantage + self.outstanding]
        lowest = np.asarray(self.bias_mean) - self._below
        least, most = float(np.min(lowest)), float(np.max(lowest)) + self.bias_range
        # A context is between 0 and 1 in every feature, so the extremes of a sum are at its
        # corners.
        low = self.n_features * min(0.0, self.middle - half + min(raised) - max(most, 0.0))
        high = self.n_features * max(0.0, self.middle + half + max(raised) - min(least, 0.0))
        if low < -_ROUNDING or high > 1.0 + _ROUNDING:
            raise InputError(
                f"{setting('rewards')} is 'binary', but probabilities would be between {low:g} and "
                f"{high:g}; allowed is 0 to 1: choose lowest_coefficient, coefficient_range, "
                "bias_mean and bias_range such that the sum of an arm's coefficients, with and "
                "without its bias, stays there"
            )
