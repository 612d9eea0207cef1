"""The tests themselves: none depends on how fast or how busy the machine is."""

import ast
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).parents[1]
CLOCKS = {"sleep", "perf_counter", "monotonic", "process_time", "alarm", "setitimer"}
LIMITS = {"timeout", "deadline"}


def limits(code):
    """The lines that read a clock, pause, or set a time limit."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", None))
            given = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            named = {keyword.arg for keyword in node.keywords}
            if (
                name in CLOCKS
                or named & LIMITS
                or (
                    name in ("wait", "join")
                    and any(isinstance(value, int | float) for value in given)
                )
            ):
                yield node.lineno


@pytest.mark.parametrize(
    "code",
    ["time.sleep(1)", "process.wait(30)", "run(command, timeout=60)", "settings(deadline=None)"],
)
def test_limits_are_seen(code):
    assert list(limits(code)) == [1]


def test_no_test_has_a_time_limit():
    """`waiting.until` waits for an event; pyproject.toml has one limit for tests that hang."""
    files = [file for file in HERE.rglob("*.py") if file.name != "waiting.py"]
    assert len(files) > 50
    lines = [f"{file.name}:{line}" for file in files for line in limits(file.read_text())]
    assert not lines, f"wait for what is to happen instead: {', '.join(lines)}"


def test_examples_are_the_same_in_every_run_and_may_take_their_time():
    now = settings()
    assert now.deadline is None and now.derandomize and now.print_blob
    assert HealthCheck.too_slow in now.suppress_health_check
