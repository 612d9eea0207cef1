"""A policy as JSON: versioned, readable, and restored bit for bit.

Numbers are written with enough digits to give the same double again, and a checksum detects any
change. Loading executes no code: only policies whose class has been imported can be restored.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand._atomic_files import write_whole
from evenhand._checks import LARGEST_WHOLE, MALFORMED
from evenhand.errors import DamagedError, InputError
from evenhand.leastsquares import Regressions
from evenhand.leastsquares._layout import COUNT, PRIOR, RANK, RIDGE
from evenhand.leastsquares._saved import from_saved, saved_tail, shape_for, to_saved
from evenhand.leastsquares._simd import LANES
from evenhand.policies._saved_settings import plain_setting, rich_setting
from evenhand.policies._settings import POLICIES, TWINS, constructed, declared
from evenhand.policies._state import estimate_noise

if TYPE_CHECKING:
    from evenhand.policies.base import Policy

FORMAT, VERSION = "evenhand policy", 3
_HEAD = ("format", "version", "policy", "settings", "round")
KEYS = {  # by version
    1: {*_HEAD, "arms", "groups"},
    2: {*_HEAD, "arms", "groups", "sha256"},
    3: {*_HEAD, "arms", "groups", "own", "sha256"},
}
Tables = list[NDArray[Any]]


def to_dict(policy: Policy) -> dict[str, Any]:
    """Settings and state of a policy as plain data, for a file or a database.

    Example:
        >>> import evenhand as eh
        >>> from evenhand.policies.saving import to_dict
        >>> saved = to_dict(eh.TopInterval(["F", "M"], n_features=1, seed=3))
        >>> saved["policy"], saved["version"], saved["settings"]["seed"]
        ('TopInterval', 3, 3)
    """
    declared(policy)
    _can_be_found(type(policy))
    state, round = policy._learned_so_far()
    tables = [to_saved(state.arms), to_saved(state.groups), *state.own]
    head = {
        "format": FORMAT,
        "version": VERSION,
        "policy": type(policy).__name__,
        "settings": {name: plain_setting(name, value) for name, value in policy.settings().items()},
        "round": int(round),
    }
    return {
        **head,
        "arms": tables[0].tolist(),
        "groups": tables[1].tolist(),
        "own": {name: _plain_table(name, table) for name, table in state.own._asdict().items()},
        "sha256": _checksum(head, tables),
    }


def _plain_table(name: str, table: NDArray[Any]) -> Any:
    """A table of the policy's own as lists; JSON has no infinity, so that is text."""
    if np.isnan(table).any():
        raise InputError(
            f"{name}, which the policy learned, has a NaN and cannot be saved; allowed are numbers "
            "and infinities"
        )
    if np.isinf(table).any():
        words = {np.inf: "inf", -np.inf: "-inf"}
        plain = [words.get(number, number) for number in table.ravel().tolist()]
        table = np.array(plain, dtype=object).reshape(table.shape)
    return table.tolist()


def from_dict(saved: dict[str, Any]) -> Policy:
    """The policy that `to_dict` described.

    Example:
        >>> import evenhand as eh
        >>> from evenhand.policies.saving import from_dict, to_dict
        >>> from_dict(to_dict(eh.TopInterval(["F", "M"], n_features=1, seed=3)))
        TopInterval(n_arms=2, groups=F, M, n_features=1, rounds=0)
    """
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        raise InputError(f"this is not a saved policy: its format is not {FORMAT!r}")
    version = saved.get("version")
    if type(version) is not int or version not in KEYS:
        raise InputError(
            f"version is {_short(version)}; this evenhand reads versions 1 to {VERSION}: "
            "update evenhand to read newer files"
        )
    if set(saved) != KEYS[version]:
        wrong = ", ".join(sorted(map(str, set(saved) ^ KEYS[version])))
        raise _damaged(f"version {version} has {', '.join(sorted(KEYS[version]))}; look at {wrong}")
    try:
        kind, arms, groups = _kind(saved["policy"]), _table(saved["arms"]), _table(saved["groups"])
        own = {name: _own_table(table) for name, table in saved.get("own", {}).items()}
        tables = [arms, groups, *own.values()]
        if version > 1 and saved["sha256"] not in (
            _checksum(saved, tables),
            _checksum(saved, [table.astype(np.float64) for table in tables]),  # as it once was
        ):
            raise _damaged("its checksum is wrong; use an undamaged copy")
        settings = {name: rich_setting(name, value) for name, value in saved["settings"].items()}
        inspect.signature(kind).bind(**settings)
        round = _checks.whole("round", saved["round"], least=0, most=2**53)
    except InputError:
        raise
    except (*MALFORMED, RecursionError) as error:
        raise _damaged(_short(error)) from error
    policy = constructed(kind.__name__, kind, **settings)
    policy.round = round
    _check_sizes(policy, arms, groups)
    _restore(policy, arms, groups, own)
    return policy


def _checksum(head: dict[str, Any], tables: Tables) -> str:
    """The SHA-256 of a saved policy: of its head as JSON, then of the numbers in its tables."""
    text = json.dumps({key: head[key] for key in _HEAD}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(b"".join([text.encode(), *map(_bytes, tables)])).hexdigest()


def _bytes(table: NDArray[Any]) -> bytes:
    """The numbers as floats, or as whole numbers if there is one that floats do not hold."""
    floats = np.ascontiguousarray(table, dtype="<f8")
    exact = table.dtype.kind == "f" or (np.abs(floats) < LARGEST_WHOLE).all()
    return (floats if exact else np.ascontiguousarray(table, dtype="<i8")).tobytes()


def save(policy: Policy, path: Path) -> None:
    """Write the policy to `path`; a crash leaves the old file or the new one, never a part.

    Example:
        >>> import evenhand as eh, tempfile, pathlib
        >>> from evenhand.policies.saving import load, save
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "loans.json"
        >>> save(eh.TopInterval(["F", "M"], n_features=3, seed=1), path)
        >>> load(path).seed
        1
    """
    write_whole(path, json.dumps(to_dict(policy), allow_nan=False))


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
        saved = _parse(Path(path).read_bytes())
    except ValueError as error:
        raise InputError(f"{path} is not a saved policy, or is cut off: {error}") from error
    try:
        return from_dict(saved)
    except InputError as error:
        raise error.reworded(lambda message: f"{path}: {_short(message, str)}") from error


def _can_be_found(kind: type[Policy]) -> None:
    """Refuse to save a policy whose class would not be found, or whose name means another."""
    known = POLICIES.get(kind.__name__)
    if known is None:
        raise InputError(
            f"{kind.__name__} cannot be saved, because a class whose name begins with an "
            "underscore is not found when it is loaded; rename it"
        )
    _kind(kind.__name__)


def _kind(name: Any) -> type[Policy]:
    if name not in POLICIES:
        raise InputError(
            f"policy is {_short(name)}, which is not known here: import the module that defines it "
            f"first; known are {', '.join(sorted(POLICIES))}"
        )
    if name in TWINS:
        raise InputError(
            f"policy is {_short(name)}, which several classes are called, in "
            f"{', '.join(TWINS[name])}; rename one, or import the right one only"
        )
    return POLICIES[name]


def _table(saved: Any) -> NDArray[np.float64]:
    values = _array(saved)
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise _damaged("a table has a value that is not a finite number")
    return values.astype(np.float64)


def _own_table(saved: Any) -> NDArray[Any]:
    """A table of the policy's own: float64, or int64 if all of its numbers are whole."""
    values = _array(saved)
    if values.dtype.kind == "U":  # beside the text of infinities, NumPy makes all numbers text
        values = np.array(saved, dtype=object)
        words = {item for item in values.ravel() if isinstance(item, str)}
        values = values.astype(np.float64) if words <= {"inf", "-inf"} else values
    if values.dtype.kind not in "if" or np.isnan(values).any():
        raise _damaged("a table has a value that is not a number")
    return values.astype(np.int64 if values.dtype.kind == "i" else np.float64)


def _array(saved: Any) -> NDArray[Any]:
    try:
        return np.asarray(saved)
    except ValueError:
        raise _damaged("a table has rows of different lengths") from None


def _check_sizes(policy: Policy, arms: NDArray[np.float64], groups: NDArray[np.float64]) -> None:
    """Check the sizes before memory is allocated: a damaged setting may ask for any amount."""
    d, full = policy._shape[1], policy.singular == "ridge" or policy._prior is not None
    blocks = (-(-policy.n_arms // LANES), len(policy.groups) if policy.learns_groups else 0)
    for values, number in zip((arms, groups), blocks, strict=True):
        shape = shape_for(number, d, full)
        if values.shape != shape and not values.size == number == 0:
            raise _damaged(f"a table has shape {values.shape}, not {shape} for {d} features")


def _restore(
    policy: Policy,
    arms: NDArray[np.float64],
    groups: NDArray[np.float64],
    own: dict[str, NDArray[Any]],
) -> None:
    state = policy._state
    for fits, values in ((state.arms, arms), (state.groups, groups)):
        if values.size:
            _check_state(fits, values[:, :, : fits.per_block])
            from_saved(fits, values)
    missing = set(state.own._fields) - set(own) - set(policy.added_since)
    if missing or not set(own) <= set(state.own._fields):
        raise _damaged(f"its own state has {', '.join(own) or 'nothing'}")
    for name in own:
        table = getattr(state.own, name)
        if own[name].size != table.size:
            raise _damaged(f"{name} has shape {own[name].shape}, not {table.shape}")
        if table.dtype.kind == "i" and not _is_whole(own[name]):
            raise _damaged(f"{name} has numbers that are not whole")
        table[...] = own[name].reshape(table.shape)
    if policy.noise == "estimate":
        estimate_noise(state.arms, state.levels)


def _is_whole(values: NDArray[Any]) -> bool:
    small = np.abs(values) < LARGEST_WHOLE
    return values.dtype.kind == "i" or bool((small & (values == np.trunc(values))).all())


def _check_state(fits: Regressions, values: NDArray[np.float64]) -> None:
    """Check the numbers that compiled code trusts."""
    tail = saved_tail(fits)
    rank, known = values[:, tail + RANK], values[:, tail : tail + RANK]
    lowest = fits.n_features if fits.singular in (RIDGE, PRIOR) else 0
    if ((rank != np.round(rank)) | (rank < lowest) | (rank > fits.n_features)).any():
        raise _damaged("a rank is not possible")
    if (known < -1e-6 * np.abs(known).max(initial=1.0)).any():
        raise _damaged("a count or a sum of squares is negative")
    if values[:, tail + COUNT].reshape(-1)[fits.number :].any():
        raise _damaged("it has data of more arms than labels")


def _damaged(problem: str) -> DamagedError:
    return DamagedError(f"the saved policy is damaged: {problem}")


def _short(value: Any, write: Any = repr) -> str:
    """A value on one line, shortened."""
    text = " ".join(write(value).split())
    return text if len(text) <= 400 else f"{text[:400]}..."


def _parse(content: bytes) -> Any:
    """The data in the bytes of a file; a ValueError says what is wrong."""
    try:
        return json.loads(content.decode(), parse_constant=_not_finite)
    except RecursionError:
        raise InputError("its lists are nested too deeply") from None
    except (json.JSONDecodeError, UnicodeDecodeError, _NotFinite):
        raise
    except ValueError as error:  # Python's own, about the length of a number
        raise InputError("a whole number in it has too many digits") from error


class _NotFinite(ValueError):
    """NaN or an infinity in JSON."""


def _not_finite(word: str) -> NoReturn:
    raise _NotFinite(f"it has {word}, where only finite numbers are allowed")
