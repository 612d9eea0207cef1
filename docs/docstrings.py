"""How docstrings become reference pages: two things that they write in their own way."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Docstrings(griffe.Extension):
    """Sections called "Example:", and pages named by their path in the project."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:  # noqa: ARG002
        """Called for every object that is documented."""
        if obj.docstring is not None:
            text = obj.docstring.value.replace("Example:\n", "Examples:\n")
            obj.docstring.value = re.sub(r"docs/([\w/-]+\.md)", r"[\1](../\1)", text)
