"""How many requests are allowed: of each key, and to log in."""

from __future__ import annotations

import time


class Bucket:
    """A limit by name: requests that are allowed at once and, on average, per second."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> bool:
        """Whether one more is allowed now."""
        now = time.monotonic()
        left, since = self._left.get(name, (self.burst, now))
        left = min(self.burst, left + (now - since) * self.rate)
        if len(self._left) > 10_000:
            self._left.clear()
        self._left[name] = (left - 1.0 if left >= 1.0 else left, now)
        return left >= 1.0
