"""The decision service: decisions over HTTP, and a ledger that loses nothing.

It needs the extra `serve`. Nothing here is imported by the rest of evenhand.
"""

from __future__ import annotations

from evenhand.errors import MissingExtraError

try:
    import msgspec as _msgspec  # noqa: F401
    import structlog as _structlog  # noqa: F401
except ImportError as error:
    raise MissingExtraError("the service needs more packages: pip install 'evenhand[serve]'") from (
        error
    )

from evenhand.service._ledger.log import SqlLedger as SqlLedger
