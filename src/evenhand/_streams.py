"""Random numbers of a policy: a counter and a mixer, which are cheap, exact and portable.

The random numbers of a decision depend only on the policy's seed and the number of the round. So
they cost two nanoseconds, the live decision and the simulation draw the same ones, and a saved
policy needs no generator state besides its seed and round. The mixer is SplitMix64 (Steele, Lea and
Flood, 2014).
"""

from __future__ import annotations

import numpy as np

from evenhand._compile import compiled, woven

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_ONE = np.uint64(1)


@woven
def mix(key, position):  # type: ignore[no-untyped-def]
    """64 well mixed bits, a function of `key` and `position` only."""
    z = np.uint64(key) + _GOLDEN * (np.uint64(position) + _ONE)
    z = (z ^ (z >> _S30)) * _FIRST
    z = (z ^ (z >> _S27)) * _SECOND
    return z ^ (z >> _S31)


@woven
def uniform(key, position):  # type: ignore[no-untyped-def]
    """A number in [0, 1) for the place `position` of the stream `key`.

    Example:
        >>> import numpy as np
        >>> from evenhand._streams import uniform
        >>> draws = [uniform(np.uint64(7), place) for place in range(1000)]
        >>> bool(0.45 < np.mean(draws) < 0.55)
        True
    """
    return float(mix(key, position) >> _S11) * (1.0 / 9007199254740992.0)


@compiled
def normal(key, position):  # type: ignore[no-untyped-def]
    """A standard normal number for the place `position` of the stream `key` (Box and Muller)."""
    first = 1.0 - uniform(key, 2 * position)
    return np.sqrt(-2.0 * np.log(first)) * np.cos(2.0 * np.pi * uniform(key, 2 * position + 1))
