"""The promises that every policy keeps, as checks that run on any class of policies.

`check(MyPolicy)` runs them all. `CONTRACTS` lists them, for tests that run them one by one; the
tests of evenhand run them on every policy.

Statistical checks have fixed seeds and a level of 1e-6: a policy that keeps its promise fails such
a check with a probability of one in a million, and then always.
"""

from __future__ import annotations

from evenhand.contracts import _decisions, _input, _learning  # noqa: F401 (they fill the list)
from evenhand.contracts._common import CONTRACTS, Contract
from evenhand.policies.base import Policy

__all__ = ["CONTRACTS", "Contract", "check"]


def check(policy: type[Policy]) -> None:
    """Run every contract on a class of policies; the first that fails raises AssertionError.

    Example:
        >>> import evenhand as eh
        >>> eh.contracts.check(eh.TopInterval)
    """
    for contract in CONTRACTS:
        try:
            contract(policy)
        except AssertionError as error:
            raise AssertionError(
                f"{policy.__name__} breaks the contract {contract.__name__}: {contract.__doc__} "
                f"{error}"
            ) from error
