"""The command line: a file per command, which parses and prints. `_main` has the errors."""

from evenhand.cli._main import main

__all__ = ["main"]
