"""The random numbers: the right law, and nothing to see between neighbours.

The keys are fixed, so a test passes always or never. Its comment says how often a perfect source
with another key would fail it.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import evenhand as eh
from evenhand import compiled
from evenhand._random import mix, normal, uniform
from evenhand.policies._kernels import EXPLORES, PICKS

MANY = 100_000
KEYS = [0, 1, 2, 12345, 2**63 - 1, 2**64 - 1]


@compiled
def bits_of(key, positions):
    out = np.empty(positions.size, dtype=np.uint64)
    for k in range(positions.size):
        out[k] = mix(key, positions[k])
    return out


@compiled
def uniforms_of(key, positions):
    out = np.empty(positions.size)
    for k in range(positions.size):
        out[k] = uniform(key, positions[k])
    return out


@compiled
def normals_of(key, positions):
    out = np.empty(positions.size)
    for k in range(positions.size):
        out[k] = normal(key, positions[k])
    return out


@compiled
def uniforms_by_round(key, rounds, place):
    """As policies draw: a key of its own for every round, then a place in it."""
    out = np.empty(rounds)
    for t in range(1, rounds + 1):
        out[t - 1] = uniform(mix(key, t), place)
    return out


def drawn(draw, key, count=MANY, first=0):
    return draw(np.uint64(key), np.arange(first, first + count))


def test_the_mixer_is_splitmix64():
    """The first five outputs of SplitMix64 from the seed 1234567, known from its description."""
    assert drawn(bits_of, 1234567, 5).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_a_number_is_a_function_of_key_and_position():
    some = drawn(uniforms_of, 7, 100)
    assert drawn(uniforms_of, 7, 50, first=50).tolist() == some[50:].tolist()
    assert uniform(np.uint64(7), 31) == some[31]
    assert uniform(7, 31) == some[31]


@pytest.mark.parametrize("key", KEYS)
def test_uniforms_are_uniform(key):
    """Kolmogorov and Smirnov at 1e-5: six keys, so a false alarm in 1 of 17,000."""
    draws = drawn(uniforms_of, key)
    assert draws.min() >= 0.0
    assert draws.max() < 1.0
    assert stats.kstest(draws, "uniform").pvalue > 1e-5


def test_uniforms_stay_uniform_far_along_the_stream():
    """At 1e-5."""
    assert stats.kstest(drawn(uniforms_of, 7, first=2**52), "uniform").pvalue > 1e-5


@pytest.mark.parametrize("key", KEYS)
def test_normals_are_normal(key):
    """Kolmogorov and Smirnov at 1e-5, four moments at five standard errors: 1 of 12,000."""
    draws = drawn(normals_of, key)
    assert np.isfinite(draws).all()
    assert stats.kstest(draws, "norm").pvalue > 1e-5
    # A power of a normal number has the mean and the variance of these moments.
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(np.mean(draws**power) - mean) < 5.0 * np.sqrt(variance / MANY)


@pytest.mark.parametrize("draw", [uniforms_of, normals_of])
def test_neighbouring_positions_are_independent(draw):
    """Correlations at ten lags and five standard errors: a false alarm in 1 of 90,000."""
    draws = drawn(draw, 7)
    for lag in range(1, 11):
        r = np.corrcoef(draws[:-lag], draws[lag:])[0, 1]
        assert abs(r) < 5.0 / np.sqrt(MANY)


@pytest.mark.parametrize("draw", [uniforms_of, normals_of])
def test_neighbouring_keys_are_independent(draw):
    """20 neighbours of 5 keys at five standard errors: a false alarm in 1 of 17,000."""
    for key in KEYS[:-1]:
        first = drawn(draw, key)
        for step in range(1, 21):
            r = np.corrcoef(first, drawn(draw, key + step))[0, 1]
            assert abs(r) < 5.0 / np.sqrt(MANY)


def test_one_position_of_many_keys_is_uniform():
    """Kolmogorov and Smirnov at 1e-5 over keys 0, 1, 2, ... in five places: 1 of 20,000."""
    for position in range(5):
        draws = [uniform(np.uint64(key), position) for key in range(10_000)]
        assert stats.kstest(draws, "uniform").pvalue > 1e-5


def test_pairs_fill_the_square():
    """Chi-squared on 16 x 16 cells at 1e-5, over neighbouring positions and over keys."""
    here = drawn(uniforms_of, 7)
    for other in (drawn(uniforms_of, 7, first=1), drawn(uniforms_of, 8)):
        cells = np.histogram2d(here, other, bins=16, range=[[0, 1], [0, 1]])[0]
        assert stats.chisquare(cells.ravel()).pvalue > 1e-5


def test_the_draws_of_a_policys_rounds_are_independent():
    """Whether a round explores tells nothing of the arm it picks, nor of the next round.

    For three policies with neighbouring seeds, chi-squared on 16 x 16 cells at 1e-5, four times
    each: a false alarm in 1 of 8,000.
    """
    for seed in (1, 2, 3):
        key = eh.UniformRandom(["F", "M"], n_features=1, seed=seed)._key
        explores = uniforms_by_round(key, MANY, EXPLORES)
        picks = uniforms_by_round(key, MANY, PICKS)
        next_seed = eh.UniformRandom(["F", "M"], n_features=1, seed=seed + 1)._key
        for first, other in (
            (explores, picks),
            (explores[:-1], explores[1:]),
            (picks[:-1], explores[1:]),
            (picks, uniforms_by_round(next_seed, MANY, PICKS)),
        ):
            cells = np.histogram2d(first, other, bins=16, range=[[0, 1], [0, 1]])[0]
            assert stats.chisquare(cells.ravel()).pvalue > 1e-5


def test_every_bit_is_balanced():
    """64 bits at five standard errors: a false alarm in 1 of 27,000."""
    bits = drawn(bits_of, 7)
    for place in range(64):
        ones = np.mean((bits >> np.uint64(place)) & np.uint64(1))
        assert abs(ones - 0.5) < 5.0 * 0.5 / np.sqrt(MANY)


def test_flipping_one_bit_of_the_key_flips_half_of_the_output():
    """2,000 positions for each of 64 bits; a mean of 64 coins, 32 +- 4, at five standard errors."""
    before = drawn(bits_of, 12345, 2_000)
    for place in range(64):
        changed = before ^ drawn(bits_of, 12345 ^ (1 << place), 2_000)
        flipped = np.unpackbits(changed.view(np.uint8)).sum() / 2_000
        assert abs(flipped - 32.0) < 5.0 * 4.0 / np.sqrt(2_000)
