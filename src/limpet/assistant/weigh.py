"""How many tokens a conversation has: what the provider counted last, and an estimate of what came after it."""

from __future__ import annotations

from limpet.llm.cache_marks import kept
from limpet.llm.tokens import RunningEstimate, message_tokens
from limpet.session.log import Log
from limpet.session.rhythm import rhythm_of
from limpet.session.room import room_of
from limpet.types.entry import AssistantEntry, Entry, ToolResultEntry, UserEntry
from limpet.types.message import Request, ToolMessage
from limpet.types.profile import Profile

LEAST, MOST = 0.5, 4.0
"""Bounds of a learned multiplier: what is outside them is a fault of the provider's counting."""


def is_cold(log: Log, profile: Profile, now: int, *, key: str) -> bool:
    """Whether the provider has forgotten the prefix, so that changing it costs nothing; never where it keeps none."""
    seconds = kept(profile, rhythm_of(key, log.pauses))
    return 0 < log.answered < now - seconds * 1000 and seconds > 0


class Weights:
    """Estimates, corrected by one multiplier per model that is learned from the usage providers report."""

    def __init__(self) -> None:
        self._running = RunningEstimate()
        self._learned: dict[str, float] = {}

    def factor(self, profile: Profile) -> float:
        """By how much the plain estimate is multiplied for this model."""
        return self._learned.get(profile.reference, profile.token_factor)

    def estimated(self, request: Request, profile: Profile) -> int:
        """Tokens of a request by estimate alone."""
        return round(self._running.request(request) * self.factor(profile))

    def request(self, request: Request, log: Log, profile: Profile) -> int:
        """Tokens of the request that `log` gives now."""
        measured = log.measured
        if measured is None or measured.messages > len(request.messages):
            return self.estimated(request, profile)
        later = sum(map(message_tokens, request.messages[measured.messages :]))
        tokens = measured.tokens + round(later * self.factor(profile))
        if tokens > room_of(profile.window).soft:  # from here on the multiplier will be needed
            known = self._running.request(request) - later
            self._learned[profile.reference] = min(max(measured.tokens / max(known, 1), LEAST), MOST)
            tokens = measured.tokens + round(later * self.factor(profile))
        return tokens

    def entry(self, entry: Entry, profile: Profile) -> int:
        """Tokens of one entry in a request."""
        match entry.payload:
            case UserEntry(message=message) | AssistantEntry(message=message):
                tokens = message_tokens(message)
            case ToolResultEntry(name=name, result=result):
                tokens = message_tokens(ToolMessage(call_id="", name=name, content=result.content))
            case _:
                tokens = 0
        return round(tokens * self.factor(profile))
