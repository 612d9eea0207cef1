"""Names of settings in messages, in the language of the caller: Python, flags or keys of files.

A message names settings by `setting`, which inserts an invisible mark. The mark becomes words when
the message is shown. So the same message reads `missing="drop"` in Python, `--missing drop` on the
command line and `missing = "drop"` in a file. Only this module translates; `speaking` sets the
language.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from shlex import quote
from typing import Any, Literal, NamedTuple

Language = Literal["python", "command line", "file"]

# Characters for private use, which no ordinary text contains.
_BEGIN, _BETWEEN, _END, _BLANK = "\ue000", "\ue001", "\ue002", "\ue003"
MARK = re.compile(f"{_BEGIN}([^{_BETWEEN}{_END}]*)(?:{_BETWEEN}([^{_END}]*))?{_END}")
ENTRY = re.compile(r"(?P<whole>\w+)\.(?P<name>\w+)")  # an entry of a setting: columns.reward

MOST_SHOWN = 80  # characters of a value in a message
# Settings with another name on the command line, and those that may be repeated there.
FLAGS = {
    "features": "--feature",
    "nominal_columns": "--nominal-column",
    "client": "--dask",
    "experiment": "--like",
    "log": "LOG",
    "target": "--policy",
}
REPEATED = ("features", "leave_out", "nominal_columns")
KEYS = {"data": "file"}  # settings with another name in files
SWITCHES = {("target", "uniform"): "--uniform"}  # values with a flag of their own
_SHOWN, _PYTHON = "'", "python"  # what a mark may hold besides a setting


class _Speech(NamedTuple):
    language: Language
    flags: Collection[str] | None  # those of the command; None if any flag may be named


_TO_PYTHON = _Speech("python", None)
_SPEECH: ContextVar[_Speech] = ContextVar("speech", default=_TO_PYTHON)


@contextmanager
def speaking(language: Language, flags: Collection[str] | None = None) -> Iterator[None]:
    """Show messages in this language inside a `with` block.

    Args:
        language: the language of the caller.
        flags: on the command line, the flags of the command. A setting without a flag is written as
            in Python, because there is no flag to suggest.

    Example:
        >>> from evenhand.errors import InputError, setting, speaking
        >>> error = InputError(f"give {setting('seed', 1)}")
        >>> with speaking("command line"):
        ...     print(error)
        give --seed 1
    """
    token = _SPEECH.set(_Speech(language, flags))
    try:
        yield
    finally:
        _SPEECH.reset(token)


def setting(name: str, value: Any = None) -> str:
    """A setting in a message, alone or with the value to give it.

    Args:
        name: the name in Python, such as "missing_marks".
        value: the value to give it: text, a number, True or False, or a list or dict of these. Use
            `blank` for a part that the reader has to fill in.

    Example:
        >>> from evenhand.errors import blank, in_language, setting
        >>> advice = f"say {setting('leave_out', ['age', blank('COLUMN')])}"
        >>> in_language(advice, "python")
        'say leave_out=["age", COLUMN]'
        >>> in_language(advice, "command line")
        'say --leave-out age --leave-out COLUMN'
    """
    return (
        f"{_BEGIN}{name}{_END}"
        if value is None
        else f"{_BEGIN}{name}{_BETWEEN}{_code(value)}{_END}"
    )


def literal(value: Any) -> str:
    """A value in a message, as the caller would write it.

    Example:
        >>> from evenhand.errors import in_language, literal
        >>> message = f"give {literal({'age': 5})}"
        >>> in_language(message, "python"), in_language(message, "file")
        ('give {"age": 5}', 'give { age = 5 }')
    """
    return setting("", value)


def as_given(value: Any) -> str:
    """A value that the caller gave, as it was written there and shortened to fit into a line.

    Example:
        >>> from evenhand.errors import as_given, in_language
        >>> message = f"reward_values is {as_given({'paid': True})}"
        >>> in_language(message, "python"), in_language(message, "file")
        ("reward_values is {'paid': True}", 'reward_values is { paid = true }')
        >>> in_language(message, "command line")
        "reward_values is 'paid=true'"
    """
    text = _shortened(_representation(value))
    if not _differs(value):
        return text
    return f"{_BEGIN}{_SHOWN}{_BETWEEN}{_code([text, value])}{_END}"


def in_python(text: str) -> str:
    """A part of a message that only callers of Python read, such as advice about objects.

    Example:
        >>> from evenhand.errors import in_language, in_python
        >>> message = f"give a list{in_python(' or a function')}"
        >>> in_language(message, "python"), in_language(message, "file")
        ('give a list or a function', 'give a list')
    """
    return f"{_BEGIN}{_PYTHON}:{_BETWEEN}{_code(text)}{_END}"


def as_entries(message: str, whole: str, names: Collection[str]) -> str:
    """A message in which settings of these names are entries of another setting.

    Args:
        message: with settings in it.
        whole: the setting that has the entries, a dictionary in Python.
        names: those of the settings.

    Example:
        >>> from evenhand._setting_names import as_entries
        >>> from evenhand.errors import blank, in_language, setting
        >>> message = f"give {setting('reward', blank('COLUMN'))}"
        >>> message = as_entries(message, "columns", ["reward"])
        >>> in_language(message, "python")
        'give columns={"reward": COLUMN}'
        >>> in_language(message, "command line")
        'give --reward COLUMN'
    """

    def put(mark: re.Match[str]) -> str:
        dotted = f"{whole}.{mark[1]}" if mark[1] in names else mark[1]
        return mark[0].replace(mark[1], dotted, 1) if mark[1] else mark[0]

    return MARK.sub(put, message)


def with_names(message: str, names: Mapping[str, str]) -> str:
    """A message in which settings have other names, also where it begins with one as plain text.

    Args:
        message: with settings in it.
        names: the new names, by the old ones.

    Example:
        >>> from evenhand._setting_names import with_names
        >>> with_names("delay is -1; allowed is 0", {"delay": "true_delay"})
        'true_delay is -1; allowed is 0'
    """
    first = re.match(r"\w+", message)
    if first and first[0] in names:
        message = names[first[0]] + message[first.end() :]
    return MARK.sub(
        lambda mark: mark[0].replace(mark[1], names[mark[1]], 1) if mark[1] in names else mark[0],
        message,
    )


def without_setting(message: str, name: str) -> str:
    """A message for callers who do not have a setting: "with" it is gone from the advice.

    Args:
        message: with settings in it.
        name: of the setting.

    Example:
        >>> from evenhand._setting_names import without_setting
        >>> from evenhand.errors import setting
        >>> message = f"age has no value; leave it out with {setting('leave_out', ['age'])}"
        >>> without_setting(message, "leave_out")
        'age has no value; leave it out'
    """
    return re.sub(f" with {_BEGIN}{name}(?:{_BETWEEN}[^{_END}]*)?{_END}", "", message)


def blank(word: str) -> str:
    """A placeholder in the value of a setting, for the reader to fill in.

    Example:
        >>> from evenhand.errors import blank, in_language, setting
        >>> in_language(setting("group", blank("COLUMN")), "command line")
        '--group COLUMN'
    """
    return _BLANK + word


def in_language(message: str, language: Language | None = None) -> str:
    """A message with its settings in a language, by default that of `speaking`.

    Example:
        >>> from evenhand.errors import in_language, setting
        >>> in_language(f"{setting('delta')} is 2", "command line")
        '--delta is 2'
    """
    speech = _SPEECH.get()
    if language is not None and language != speech.language:
        speech = _Speech(language, None)
    return MARK.sub(lambda mark: _put(mark[1], mark[2], speech), message)


def _representation(value: Any) -> str:
    if isinstance(value, int) and not -(10**30) < value < 10**30:
        digits = int((abs(value).bit_length() - 1) * math.log10(2.0)) + 1  # may be one too few
        return f"a whole number of about {digits} digits"
    return repr(value)


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."


def _differs(value: Any) -> bool:
    """Whether a value is written otherwise in files than in Python: truth values and tables are."""
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value)
    if isinstance(value, list):
        return any(map(_differs, value))
    return isinstance(value, bool)


def _code(value: Any) -> str:
    # Escaped, so that no text of a user ends the mark. NumPy's numbers are written as Python's.
    return json.dumps(
        value, default=lambda item: item.item() if hasattr(item, "item") else str(item)
    )


def _put(name: str, code: str | None, speech: _Speech) -> str:
    value = None if code is None else json.loads(code)
    if name == f"{_PYTHON}:":
        return str(value) if speech.language == "python" else ""
    if name == _SHOWN:
        text, given = json.loads(code or "")
        return _given(text, given, speech.language)
    if not name:
        return _literal(value, speech.language == "file")
    entry = ENTRY.fullmatch(name)
    if speech.language == "command line":
        name = entry["name"] if entry else name  # entries have flags of their own
        if isinstance(value, str) and (name, value) in SWITCHES:
            return SWITCHES[name, value]
        whole, bracket, part = name.partition("[")  # one entry of it: reward_values['paid']
        flag = FLAGS.get(whole, "--" + whole.replace("_", "-"))
        if speech.flags is None or flag in speech.flags:
            return _flag(name, flag, value) + bracket + part
    if speech.language == "file":
        key = KEYS.get(name, name)
        return key if value is None else f"{key} = {_literal(value, file=True)}"
    if entry and value is None:
        return f"{entry['whole']}[{_literal(entry['name'])}]"
    if entry:
        name, value = entry["whole"], {entry["name"]: value}
    return name if value is None else f"{name}={_literal(value)}"


def _given(text: str, value: Any, language: Language) -> str:
    if language == "file":
        return _shortened(_literal(value, file=True))
    if language == "command line" and isinstance(value, dict):
        return _shortened(repr(_entries(value)))
    return text


def _entries(value: dict[str, Any]) -> str:
    """What is given by value or by column, as on the command line."""
    pairs = [(key, item) for key, items in value.items() for item in _listed(items)]
    # "*" stands for all columns.
    return ",".join(_word(item) if key == "*" else f"{key}={_word(item)}" for key, item in pairs)


def _flag(name: str, flag: str, value: Any) -> str:
    if value is None or value is True:
        return flag
    if isinstance(value, list) and name in REPEATED:
        return " ".join(_flag(name, flag, item) for item in value)
    if isinstance(value, dict):
        value = _entries(value)
    text = ",".join(map(_word, value)) if isinstance(value, list) else _word(value)
    blanks = _BLANK in text
    text = text.replace(_BLANK, "")
    # A value that begins with a minus would be taken for a flag.
    return f"{flag}{'=' if text.startswith('-') else ' '}{text if blanks else quote(text)}"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _literal(value: Any, file: bool = False) -> str:
    """A value as Python or TOML writes it; a placeholder has no quotes."""
    if isinstance(value, str):
        if value.startswith(_BLANK):
            return value[1:]
        return json.dumps(value, ensure_ascii=False)  # valid in Python and in TOML
    if isinstance(value, list):
        return f"[{', '.join(_literal(item, file) for item in value)}]"
    if isinstance(value, dict):
        pairs = [(_key(key, file), _literal(item, file)) for key, item in value.items()]
        if file and pairs:
            return "{ " + ", ".join(f"{key} = {item}" for key, item in pairs) + " }"
        return "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
    if file and isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value) if file else repr(value)


def _key(key: str, file: bool) -> str:
    return key if file and re.fullmatch(r"[\w-]+", key, re.ASCII) else _literal(key, file)
