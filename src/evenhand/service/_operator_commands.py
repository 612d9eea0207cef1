"""Starting the service from the command line, and making keys."""

from __future__ import annotations

import dataclasses
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from evenhand.errors import InputError, setting
from evenhand.service import _auth
from evenhand.service._engine import Engine
from evenhand.service._ledger import entries as kinds
from evenhand.service._ledger.asks import Call
from evenhand.service._ledger.erasure import EraseAsk
from evenhand.service._ledger.sqlite_and_postgres import Unavailable
from evenhand.service._service import Service, run, set_up_logs
from evenhand.service.config import Config, load


def serve(path: Path, port: int | None) -> None:
    """Run the service of a configuration until it is told to stop."""
    config = load(path)
    if port is not None:
        config = dataclasses.replace(config, server=dataclasses.replace(config.server, port=port))
    serve_config(config)


def serve_config(
    config: Config, begin: Callable[[str], Callable[[], None]] | None = None, note: str = ""
) -> None:
    """The same, for a configuration that is already loaded.

    `begin` is called with the address once the service listens, and returns a function to call at
    the end.
    """
    set_up_logs()
    listener = _listening(config)
    try:
        service = Service(config)
    except Exception as error:
        listener.close()
        if isinstance(error, Unavailable):
            raise InputError(f"the store is not available: {error}") from error
        raise
    token = service.first_token()
    listener.listen(2048)  # a request that comes at once waits a moment, and is not refused
    host, number = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{number}"
    say = sys.stdout.write
    say(f"evenhand serves {config.title!r} at {address}\n")
    if note:
        say(f"{note}\n")
    say(f"ledger: {service.engine.database.name}, {service.engine.state.version} entries\n")
    if token is not None:
        say(f"first login (works once, within a day): {address}/login?token={token}\n")
    sys.stdout.flush()
    end = begin(address) if begin is not None else None
    try:
        run(service, listener)
    finally:
        if end is not None:
            end()


def _listening(config: Config) -> socket.socket:
    """The socket, bound before anything is opened: a second start must not touch the ledger."""
    server = config.server
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((server.host, server.port))
    except OSError as error:
        listener.close()
        raise InputError(
            f"{server.host}:{server.port} cannot be used: {error.strerror}; choose another port"
        ) from error
    listener.set_inheritable(True)
    return listener


def make_keys(path: Path, wanted: list[str]) -> list[str]:
    """Make keys, and return a line with each. They are not shown again."""
    engine = Engine(load(path))
    lines = []
    asks = []
    for text in wanted:
        name, _, listed = text.partition("=")
        roles = listed.split(",") if listed else []
        wrong = [role for role in roles if role not in _auth.ROLES]
        if not name or not roles or wrong:
            raise InputError(
                f"{setting('key')} is {text!r}; allowed is NAME=ROLE,ROLE with roles "
                f"{', '.join(_auth.ROLES)}"
            )
        key = _auth.new_key()
        note = (kinds.KEY, kinds.Key("add", name, roles, "command line"))
        asks.append(Call(_auth.add_key, name, roles, key, note=note))
        lines.append(f"{name}: {key}")
    engine.database.is_beside = True
    engine.prepare_store()
    engine.store.write(asks)
    engine.store.drop()
    return lines


def erase_person(path: Path, person: str, reason: str, force: bool) -> str:
    """Erase a person, and say how many decisions were erased."""
    config = load(path)
    engine = Engine(config)
    engine.database.is_beside = True
    engine.prepare_store()
    engine.secret = engine.store.secret()
    retention = int(config.retention * 1e6)
    ask = EraseAsk(engine.pseudonym(person), "command line", reason, retention, force)
    engine.store.write([ask])
    engine.store.drop()
    if ask.status >= 400:
        raise InputError(f"PERSON was not erased: {ask.answer}")
    return f"{ask.answer} decisions were erased"
