"""Audits of logs: which groups the feedback is biased against, on what, and how sure that is.

The rows stay where they are. One aggregation (Ibis, on DuckDB, PostgreSQL or Spark) sums them up,
and all else is computed from the sums. `evenhand.audit(...)` calls `audit`: this module can be
called, so that the package and its only verb may share a name.
"""

import sys
from types import ModuleType

from evenhand.audit._report.result import Audit
from evenhand.audit.api import audit

__all__ = ["Audit", "audit"]


class _Callable(ModuleType):
    """A module that can be called as its main function."""

    __call__ = staticmethod(audit)


sys.modules[__name__].__class__ = _Callable
