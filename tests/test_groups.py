"""Who belongs where, and what a wrong partition is told."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand as eh


def test_names_follow_the_order_of_arms():
    groups = eh.Groups(["M", "F", "M", "X", "F", "M"], sensitive="F")
    assert groups.names == ("M", "F", "X")
    assert groups.of.tolist() == [0, 1, 0, 2, 1, 0]
    assert groups.sizes.tolist() == [3, 2, 1]
    assert groups.labels == ("M", "F", "M", "X", "F", "M")
    assert groups.sensitive == "F"
    assert groups.n_arms == 6
    assert len(groups) == 3
    assert [groups.index(name) for name in groups.names] == [0, 1, 2]


def test_labels_of_any_kind_are_names():
    """A frame's column, numbers and booleans all serve; a name is what they print as."""
    groups = eh.Groups(np.array([1, 0, 1]), sensitive=1)
    assert groups.names == ("1", "0")
    assert groups.sensitive == "1"
    assert groups.index(0) == groups.index("0") == 1
    assert eh.Groups((True, False)).names == ("True", "False")


def test_no_group_need_be_sensitive():
    assert eh.Groups(["a", "b"]).sensitive is None


@given(st.lists(st.text(max_size=3), min_size=1, max_size=30))
def test_groups_are_a_partition(labels):
    groups = eh.Groups(labels)
    assert [groups.names[g] for g in groups.of] == labels
    assert len(set(groups.names)) == len(groups.names)
    assert groups.sizes.sum() == groups.n_arms == len(labels)
    assert all(groups.sizes[g] == labels.count(name) for g, name in enumerate(groups.names))


def test_crossed_groups_are_the_combinations_that_occur():
    groups = eh.Groups.crossed(
        ["F", "M", "F", "F"], [1, 1, 2, 1], ["x", "x", "x", "x"], sensitive="F & 2 & x"
    )
    assert groups.names == ("F & 1 & x", "M & 1 & x", "F & 2 & x")
    assert groups.of.tolist() == [0, 1, 2, 0]
    assert groups.sensitive == "F & 2 & x"


def test_crossing_one_attribute_changes_nothing():
    assert eh.Groups.crossed(["F", "M"], sensitive="M") == eh.Groups(["F", "M"], sensitive="M")


def test_equality_and_hash_are_by_content():
    groups = eh.Groups(["F", "M"], sensitive="F")
    assert groups == eh.Groups(["F", "M"], sensitive="F")
    assert hash(groups) == hash(eh.Groups(["F", "M"], sensitive="F"))
    assert groups != eh.Groups(["F", "M"])
    assert groups != eh.Groups(["M", "F"], sensitive="F")
    assert groups != ["F", "M"]


def test_repr_makes_the_same_groups():
    groups = eh.Groups(["F", "it's", "F"], sensitive="F")
    assert eval(repr(groups), {"Groups": eh.Groups}) == groups


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: eh.Groups("FFM"), "labels is 'FFM'; give a list with the group of every arm"),
        (lambda: eh.Groups(b"FM"), "labels is b'FM'; give a list with the group of every arm"),
        (lambda: eh.Groups([]), "labels is empty; give the group of every arm, at least one"),
        (
            lambda: eh.Groups(["F", "M"], sensitive="X"),
            "sensitive is 'X', a group without arms; allowed is one of F, M",
        ),
        (
            lambda: eh.Groups.crossed(["F", "M"], ["old"], ["x", "y"]),
            "attributes have lengths 2, 1, 2; give each one value per arm",
        ),
        (
            lambda: eh.Groups(["F", "M"]).index("X"),
            "group 'X' is unknown; known are F, M",
        ),
    ],
)
def test_errors_name_the_value_and_what_is_allowed(make, message):
    with pytest.raises(ValueError) as error:
        make()
    assert str(error.value) == message


def test_crossing_nothing_is_an_error():
    with pytest.raises(ValueError, match="give each one value per arm"):
        eh.Groups.crossed()


def test_single_arms_are_warned_of_by_name():
    """The paper assumes more than one arm in every group."""
    with pytest.warns(UserWarning) as warned:
        eh.MultiGroupFairTopInterval(["a", "b", "b", "c"], n_features=1)
    assert [str(warning.message) for warning in warned] == [
        "group a, c has a single arm: its bias cannot be told apart from the worth of that arm; "
        "give it more arms, or merge it with another group"
    ]
    # It points at the line that made the policy.
    assert warned[0].filename == __file__


def test_groups_of_two_arms_warn_of_nothing():
    # Warnings are errors in these tests.
    eh.MultiGroupFairTopInterval(["a", "a", "b", "b"], n_features=1)
