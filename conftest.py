"""Tests are the same on every machine, and every Python example in README.md and docs/ is one."""

from __future__ import annotations

import gc
import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

from documentation import EXAMPLES

# No test depends on how fast the machine is, and a commit that passed once passes again: examples
# are the same in every run. What fails says how to make it again.
settings.register_profile(
    "evenhand",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("evenhand")
os.environ.setdefault("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "30 minutes")  # 30 s unless told
# Tests run in a process per core. More threads in each only wait for one another: solving 40 x 40
# systems took three times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long first: at the end, one of them would keep a single core busy.

    One process begins with the contracts, which compile every policy, and the other with audits,
    which compile next to nothing. What comes later finds compiled code in the cache; otherwise both
    processes, and the servers that they start, would compile the same functions at the same time.
    """
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    pages = {item.path for item in items if item.path.suffix == ".md"}
    slow.update({path: LONG_PAGE for path in pages if "kernel(" in path.read_text("utf-8")})

    def order(item: pytest.Item) -> tuple[int, int]:
        if item.path.name == "test_contracts.py":
            return 0, 0
        audits = item.path.parent.name == "audit" and slow[item.path] > 0
        return 1 if audits else 2, -slow[item.path]

    items.sort(key=order)


LONG_PAGE = 20  # slow tests that take as long
MANY = 1_000_000  # objects: some hundred MB
_kept = 0


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After a file, let go of what compiling left behind, if that is much.

    Of 1.2 million objects after the first decision of a policy that was compiled, 0.9 million were
    cycles that nobody needs. Python counts them as old and seldom looks for them, so that a worker
    grew to 3.5 GB.
    """
    global _kept
    if nextitem is not None and nextitem.path == item.path:
        return
    if len(gc.get_objects()) > _kept + MANY:
        gc.collect()
        _kept = len(gc.get_objects())


pytest_collect_file = EXAMPLES.pytest()
