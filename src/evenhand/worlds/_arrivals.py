"""True rewards that become known some rounds after the decision, for some decisions.

Their random numbers are a stream of their own, so that everything else in a world stays the same
with and without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand._compile import compiled
from evenhand._prose import number_of
from evenhand._random import mix, normal, uniform
from evenhand.errors import InputError

_STREAM = 0x74727565  # a place among the streams of a replication
_MOST_DELAY = 10_000_000  # rounds whose true rewards are pending, each with its context
_ARRIVES, _NOISE = 0, 1


class TrueRewards(NamedTuple):
    """Which decisions of a world get a true reward, and when: see `World.with_true_rewards`.

    Example:
        >>> import evenhand as eh
        >>> world = eh.SyntheticWorld().with_true_rewards(share=0.05, delay=50)
        >>> world.true_rewards.share, world.true_rewards.delay
        (0.05, 50)
    """

    share: float
    delay: int = 0
    noise: float = 1.0
    common: float = 0.0
    by_context: float | tuple[float, ...] = 0.0
    by_outcome: float = 0.0
    scale: float = 1.0
    offset: float = 0.0


class Arrivals(NamedTuple):
    """The same for compiled code, in one replication."""

    share: float
    delay: int
    noise: float
    common: float
    by_context: NDArray[np.float64]
    by_outcome: float
    scale: float
    offset: float
    depends: bool
    key: int


def checked(
    n_features: int,
    share: float,
    delay: int,
    noise: float,
    common: float,
    by_context: float | Sequence[float],
    by_outcome: float,
    scale: float,
    offset: float,
) -> TrueRewards:
    """The settings of `World.with_true_rewards`, or an error that names the wrong one."""
    slopes: float | tuple[float, ...]
    if isinstance(by_context, (int, float)):
        slopes = _checks.number("by_context", by_context, -np.inf, np.inf)
    else:
        slopes = tuple(_checks.number("by_context", slope, -np.inf, np.inf) for slope in by_context)
        if len(slopes) != n_features:
            raise InputError(
                f"by_context has {number_of(len(slopes), 'number')}; give one for each of "
                f"{n_features} features"
            )
    scale = _checks.number("scale", scale, 0.0, np.inf)
    if scale == 0.0:
        raise InputError("scale is 0; allowed is a number above 0")
    return TrueRewards(
        _checks.number("share", share, 0.0, 1.0),
        _checks.whole("delay", delay, least=0, most=_MOST_DELAY),
        _checks.number("noise", noise, 0.0, np.inf),
        _checks.number("common", common, -np.inf, np.inf),
        slopes,
        _checks.number("by_outcome", by_outcome, -np.inf, np.inf),
        scale,
        _checks.number("offset", offset, -np.inf, np.inf),
    )


def arrivals_of(settings: TrueRewards, n_features: int, stream: np.random.SeedSequence) -> Arrivals:
    """The arrivals of a replication, whose random numbers come from its stream."""
    # A child of the replication's stream: as independent as the replications are.
    own = np.random.SeedSequence(stream.entropy, spawn_key=(*stream.spawn_key, _STREAM))
    slopes = np.broadcast_to(np.asarray(settings.by_context, dtype=np.float64), n_features).copy()
    return Arrivals(
        settings.share,
        settings.delay,
        settings.noise,
        settings.common,
        slopes,
        settings.by_outcome,
        settings.scale,
        settings.offset,
        # At a share of 0 or 1 log-odds are infinite, and nothing can depend on anything.
        bool(slopes.any() or settings.by_outcome) and 0.0 < settings.share < 1.0,
        int(own.generate_state(1, np.uint64)[0]) >> 1,
    )


def waiting_room(settings: TrueRewards, row_length: int) -> NDArray[np.float64]:
    """A row for every round whose true reward may be pending: round, arm, value, reward, x."""
    return np.zeros((settings.delay + 1, 4 + row_length))


@compiled
def true_reward_of(arrivals, t, x, mean, surprise):  # type: ignore[no-untyped-def]
    """Whether the decision of round t gets a true reward, and which.

    `mean` is the true reward without noise, and `surprise` the noise of the observed reward.
    """
    key = mix(arrivals.key, t)
    noise = arrivals.common * surprise + arrivals.noise * normal(key, _NOISE)
    chance = arrivals.share
    if arrivals.depends:
        # Log-odds, so that any dependence leaves a probability.
        odds = log(chance / (1.0 - chance)) + arrivals.by_outcome * noise
        for k in range(arrivals.by_context.size):  # membership may follow the features
            odds += arrivals.by_context[k] * x[k]
        chance = 1.0 / (1.0 + exp(min(max(-odds, -700.0), 700.0)))
    # offset + scale * z is in units of feedback, so z is turned the other way.
    return uniform(key, _ARRIVES) < chance, (mean + noise - arrivals.offset) / arrivals.scale
