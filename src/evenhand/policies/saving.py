"""A policy as JSON: versioned, readable, and the same bits when it comes back.

Numbers are written with the digits that give the same double again. Nothing is executed on
loading: only policies whose class has been imported can be made.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand.conventions import BY_NAME, Conventions
from evenhand.groups import Groups
from evenhand.leastsquares import Regressions
from evenhand.leastsquares.saved import from_saved, saved_shape, saved_tail, to_saved
from evenhand.leastsquares.table import COUNT, RANK, RIDGE
from evenhand.policies.base import POLICIES, Policy
from evenhand.policies.memory import estimate_noise

FORMAT, VERSION = "evenhand policy", 1


def to_dict(policy: Policy) -> dict[str, Any]:
    """Settings and state of a policy as plain data, for a file or a database.

    Example:
        >>> import evenhand as eh
        >>> from evenhand.policies.saving import to_dict
        >>> saved = to_dict(eh.TopInterval(["F", "M"], n_features=1, seed=3))
        >>> saved["policy"], saved["version"], saved["settings"]["seed"]
        ('TopInterval', 1, 3)
    """
    memory = policy._memory
    return {
        "format": FORMAT,
        "version": VERSION,
        "policy": type(policy).__name__,
        "settings": {name: _plain(name, value) for name, value in policy.settings().items()},
        "round": policy.round,
        "arms": _regressions(memory.arms),
        "groups": _regressions(memory.groups),
    }


def from_dict(saved: dict[str, Any]) -> Policy:
    """The policy that `to_dict` described."""
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        raise ValueError(f"this is not a saved policy: its format is not {FORMAT!r}")
    if saved.get("version") != VERSION:
        raise ValueError(
            f"version is {saved.get('version')!r}; this evenhand reads version {VERSION}: "
            "update evenhand to read newer files"
        )
    try:
        name = saved["policy"]
        if name not in POLICIES:
            raise ValueError(
                f"policy is {name!r}; known are {', '.join(sorted(POLICIES))}: "
                "import the module that defines it first"
            )
        settings = {key: _rich(key, value) for key, value in saved["settings"].items()}
        policy = POLICIES[name](**settings)
        policy.round = _checks.whole("round", saved["round"], least=0)
        if policy.round > 2**53:
            raise ValueError(f"the saved policy is damaged: round is {policy.round}")
        _restore(policy._memory.arms, saved["arms"])
        _restore(policy._memory.groups, saved["groups"])
        if policy.noise == "estimate":
            estimate_noise(policy._memory)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"the saved policy is damaged: {error!r}") from error
    return policy


def save(policy: Policy, path: Path) -> None:
    """Write the policy to `path`; a crash leaves the old file or the new one, never half of it."""
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"path is {str(path)!r}; allowed is a file in a folder that exists")
    text = json.dumps(to_dict(policy), allow_nan=False)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load(path: str | Path) -> Policy:
    """Read a policy that `Policy.save` wrote: the same settings and state, bit for bit.

    Example:
        >>> import evenhand as eh, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "loans.json"
        >>> eh.TopInterval(["F", "M"], n_features=3, seed=1).save(path)
        >>> eh.load(path)
        TopInterval(n_arms=2, groups=F, M, n_features=3, rounds=0)
    """
    try:
        saved = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not a saved policy, or is cut off: {error}") from error
    try:
        return from_dict(saved)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, Groups):
        return {"labels": list(value.labels), "sensitive": value.sensitive}
    if isinstance(value, Conventions):
        if BY_NAME.get(value.name) != value:
            raise ValueError(
                f"conventions {value.name!r} are your own and cannot be saved; "
                f"allowed are {', '.join(BY_NAME)}"
            )
        return value.name
    if isinstance(value, Callable):  # type: ignore[arg-type]
        raise ValueError(
            f"{name} is a function, which cannot be saved; give its values as a list instead"
        )
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def _rich(name: str, value: Any) -> Any:
    if name == "groups":
        return Groups(value["labels"], value["sensitive"])
    if name == "conventions":
        if value not in BY_NAME:
            raise ValueError(f"conventions are {value!r}; known are {', '.join(BY_NAME)}")
        return BY_NAME[value]
    return value


def _regressions(fits: Regressions) -> list[Any]:
    table: list[Any] = to_saved(fits).tolist()
    return table


def _restore(fits: Regressions, saved: list[Any]) -> None:
    values, shape = np.asarray(saved, dtype=np.float64), saved_shape(fits)
    if shape[0] == values.size == 0:
        return
    if values.shape != shape or not np.isfinite(values).all():
        raise ValueError(
            f"the saved policy is damaged: a table has shape {values.shape}, "
            f"not {shape}, or numbers that are not finite"
        )
    _check_state(fits, values[:, :, : fits.per_block])
    from_saved(fits, values)


def _check_state(fits: Regressions, values: NDArray[np.float64]) -> None:
    """Compiled code trusts these numbers, so they are looked at before."""
    tail = saved_tail(fits)
    rank, known = values[:, tail + RANK], values[:, tail : tail + RANK]
    lowest = fits.n_features if fits.singular == RIDGE else 0
    if ((rank != np.round(rank)) | (rank < lowest) | (rank > fits.n_features)).any():
        raise ValueError("the saved policy is damaged: a rank is not possible")
    if (known < -1e-6 * np.abs(known).max(initial=1.0)).any():
        raise ValueError("the saved policy is damaged: a count or a sum of squares is negative")
    if values[:, tail + COUNT].reshape(-1)[fits.number :].any():
        raise ValueError("the saved policy is damaged: it has data of more arms than labels")
