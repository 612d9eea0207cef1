"""The libraries that a user would pick instead, each in an environment of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ENVIRONMENTS = HERE / ".venv"
REQUIREMENTS = HERE / "requirements-peers.txt"
PATIENCE = 900  # seconds for an installation or a measurement

# What each of them does in a round of ours, and where it differs.
WHAT = {
    "contextualbandits": (
        "`LinUCB(method='sm')`: Sherman-Morrison in C; `predict` and `partial_fit` on one row. "
        "One context a round for all arms."
    ),
    "mabwiser": (
        "`LinUCB`: inverts the matrix of the chosen arm; `predict` and `partial_fit` on one row. "
        "One context a round for all arms."
    ),
    "obp": (
        "`LinUCB`: Sherman-Morrison in NumPy, solving the coefficients of all arms at every "
        "choice; `select_action` and `update_params`. One context a round for all arms."
    ),
    "river": (
        "`LinUCBDisjoint`: a Bayesian linear regression per arm; `pull` and `update`, contexts as "
        "dicts made beforehand. One context a round for all arms."
    ),
    "vowpalwabbit": (
        "No LinUCB: `--cb_explore_adf --regcbopt`, the highest upper bound of gradient-fitted "
        "coefficients, made disjoint by numbering the features of each arm separately. A context "
        "per arm; its lines of text are made beforehand, and parsing them is timed."
    ),
}
OURS = {
    "evenhand TopInterval": (
        "`TopInterval(singular='ridge', ridge=1.0, exploration='none')`, a disjoint LinUCB. "
        "A context per arm; the decision carries the propensity and the scores of all arms."
    ),
    "evenhand GroupFairTopInterval": (
        "Beyond a LinUCB: two group regressions, a correction per sensitive arm, exploration. "
        "A context per arm."
    ),
}


def tasks(quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """By name, functions that measure evenhand and every library.

    evenhand comes before the others and after them: if those two differ, the machine changed.
    """
    made: dict[str, Callable[[], dict[str, Any]]] = {}
    for name in OURS:
        made[f"{name}, before the others"] = partial(_ours, name, "before", quick)
    for requirement in requirements():
        made[requirement] = partial(_theirs, requirement, quick)
    for name in OURS:
        made[f"{name}, after the others"] = partial(_ours, name, "after", quick)
    return made


def _ours(name: str, when: str, quick: bool) -> dict[str, Any]:
    options = ["--quick"] * quick + ["--fair"] * name.endswith("GroupFairTopInterval")
    figures = _measure(Path(sys.executable), "linucb_evenhand.py", options)
    return {"name": name, "what": OURS[name], "when": when, **figures}


def _theirs(requirement: str, quick: bool) -> dict[str, Any]:
    """The figures of a library or the reason why there are none."""
    name, version = requirement.split("==")
    known = {"name": name, "version": version, "what": WHAT[name]}
    environment = ENVIRONMENTS / name
    reason = install(environment, requirement)
    if reason is not None:
        return {**known, "reason": f"does not install here: {reason}"}
    python = environment / "bin" / "python"
    return known | _measure(python, f"linucb_{name}.py", ["--quick"] * quick)


def requirements() -> list[str]:
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def install(environment: Path, requirement: str) -> str | None:
    """Make the environment unless it is there; the reason if that fails."""
    mark = environment / "installed.txt"
    if mark.exists() and mark.read_text(encoding="utf-8") == requirement:
        return None
    python = str(environment / "bin" / "python")
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(environment)],
        [python, "-m", "pip", "install", "--quiet", requirement],
    ):
        _, reason = _run(command)
        if reason is not None:
            return reason
    mark.write_text(requirement, encoding="utf-8")
    return None


def _measure(python: Path, script: str, options: list[str]) -> dict[str, Any]:
    output, reason = _run([str(python), str(HERE / "peers" / script), *options])
    if reason is not None:
        return {"reason": f"does not run here: {reason}"}
    figures: dict[str, Any] = json.loads(output.splitlines()[-1])
    return figures


def _run(command: list[str]) -> tuple[str, str | None]:
    """The output of a command and, if it failed, why."""
    environ = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    # Matrices of 5 x 5: threads in the linear algebra would only slow the others down.
    environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", _shown(str(error))
    return done.stdout, None if done.returncode == 0 else why(done.stderr or done.stdout)


def why(output: str) -> str:
    """The last line that names an error, else the last line, of what a failed command said."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() and not line.startswith("note:")]
    return _shown((errors or lines or ["it says nothing"])[-1])


def _shown(text: str) -> str:
    """Without addresses and paths, which say more of a machine than of the reason."""
    return re.sub(r"\S+://\S+|(?<!\w)/\S+", "(...)", text)[:200]
