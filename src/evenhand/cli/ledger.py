"""`evenhand ledger`: verify, copy, export, erase and back up the ledger of a service."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from evenhand.errors import InputError


def add(commands: Any) -> None:
    """Declare the command and its tasks."""
    command = commands.add_parser(
        "ledger",
        help="verify, copy, export, erase and back up the ledger of a service",
        description="Look after the ledger of a service, which may keep running.",
    )
    tasks = command.add_subparsers(dest="task", required=True, metavar="TASK")
    verify = tasks.add_parser("verify", help="check the chain and everything that follows from it")
    _of_config(verify)
    verify.add_argument(
        "--head", type=Path, metavar="FILE", help="an earlier head, which must be in the chain"
    )
    verify.add_argument(
        "--write-head", type=Path, metavar="FILE", help="write the head to FILE; keep it elsewhere"
    )
    verify.set_defaults(command=_verify)
    copy = tasks.add_parser("copy", help="copy the ledger to another, empty store")
    _of_config(copy)
    copy.add_argument("to", metavar="STORE", help="sqlite:FILE or postgresql://USER@HOST/DATABASE")
    copy.set_defaults(command=_copy)
    export = tasks.add_parser("export", help="write it as a log, for evenhand audit and value")
    _of_config(export)
    export.add_argument("file", type=Path, metavar="FILE", help="ends in .parquet or .csv")
    export.set_defaults(command=_export)
    erase = tasks.add_parser("erase", help="erase a person")
    _of_config(erase)
    erase.add_argument("person", metavar="PERSON", help="the id given with their decisions")
    erase.add_argument("--reason", default="", metavar="WORDS", help="kept in the ledger")
    erase.add_argument("--force", action="store_true", help="even if the retention has not passed")
    erase.set_defaults(command=_erase)
    backup = tasks.add_parser("backup", help="copy it to a file, while the service runs")
    _of_config(backup)
    backup.add_argument("file", type=Path, metavar="FILE", help="a new SQLite file")
    backup.set_defaults(command=_backup)


def _of_config(task: argparse.ArgumentParser) -> None:
    task.add_argument("config", type=Path, metavar="CONFIG", help="the TOML file of the service")


def _store(options: argparse.Namespace) -> str:
    from evenhand import service  # noqa: F401  # says what to install
    from evenhand.service.config import load

    return load(options.config).store


def _say(words: str) -> int:
    sys.stdout.write(f"{words}\n")
    return 0


def _verify(options: argparse.Namespace) -> int:
    store = _store(options)
    from evenhand.service._ledger.verification import verify, write_head

    verified = verify(store, options.head)
    if options.write_head is not None:
        write_head(options.write_head, verified)
    return _say(verified.to_words())


def _copy(options: argparse.Namespace) -> int:
    store = _store(options)
    from evenhand.service._ledger.copies import copy

    if not options.to.startswith(("sqlite:", "postgresql://", "postgres://")):
        raise InputError(f"STORE is {options.to!r}; allowed is sqlite:FILE or postgresql://...")
    return _say(f"copied {copy(store, options.to).to_words()}")


def _export(options: argparse.Namespace) -> int:
    store = _store(options)
    from evenhand.service._ledger.copies import export

    return _say(f"wrote {options.file}: {export(store, options.file).to_words()}")


def _erase(options: argparse.Namespace) -> int:
    from evenhand import service  # noqa: F401
    from evenhand.service._operator_commands import erase_person

    return _say(erase_person(options.config, options.person, options.reason, options.force))


def _backup(options: argparse.Namespace) -> int:
    store = _store(options)
    from evenhand.service._ledger.copies import copy

    if options.file.exists():
        raise InputError(f"FILE {options.file} already exists; give another name")
    return _say(f"backed up {copy(store, f'sqlite:{options.file.resolve()}').to_words()}")
