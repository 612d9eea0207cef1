"""The cache of compiled code: never stale, never in the way."""

import gc
import os
import subprocess
import sys

import numba
import pytest
from numba.core import event

from evenhand import _compile
from evenhand._compile import Notice, weaving

WORLD = """
from typing import NamedTuple
from evenhand.worlds.base import receive, world_kernel

class FlatInstance(NamedTuple):
    noise: float

@world_kernel(FlatInstance, receive)
def _receive(instance, t, arm, mean, noise):
    return {value}
"""

# Of all functions that take a user's rules or worlds, the one that compiles soonest.
ASK = """
from flat import FlatInstance
from evenhand._compile import for_sources
from evenhand.worlds._instances import compiled_receive
from evenhand.worlds.base import world_sources
{between}
function = for_sources(compiled_receive, world_sources(FlatInstance))
print(function(FlatInstance(1.0), 1, 0, 0.0, 0.0), sum(function.stats.cache_hits.values()))
"""


def python(code, folder, **environment):
    """What Python prints in a process of its own."""
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        env={**os.environ, **environment},
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.split()


@pytest.mark.slow
def test_what_was_imported_is_what_runs(tmp_path):
    """A user's function in one of ours: what it gives, and how often it came from the cache."""

    def ask(between=""):
        code = ASK.format(between=between)
        return python(code, tmp_path, PYTHONDONTWRITEBYTECODE="1", NUMBA_CACHE_DIR=str(tmp_path))

    file = tmp_path / "flat.py"
    file.write_text(WORLD.format(value="1.0"))
    assert ask() == ["1.0", "0"]
    assert ask() == ["1.0", "1"]
    file.write_text(WORLD.format(value="2.0"))
    assert ask() == ["2.0", "0"]
    # Changed on disk after the import: the imported code runs, and is not kept as the new one's.
    change = f"open({str(file)!r}, 'w').write({WORLD.format(value='4.0')!r})"
    file.write_text(WORLD.format(value="3.0"))
    assert ask(change) == ["3.0", "0"]
    assert ask() == ["4.0", "0"]


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

CALLS = """
import inner, chain
print(inner.{0}(20))
print(sum(made.library.get_llvm_str().count("define ") for made in inner.double.overloads.values()))
print(chain.{0}(10), len(chain.deepest.overloads))
"""


@pytest.fixture(scope="module")
def called(tmp_path_factory):
    """What three processes print, in which all is new, then some of it, then nothing."""
    folder = tmp_path_factory.mktemp("inner")
    (folder / "inner.py").write_text(INNER.format(before=""))
    (folder / "chain.py").write_text(CHAIN)
    names = ("first", "second", "first")
    return [
        [int(word) for word in python(CALLS.format(name), folder, NUMBA_CACHE_DIR=str(folder))]
        for name in names
    ]


@pytest.mark.slow
def test_what_only_compiled_functions_call_has_no_machine_code(called):
    """What the function gives, and the number of functions that `double` has as machine code."""
    assert [words[:2] for words in called] == [[41, 0], [42, 0], [41, 0]]


@pytest.mark.slow
def test_where_numba_is_another_inside_all_functions_have_machine_code(tmp_path):
    # What the package has decided when it was imported, it decides again.
    again = "import importlib, evenhand._compile as c; importlib.reload(c)"
    before = f"linker._NEEDED = ('gone',); {again}"
    (tmp_path / "inner.py").write_text(INNER.format(before=before))
    (tmp_path / "chain.py").write_text(CHAIN)
    words = python(CALLS.format("first"), tmp_path, NUMBA_CACHE_DIR=str(tmp_path))
    assert words[:2] == ["41", "1"]


@pytest.mark.slow
def test_functions_that_are_only_called_are_linked_once_new_or_from_the_cache(called):
    assert [words[2] for words in called] == [100, 110, 100]
    assert all(words[3] <= 1 for words in called)  # one for 1, 2, 3 and 4


@pytest.mark.slow
def test_the_word_about_compiling_is_on_the_error_stream():
    code = (
        "import evenhand._compile, numba\n"
        "def double(x): return 2 * x\n"
        "double.__module__ = 'evenhand.here'\n"
        "print(numba.njit(double)(21))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert process.stdout == "42\n"
    said = process.stderr
    assert said.startswith("evenhand is compiling") and said.count("\n") == 1


def test_live_functions_keep_the_lock_of_the_interpreter_and_others_let_it_go():
    space = {"__name__": __name__}  # without a file, so that nothing comes from the cache
    exec("def double(x): return 2 * x\ndef triple(x): return 3 * x", space)
    functions = {_compile.compiled(space["double"]): True, _compile.live(space["triple"]): False}
    functions |= {
        _compile.for_sources(function, None): lets for function, lets in functions.items()
    }
    assert len(functions) == 4  # as for the package's own rules, and as for a user's
    for function, lets_go in functions.items():
        assert function(2.0) == (4.0 if lets_go else 6.0)
        (code,) = function.inspect_llvm().values()
        assert ("PyEval_SaveThread" in code) is lets_go


def test_lines_woven_twice_into_nested_callers_keep_their_variables_apart():
    space = {"woven": _compile.woven, "__name__": "evenhand.here"}
    exec(
        "@woven\n"
        "def sum_to(n):\n"
        "    total = 0\n"
        "    for i in range(n + 1):\n"
        "        total += i\n"
        "    return total\n"
        "@woven\n"
        "def difference(n, m):\n"
        "    total = sum_to(n)\n"
        "    return total - sum_to(m)\n"
        "def both(n, m):\n"
        "    total = difference(n, m) * 1000\n"
        "    return total + difference(m, n) + sum_to(n)\n"
        "def again(n):\n"
        "    return difference(n, 1) + sum_to(n)\n",
        space,
    )
    both, again = _compile.compiled(space["both"]), _compile.compiled(space["again"])
    # Sums to 4 and 3 are 10 and 6.
    assert both(4, 3) == 1000 * (10 - 6) + (6 - 10) + 10
    assert again(4) == (10 - 1) + 10
    assert {space["sum_to"].py_func, space["difference"].py_func} <= set(weaving._KEPT)
