"""Why the real experiments come out as they do, in words."""

WHY: dict[str, str] = {}
