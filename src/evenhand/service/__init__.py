"""The decision service: decisions over HTTP, and a ledger that loses nothing.

It needs the extra `serve`. Nothing here is imported by the rest of evenhand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.errors import MissingExtraError

if TYPE_CHECKING:
    from evenhand.service._ledger.sql_ledger import SqlLedger as SqlLedger

try:
    import msgspec as _msgspec  # noqa: F401
    import structlog as _structlog  # noqa: F401
except ImportError as error:
    raise MissingExtraError("the service needs more packages: pip install 'evenhand[serve]'") from (
        error
    )


def __getattr__(name: str) -> object:
    if name != "SqlLedger":  # loaded when it is used: a client needs none of it
        raise AttributeError(f"module 'evenhand.service' has no attribute {name!r}")
    from evenhand.service._ledger.sql_ledger import SqlLedger

    return SqlLedger
