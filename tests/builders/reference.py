"""Where the reference values are: the folder `shared` beside the project."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2].parent / "shared"
REFERENCE = SHARED / "reference"
DATA = SHARED / "data"

needs_shared = pytest.mark.skipif(
    not REFERENCE.is_dir(),
    reason="needs the folder `shared` beside the project: fetch it with its `reference` "
    "(traces and results of the authors' code)",
)

needs_data = pytest.mark.skipif(
    not all(any(DATA.glob(name)) for name in ("family_income.*", "compas*", "student*")),
    reason="needs the real data sets in the folder `shared/data` beside the project: "
    "`evenhand data fetch all --folder ../shared/data` in the project's folder gets them",
)
