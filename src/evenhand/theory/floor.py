"""The identification floor: the regret that no policy can avoid from feedback alone.

Biased feedback shows theta_i = beta_i + psi_g. Only the assumption that the true averages of the
groups are equal tells psi_g from the arms' own worth. If they are equal only in distribution, as
when every arm's coefficients are drawn around the same mean with standard deviation tau, the
averages of the arms at hand still differ, by N(0, tau^2 (1/n_g + 1/n_r) I) between a group of n_g
arms and a reference of n_r. More rounds do not help: this part of psi_g is not identified. A
decision maker that knows every theta_i mistakes it for bias, and its regret per round is the floor.
It is zero if the averages are exactly equal, and only true rewards get below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand import _checks
from evenhand.errors import InputError, setting

_CHUNK = 2_000_000  # numbers drawn at once


class Floor(NamedTuple):
    """The floor of true regret per round, and the standard error of its simulation.

    Example:
        >>> from evenhand.theory import Floor
        >>> Floor(regret=0.06, error=0.002).regret
        0.06
    """

    regret: float
    error: float


def unidentified(sizes: Sequence[int], spread: float | Sequence[float]) -> NDArray[np.float64]:
    """The standard deviation of the unidentified part of a coordinate of psi, for every group.

    It is sqrt(tau_g^2 / n_g + tau_r^2 / n_r), where r is the last group, the reference, for which
    it is zero. No number of rounds makes an interval for psi narrower than that.

    Args:
        sizes: the number of arms of every group; the last one is the reference.
        spread: tau, the standard deviation of coefficients between the arms of a group; a number,
            or one per group.

    Example:
        >>> from evenhand.theory import unidentified
        >>> unidentified([4, 4], spread=2.0).round(3).tolist()
        [1.414, 0.0]
    """
    numbers, deviations = _groups(sizes, spread)
    variances = deviations**2 / numbers
    out: NDArray[np.float64] = np.sqrt(variances + variances[-1])
    out[-1] = 0.0
    return out


def identification_floor(
    sizes: Sequence[int],
    spread: float | Sequence[float],
    average: ArrayLike,
    contexts: ArrayLike | None = None,
    *,
    shared: bool = False,
    draws: int = 2000,
    rounds: int = 100,
    seed: int = 0,
) -> Floor:
    """The regret per round of knowing every observed coefficient and assuming equal averages.

    Coefficients are normal around `average`, and a context is drawn for every arm and round. The
    floor is the mean over `draws` draws of coefficients, with `rounds` rounds each. Use the number
    of arms, the spread and the average that a policy has learned, and contexts of your own, to see
    how much regret feedback alone must leave. `evenhand.simulate_floor` measures the same in a
    world.

    Args:
        sizes: the number of arms of every group; the last one is the reference.
        spread: tau, the standard deviation of coefficients between the arms of a group; a number,
            or one per group.
        average: the mean of the true coefficients, a number per feature.
        contexts: rows to draw contexts from; by default they are uniform on [0, 1]^d.
        shared: whether all arms of a round have the same context.
        draws: how often coefficients are drawn. The standard error falls with its root.
        rounds: the rounds for each of them.
        seed: of the random numbers.

    Example:
        >>> from evenhand.theory import identification_floor
        >>> floor = identification_floor([5, 5], spread=10 / 12**0.5, average=[35.0, 35.0])
        >>> round(floor.regret, 2)  # in the paper's synthetic world
        0.06
    """
    numbers, deviations = _groups(sizes, spread)
    mean = np.atleast_1d(_checks.numbers("average", average))
    if mean.ndim != 1:
        raise InputError(
            f"{setting('average')} has shape {mean.shape}; allowed is a number per feature"
        )
    rows = None if contexts is None else _checks.numbers("contexts", contexts)
    if rows is not None and (rows.ndim != 2 or rows.shape[1] != mean.size or not len(rows)):
        raise InputError(
            f"{setting('contexts')} has shape {rows.shape}; allowed are rows of {mean.size} "
            "features, as many as average has"
        )
    draws, rounds = _checks.whole("draws", draws, least=2), _checks.whole("rounds", rounds)
    generator = np.random.default_rng(_checks.whole("seed", seed, least=0))
    of = np.repeat(np.arange(len(numbers)), numbers.astype(np.int64))
    n, d = of.size, mean.size
    step = max(1, _CHUNK // (n * d * rounds))
    regrets = []
    for first in range(0, draws, step):
        number = min(step, draws - first)
        # The bias is not drawn: it cancels in what the decision maker knows.
        true = mean + deviations[of][:, None] * generator.standard_normal((number, n, d))
        arms = 1 if shared else n
        if rows is None:
            x = generator.random((number, rounds, arms, d))
        else:
            x = rows[generator.integers(len(rows), size=(number, rounds, arms))]
        # In chunks, so that memory does not grow with the number of draws.
        regrets.append(_regret(true, of, x))
    by_draw = np.concatenate(regrets)
    # Rounds of one draw share its coefficients and are not independent, so the error is that of the
    # means of draws.
    return Floor(float(by_draw.mean()), float(by_draw.std(ddof=1) / np.sqrt(draws)))


def _regret(
    true: NDArray[np.float64], of: NDArray[np.int64], x: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The mean regret over rounds, for every draw of coefficients."""
    averages = np.stack([true[:, of == g].mean(axis=1) for g in range(of[-1] + 1)], axis=1)
    known = true - averages[:, of] + averages[:, -1:]  # the bias cancels
    x = np.broadcast_to(x, (*x.shape[:2], *true.shape[1:]))  # if it is shared
    worth, seen = (np.einsum("drik,dik->dri", x, values) for values in (true, known))
    chosen = np.take_along_axis(worth, seen.argmax(axis=2)[:, :, None], axis=2)[:, :, 0]
    regret: NDArray[np.float64] = (worth.max(axis=2) - chosen).mean(axis=1)
    return regret


def _groups(
    sizes: Sequence[int], spread: float | Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The number of arms and the spread of every group."""
    given = np.atleast_1d(_checks.numbers("sizes", sizes))
    if given.ndim != 1 or given.size < 2:
        raise InputError(
            f"{setting('sizes')} is {_checks.shown(sizes)}; allowed are the numbers of arms of two "
            "groups or more"
        )
    numbers = np.array([_checks.whole("sizes", size) for size in given.tolist()], dtype=np.float64)
    deviations = np.atleast_1d(_checks.numbers("spread", spread))
    if deviations.size not in (1, numbers.size) or (deviations < 0.0).any():
        raise InputError(
            f"{setting('spread')} is {_checks.shown(spread)}; allowed is a number of at least 0, "
            f"or {numbers.size} of them"
        )
    return numbers, np.broadcast_to(deviations, numbers.shape)
