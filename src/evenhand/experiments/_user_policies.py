"""Policies as experiment files name them: with settings of their own, or from a user's file."""

from __future__ import annotations

import hashlib
import sys
from functools import partial
from importlib import import_module, invalidate_caches
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from evenhand.errors import InputError
from evenhand.policies._settings import settings_of as constructor_settings
from evenhand.policies.base import Policy
from evenhand.simulation._replications import PolicyMaker

IMPORTED: dict[Path, str] = {}  # users' files with policies, and the hash of each


class Own(partial[Policy]):
    """A policy with its own settings, which override those of [run]."""

    def __call__(self, *args: Any, **settings: Any) -> Policy:
        """Make the policy."""
        return self.func(*args, **{**settings, **self.keywords})


def policy_from(path: Path, name: str) -> type[Policy]:
    """The class `name` in a Python file, which is imported as a module from its folder."""
    path = path.resolve()
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    code = hashlib.sha256(path.read_bytes()).hexdigest()
    if IMPORTED.get(path, code) != code:
        raise InputError(f"{path.name} has changed since it was imported; restart Python")
    module = _module(path)
    IMPORTED[path] = code
    known = {
        label: kind
        for label, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, Policy) and kind is not Policy
    }
    if name not in known:
        raise InputError(
            f"{path.name} has no policy {name!r}; it has {', '.join(sorted(known)) or 'none'}"
        )
    kind = known[name]
    if kind.rule is Policy.rule and kind.score is Policy.score:
        raise InputError(f"{name} has neither a rule nor a score; write one of them")
    return kind


def is_own(make: PolicyMaker) -> bool:
    """Whether a policy comes from a user's file."""
    module = sys.modules.get(getattr(make, "func", make).__module__)
    return Path(getattr(module, "__file__", None) or "").resolve() in IMPORTED


def _module(path: Path) -> ModuleType:
    """The module of a file, by its plain name, under which the processes of a run import it too."""
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    invalidate_caches()
    try:
        spec = find_spec(path.stem)
        if spec is not None and spec.origin and Path(spec.origin).resolve() == path:
            return import_module(path.stem)
    except (Exception, SystemExit) as error:  # whatever the user's file does
        raise InputError(
            f"{path.name} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    raise InputError(f"{path.stem} is also the name of another module; rename {path.name}")


def settings_of(kind: type[Policy]) -> set[str]:
    """The settings that a file can give to a policy."""
    of_a_run = {"groups", "n_features", "horizon", "seed", "conventions"}
    return set(constructor_settings(kind)) - of_a_run
