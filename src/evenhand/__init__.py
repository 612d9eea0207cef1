"""evenhand: even-handed decisions from biased feedback.

Names are loaded when they are first used, so that `import evenhand` costs milliseconds and not the
second that Numba and pandas take.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand import bias as bias
    from evenhand import charts as charts
    from evenhand import contracts as contracts
    from evenhand import datasets as datasets
    from evenhand import fairness as fairness
    from evenhand import metrics as metrics
    from evenhand import offpolicy as offpolicy
    from evenhand import theory as theory
    from evenhand._compile import compiled as compiled
    from evenhand.audit import Audit as Audit
    from evenhand.audit.api import audit as audit
    from evenhand.bias import BiasReport as BiasReport
    from evenhand.conventions import AUTHORS_CODE as AUTHORS_CODE
    from evenhand.conventions import PAPER as PAPER
    from evenhand.conventions import Conventions as Conventions
    from evenhand.errors import InputError as InputError
    from evenhand.events import read_log as read_log
    from evenhand.groups import Groups as Groups
    from evenhand.policies import Decision as Decision
    from evenhand.policies import GroupFairIntervalChaining as GroupFairIntervalChaining
    from evenhand.policies import GroupFairTopInterval as GroupFairTopInterval
    from evenhand.policies import IntervalChaining as IntervalChaining
    from evenhand.policies import MultiGroupFairTopInterval as MultiGroupFairTopInterval
    from evenhand.policies import NaiveFair as NaiveFair
    from evenhand.policies import Policy as Policy
    from evenhand.policies import PooledGroupFair as PooledGroupFair
    from evenhand.policies import Scores as Scores
    from evenhand.policies import TopInterval as TopInterval
    from evenhand.policies import UniformRandom as UniformRandom
    from evenhand.policies import load as load
    from evenhand.recording import log_to as log_to
    from evenhand.recording import replay as replay
    from evenhand.recording import simulate_log as simulate_log
    from evenhand.service.client import AsyncClient as AsyncClient
    from evenhand.service.client import Client as Client
    from evenhand.simulation import simulate as simulate
    from evenhand.simulation import simulate_floor as simulate_floor
    from evenhand.worlds import CrossedWorld as CrossedWorld
    from evenhand.worlds import LinearWorld as LinearWorld
    from evenhand.worlds import PeopleWorld as PeopleWorld
    from evenhand.worlds import SyntheticWorld as SyntheticWorld
    from evenhand.worlds import TableWorld as TableWorld
    from evenhand.worlds import World as World

__version__ = "0.1.0"

_HOME = {
    "AUTHORS_CODE": "conventions",
    "Audit": "audit",
    "AsyncClient": "service.client",
    "BiasReport": "bias",
    "Client": "service.client",
    "PAPER": "conventions",
    "Conventions": "conventions",
    "CrossedWorld": "worlds",
    "Decision": "policies",
    "GroupFairIntervalChaining": "policies",
    "GroupFairTopInterval": "policies",
    "Groups": "groups",
    "InputError": "errors",
    "IntervalChaining": "policies",
    "MultiGroupFairTopInterval": "policies",
    "NaiveFair": "policies",
    "PooledGroupFair": "policies",
    "Policy": "policies",
    "Scores": "policies",
    "LinearWorld": "worlds",
    "PeopleWorld": "worlds",
    "SyntheticWorld": "worlds",
    "TableWorld": "worlds",
    "TopInterval": "policies",
    "UniformRandom": "policies",
    "World": "worlds",
    "compiled": "_compile",
    "load": "policies",
    "log_to": "recording",
    "read_log": "events",
    "replay": "recording",
    "simulate": "simulation",
    "simulate_floor": "simulation",
    "simulate_log": "recording",
}
_MODULES = {
    "audit": "audit",
    "bias": "bias",
    "charts": "charts",
    "contracts": "contracts",
    "datasets": "datasets",
    "fairness": "fairness",
    "metrics": "metrics",
    "offpolicy": "offpolicy",
    "theory": "theory",
}

__all__ = sorted([*_HOME, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"evenhand.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"evenhand.{_MODULES[name]}")
    else:
        raise AttributeError(f"module 'evenhand' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
