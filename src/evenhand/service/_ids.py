"""Ids of decisions."""

from __future__ import annotations

import os
import time


def new_id() -> str:
    """A UUID of version 7: ordered by time, so that the index stays small and quick."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    high = (milliseconds & (1 << 48) - 1) << 16 | 0x7000 | random >> 68 & 0xFFF
    low = 1 << 63 | random & (1 << 62) - 1
    text = f"{high << 64 | low:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
