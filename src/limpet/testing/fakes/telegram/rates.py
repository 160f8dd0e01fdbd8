"""How often a bot may send (https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this)."""

from __future__ import annotations

import math
from collections import defaultdict

from limpet.testing.fakes.shape import Refused
from limpet.types.ports import Clock


class Rates:
    """One message a second in a chat (`burst` at once are forgiven), 20 a minute in a group, 30 a second in all."""

    def __init__(self, clock: Clock, *, burst: int = 3) -> None:
        self._clock = clock
        self._burst = burst
        self._sent: defaultdict[int, list[float]] = defaultdict(list)

    def check(self, chat: int) -> None:
        """Raises `Refused` (429, its code the seconds to wait), or counts a message to `chat`."""
        now = self._clock.monotonic()
        here, all_of_them = self._sent[chat], sorted(at for times in self._sent.values() for at in times)
        waits = [
            self._wait(all_of_them, now, most=30, seconds=1.0),
            self._wait(here, now, most=self._burst, seconds=self._burst),
        ]
        if chat < 0:
            waits.append(self._wait(here, now, most=20, seconds=60.0))
        if max(waits) > 0:
            wait = math.ceil(max(waits))
            raise Refused(f"Too Many Requests: retry after {wait}", status=429, code=str(wait))
        here.append(now)

    def _wait(self, times: list[float], now: float, *, most: int, seconds: float) -> float:
        """Until fewer than `most` lie in the last `seconds`."""
        lately = [at for at in times if now - at < seconds]
        return lately[-most] + seconds - now if len(lately) >= most else 0.0
