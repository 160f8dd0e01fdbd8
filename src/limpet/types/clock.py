"""The clock of the machine."""

from __future__ import annotations

import time


class SystemClock:
    """Implements the port `Clock`."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()
