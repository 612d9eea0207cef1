"""The cache of compiled code: never stale, never in the way."""

import gc
import os
import subprocess
import sys

import numba
import pytest
from numba.core import event

from evenhand import _compile
from evenhand._compile import Notice

RULE = """
from typing import NamedTuple
import evenhand as eh
from evenhand.policies._kernels import kernel, score
from evenhand.policies._state import UPPER

class FlatRule(NamedTuple):
    pass

@kernel(score, FlatRule)
def _score(rule, memory, t):
    for i in range(memory.settings.n_arms):
        memory.work[UPPER, i] = {value}

class Flat(eh.Policy):
    def rule(self):
        return FlatRule()
"""

ASK = """
import numpy as np
from flat import Flat
policy = Flat(["F", "M"], n_features=1, seed=1)
{between}
print(policy.select(np.ones((2, 1))).scores.upper.tolist())
"""


def ask(folder, between=""):
    found = subprocess.run(
        [sys.executable, "-c", ASK.format(between=between)],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


@pytest.mark.slow
def test_what_was_imported_is_what_runs(tmp_path):
    file = tmp_path / "flat.py"
    file.write_text(RULE.format(value="1.0"))
    assert ask(tmp_path) == "[1.0, 1.0]"
    assert ask(tmp_path) == "[1.0, 1.0]"  # from the cache
    file.write_text(RULE.format(value="2.0"))
    assert ask(tmp_path) == "[2.0, 2.0]"
    # Changed on disk after the import: the imported code runs, and is not kept as the new one's.
    change = f"open({str(file)!r}, 'w').write({RULE.format(value='4.0')!r})"
    file.write_text(RULE.format(value="3.0"))
    assert ask(tmp_path, change) == "[3.0, 3.0]"
    assert ask(tmp_path) == "[4.0, 4.0]"


@pytest.mark.slow
def test_rules_of_the_users_stay_out_of_our_cache(tmp_path):
    (tmp_path / "flat.py").write_text(RULE.format(value="5.0"))
    ask(tmp_path)
    (tmp_path / "flat.py").unlink()
    code = (
        "import numpy as np, evenhand as eh\n"
        "eh.TopInterval(['F', 'M'], n_features=1).select(np.ones((2, 1)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr


def compiled_anew(folder, name):
    """A function as if it were the package's, compiled by a dispatcher of its own."""
    file = folder / f"{name}.py"
    if not file.exists():
        file.write_text("def double(x):\n    return 2 * x\n")
    space = {"__name__": f"evenhand.{name}"}
    exec(compile(file.read_text(), str(file), "exec"), space)
    return numba.njit(cache=True)(space["double"])


@pytest.fixture
def listening(monkeypatch):
    monkeypatch.setattr(_compile.NOTICE, "said", True)  # that of this process
    notice = Notice()
    event.register("numba:compile", notice)
    yield
    event.unregister("numba:compile", notice)


@pytest.mark.usefixtures("listening")
def test_compiling_is_told_once_and_only_where_the_cache_has_nothing(tmp_path, caplog):
    caplog.set_level("WARNING", "evenhand")
    assert compiled_anew(tmp_path, "one")(2) == 4
    assert compiled_anew(tmp_path, "two")(2) == 4
    (said,) = [record.getMessage() for record in caplog.records if record.name == "evenhand"]
    assert said.startswith("evenhand is compiling, which can take a minute; the result is kept on")


@pytest.mark.usefixtures("listening")
def test_nothing_is_told_where_the_cache_is_hit_or_code_is_not_ours(tmp_path, caplog):
    caplog.set_level("ERROR", "evenhand")  # how to silence it
    kept = compiled_anew(tmp_path, "one")  # Numba asks a living function for what has no module
    kept(2)
    caplog.set_level("WARNING", "evenhand")
    event.register("numba:compile", again := Notice())
    try:
        compiled_anew(tmp_path, "one")(2)
        numba.njit(lambda x: x + 1)(1)
    finally:
        event.unregister("numba:compile", again)
    assert not caplog.records


@pytest.mark.parametrize("before", [True, False])
def test_garbage_is_searched_again_after_compiling_and_after_an_error(before):
    right, wrong = numba.njit(lambda x: x + 1), numba.njit(lambda x: x + gc.isenabled)
    was = gc.isenabled()
    (gc.enable if before else gc.disable)()
    try:
        right(1)
        assert gc.isenabled() is before
        with pytest.raises(numba.core.errors.NumbaError):
            wrong(1)
        assert gc.isenabled() is before
    finally:
        (gc.enable if was else gc.disable)()


INNER = """
from evenhand._compile import linker
{before}
from evenhand._compile import compiled, subroutine

@subroutine
def double(x):
    return 2 * x

@compiled
def first(x):
    return double(x) + 1

@compiled
def second(x):
    return double(x) + 2
"""


def call_inner(folder, name):
    """What the function gives, and the number of functions that `double` has as machine code."""
    code = (
        f"from inner import {name}, double\nprint({name}(20))\n"
        "libraries = [one.library for one in double.overloads.values()]\n"
        "print(sum(one.get_llvm_str().count('define ') for one in libraries))"
    )
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
    )
    assert found.returncode == 0, found.stderr
    return [int(line) for line in found.stdout.split()]


@pytest.mark.slow
def test_what_only_compiled_functions_call_has_no_machine_code(tmp_path):
    (tmp_path / "inner.py").write_text(INNER.format(before=""))
    assert call_inner(tmp_path, "first") == [41, 0]
    assert call_inner(tmp_path, "second") == [42, 0]  # with `double` from the cache
    assert call_inner(tmp_path, "first") == [41, 0]


@pytest.mark.slow
def test_where_numba_is_another_inside_all_functions_have_machine_code(tmp_path):
    # What the package has decided when it was imported, it decides again.
    again = "import importlib, evenhand._compile as c; importlib.reload(c)"
    before = f"linker._NEEDED = ('gone',); {again}"
    (tmp_path / "inner.py").write_text(INNER.format(before=before))
    assert call_inner(tmp_path, "first") == [41, 1]


CHAIN = """
from evenhand._compile.intrinsics import stays_a_function
from evenhand._compile import compiled, inlined, subroutine

@subroutine
def deepest(x, factor):
    stays_a_function()
    return factor * x

@subroutine
def middle(x):
    stays_a_function()
    return deepest(x, 2) + deepest(x, 3)

@inlined
def copied(x):
    return middle(x) + deepest(x, 1)

@compiled
def first(x):
    return copied(x) + deepest(x, 4)

@compiled
def second(x):
    return middle(x) + copied(x)
"""


@pytest.mark.slow
def test_functions_that_are_only_called_are_linked_once_new_or_from_the_cache(tmp_path):
    (tmp_path / "inner.py").write_text(CHAIN)
    code = "import inner\nprint(inner.{0}(10), len(inner.deepest.overloads))"
    for name, result in (("first", 100), ("second", 110), ("first", 100)):
        found = subprocess.run(
            [sys.executable, "-c", code.format(name)],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        )
        assert found.returncode == 0, found.stderr
        value, compiled = (int(word) for word in found.stdout.split())
        assert value == result
        assert compiled <= 1  # one for 1, 2, 3 and 4


@pytest.mark.slow
def test_the_word_about_compiling_is_on_the_error_stream():
    code = (
        "import evenhand._compile, numba\n"
        "def double(x): return 2 * x\n"
        "double.__module__ = 'evenhand.here'\n"
        "print(numba.njit(double)(21))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert found.stdout == "42\n"
    assert found.stderr.startswith("evenhand is compiling") and found.stderr.count("\n") == 1
