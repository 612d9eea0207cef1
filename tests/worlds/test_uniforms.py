"""Uniform numbers drawn in compiled code are NumPy's own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand as eh
from evenhand import compiled
from evenhand._random import fill_uniform, layout_is_known
from evenhand.worlds._instances import begin


@compiled
def drawn(generator, numbers):
    """Uniform numbers, and what NumPy draws next."""
    fill_uniform(generator, numbers)
    return generator.standard_normal()


def test_the_layout_of_this_numpy_is_known():
    """Otherwise all of this is true as well, and slower: see `fill_uniform`."""
    assert layout_is_known()


@given(st.integers(0, 2**64 - 1), st.integers(0, 7), st.integers(0, 5))
def test_the_numbers_are_those_of_numpy(seed, rows, columns):
    ours, other = np.random.default_rng(seed), np.random.default_rng(seed)
    filled = np.full((rows, columns), -1.0)
    after = drawn(ours, filled)
    assert (filled == other.random((rows, columns))).all()
    assert after == other.standard_normal()
    assert ours.bit_generator.state == other.bit_generator.state


def test_arrays_that_are_not_in_c_order():
    ours, other = np.random.default_rng(3), np.random.default_rng(3)
    filled = np.full((4, 6), -1.0)
    drawn(ours, filled[:, ::2])
    assert (filled[:, ::2] == other.random((4, 3))).all() and (filled[:, 1::2] == -1.0).all()


def test_other_bit_generators_are_refused():
    other = np.random.Generator(np.random.MT19937(1))
    with pytest.raises(ValueError, match="generator has a MT19937; allowed is a PCG64"):
        begin(eh.SyntheticWorld(), other)
