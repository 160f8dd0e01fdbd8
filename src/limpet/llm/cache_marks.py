"""Marks: where a service that wants to be told keeps the prefix of a request, and for how long.

Anthropic and Bedrock read a prefix again only from where an earlier request was marked, find such a place at most 20
blocks before a mark of the new request, and take at most four marks. So tools, system text and newest message end with
one each, and a newest message of many blocks begins with one: the request before ended close before that.
(platform.claude.com/docs/en/build-with-claude/prompt-caching; `python -m bench cache` shows what it saves.)
"""

from __future__ import annotations

from msgspec import structs

from limpet.types.message import Rhythm
from limpet.types.profile import Profile

HOUR, SHORT = 3_600, 300
"""Seconds; what is kept for an hour costs twice the input to write, what is kept for five minutes 1.25 times."""
NEAR = 12
"""Blocks of a newest message whose last mark still finds where the request before ended; an answer may come between."""


def lifetime(profile: Profile, rhythm: Rhythm) -> int:
    """Seconds for which marks ask: `HOUR`, `SHORT`, or 0 for no marks.

    A single question is never read again, and writing it would only cost.
    """
    if not profile.cache_ttl or rhythm == "once":
        return 0
    return HOUR if profile.cache_ttl >= HOUR and rhythm == "slow" else SHORT


def kept(profile: Profile, rhythm: Rhythm) -> int:
    """Seconds after which the provider has forgotten a conversation of this rhythm; 0 = it keeps none."""
    return lifetime(profile, rhythm) if takes_marks(profile) else profile.cache_ttl


def takes_marks(profile: Profile) -> bool:
    """Whether the service keeps only what is marked."""
    return profile.cache_marks or profile.wire in ("anthropic", "bedrock")


def cache_control(profile: Profile, rhythm: Rhythm) -> dict[str, object]:
    """The mark as Anthropic writes it, and OpenRouter for Anthropic's models; empty where nothing is to be kept."""
    seconds = lifetime(profile, rhythm)
    if not seconds:
        return {}
    return {"type": "ephemeral", "ttl": "1h"} if seconds == HOUR else {"type": "ephemeral"}


def short_writes(profile: Profile) -> Profile:
    """The profile with the price of what is kept for five minutes; the price list has that of an hour."""
    price = profile.price
    if price is None:
        return profile
    return structs.replace(profile, price=structs.replace(price, cache_write=price.input * 5 // 4))


def marked(blocks: int) -> tuple[int, ...]:
    """The places of the marks among so many blocks of the newest message."""
    return (0, blocks - 1) if blocks > NEAR else (blocks - 1,)
