"""Docstrings here say "Example:" where there is one; the reference pages know "Examples:" only."""

from __future__ import annotations

from typing import Any

import griffe


class OneExample(griffe.Extension):
    """Let both words mark a section of examples."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:  # noqa: ARG002
        """Called for every object that is documented."""
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("Example:\n", "Examples:\n")
