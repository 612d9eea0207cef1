"""Columns and logs of the wrong kind are refused alike at every door, before anything is read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import InputError

PEOPLE = pd.DataFrame({"g": ["F", "M"] * 10, "x": [1, 2, 2, 3] * 5, "y": np.linspace(0.0, 1.0, 20)})
DOORS = {"g": ["F", "M"] * 10, "x": range(20), "y": [0.5] * 20, "p": [0.5] * 20}


def audit(**given):
    return eh.audit(PEOPLE, **{"group": "g", "reward": "y", **given})


def value(log="log.csv", **given):
    return eh.offpolicy.read_logged(log, **given)


@pytest.mark.parametrize(
    ("call", "given", "allowed"),
    [
        (audit, {"features": 3}, "a list of columns"),
        (audit, {"nominal_columns": 3}, "a list of columns"),
        (audit, {"leave_out": [None]}, "a list of columns"),
        (audit, {"leave_out": None}, "a list of columns"),
        (audit, {"group": {"sex": "F"}}, "a column or a list of columns"),
        (audit, {"reward": ["y"]}, "the name of one column"),
        (audit, {"count": True}, "the name of one column"),
        (audit, {"timestamp": 3.5}, "the name of one column"),
        (audit, {"columns": 3}, "a mapping from roles to columns, "),
        (audit, {"unfavourable": "no"}, "True or False"),
        (audit, {"logistic": "no"}, "True or False"),
        (audit, {"weigh_by_propensity": "no"}, "True or False"),
        (audit, {"title": 3}, "a string"),
        (value, {"features": 3}, "a list of columns"),
        (value, {"features": "x"}, "a list of columns"),
        (value, {"nominal_columns": 3}, "a list of columns"),
        (value, {"columns": ["y"]}, "a mapping from roles to columns, "),
    ],
)
def test_what_names_no_column_is_refused(call, given, allowed):
    with pytest.raises(InputError) as refused:
        call(**given)
    error, (name, wrong) = refused.value, next(iter(given.items()))
    assert (error.parameter, error.value) == (name, wrong)
    assert error.allowed is not None and error.allowed.startswith(allowed)
    assert str(error).startswith(f"{name} is {wrong!r}; allowed ")


def test_a_column_may_be_called_by_its_number():
    numbered = PEOPLE.set_axis([0, 1, 2], axis=1)
    by_number = eh.audit(numbered, group=0, reward=np.int64(2), features=[1]).bias
    by_name = audit(features=["x"]).bias
    assert by_number.by_group["estimate"].tolist() == by_name.by_group["estimate"].tolist()


@pytest.mark.parametrize("log", [PEOPLE, 3, None, {"g": ["F"]}, b"log.csv"], ids=type)
def test_a_log_to_value_is_a_path(log):
    with pytest.raises(InputError, match=r"^log is (an? )?[a-zA-Z]+; allowed is the path of a "):
        value(log)


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (pd.DataFrame(), "log has no columns; give a table with some"),
        ([1, 2], "log is a list; allowed is a data frame, a mapping of columns, or the path of "),
        ({"g": ["F", "M"], "y": [1]}, "log is a dict that cannot be turned into a table "),
        (
            PEOPLE.assign(k=pd.arrays.IntervalArray.from_breaks(range(21))),
            "column 'k' is of the type interval[int64, right]; allowed are numbers, text, ",
        ),
    ],
)
def test_a_log_to_audit_that_is_no_table(log, message):
    with pytest.raises(InputError) as refused:
        eh.audit(log, group="g", reward="y")
    assert str(refused.value).startswith(message)


def test_an_audit_takes_a_mapping_as_a_world_does():
    by_column = eh.audit(PEOPLE.to_dict("list"), group="g", reward="y")
    assert by_column.bias.by_group.equals(audit().bias.by_group)


def test_a_reference_with_another_column_in_front_is_refused():
    assert audit(reference="g=F").bias.by_group.equals(audit(reference="F").bias.by_group)
    with pytest.raises(InputError, match=r"^reference is 'sex=F'; allowed is one of F, M$"):
        audit(reference="sex=F")


def test_every_group_may_be_its_own_arm(tmp_path):
    path = tmp_path / "log.csv"
    pd.DataFrame(DOORS).to_csv(path, index=False)
    roles = {"reward": "y", "propensity": "p"}
    log = value(path, columns={**roles, "arm": "g", "group": "g"})
    assert log.groups.labels == ("F", "M") and log.arms.tolist() == [0, 1] * 10
    pd.DataFrame({**DOORS, "g": [0, 1] * 10}).to_csv(path, index=False)
    assert value(path, columns={**roles, "arm": "g", "group": "g"}).groups.labels == ("g=0", "g=1")
