"""Turns that nobody asked for: jobs, hooks and the heartbeat. What they may do was settled when those were made.

Nobody is there to ask, so what needs a word is refused at once, unless it was granted; what has nothing to say says
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from hashlib import sha256

from msgspec import structs

from limpet.agent.limits import Limits
from limpet.assistant.services import Services
from limpet.llm.purposes import Purpose, purpose_of
from limpet.store import inbox, outbox, turns
from limpet.store.sessions import SessionRow
from limpet.store.sql import Connection
from limpet.tools.rules import ALWAYS
from limpet.types.envelope import InboxRow, Mandate
from limpet.types.ports import Verdict

SILENT = ("[SILENT]", "HEARTBEAT_OK", "NO_REPLY")
"""Answers that say there is nothing to say; the last one is what prompts for other systems ask for."""
DAY = 86_400_000
SHORT = 300
"""Characters beside HEARTBEAT_OK that count as nothing to say."""
OWN = ("cron",)
"""Tools that no run of a job has."""
_MARKS = "*_`~.! \t\n"
_NO_NOTICE = re.compile(r'"notify"\s*:\s*false')
_EDGE = re.compile(r"^[*_`~\s]*HEARTBEAT_OK[*_`~.!\s]*|[*_`~\s]*HEARTBEAT_OK[*_`~.!\s]*$")


def mandate_of(rows: Sequence[InboxRow]) -> Mandate | None:
    """The mandate of a turn that took `rows`; None as soon as a person speaks in it."""
    found = [row.inbound.mandate for row in rows]
    return found[0] if found and all(found) else None


def mandate_under(connection: Connection, key: str, live: SessionRow | None) -> Mandate | None:
    """The mandate of the turn that runs in the `live` session of a key, else of what waits there."""
    turn = turns.live(connection, live.id) if live is not None else None
    return mandate_of(inbox.of_turn(connection, turn.id) if turn is not None else inbox.queued(connection, key)[:1])


def purpose(services: Services, mandate: Mandate | None) -> Purpose:
    """How the model of a turn is asked."""
    if mandate is None:
        return purpose_of(services.purposes, "chat")
    found = purpose_of(services.purposes, "cron" if mandate.purpose == "hook" else mandate.purpose)
    if not mandate.thinking:
        return found
    return structs.replace(found, sampling=structs.replace(found.sampling, thinking=mandate.thinking))


def limits(services: Services, mandate: Mandate | None) -> Limits:
    usual = services.limits
    if mandate is None:
        return usual
    dollars = min(usual.dollars, mandate.dollars or usual.dollars)
    return structs.replace(usual, dollars=dollars, minutes=min(usual.minutes, mandate.minutes or usual.minutes))


def judged(tool: str, verdict: Verdict, mandate: Mandate) -> Verdict:
    """What becomes of the verdict on a call in a run of a job: only less, but for what was granted when it was made."""
    if tool in OWN:
        return Verdict("deny", "a run of a job or hook makes no jobs", rule="job", place=verdict.place)
    if mandate.tools and not any(fnmatchcase(tool, one) for one in mandate.tools):
        return Verdict("deny", f"the job {mandate.name} was made without {tool}", rule="job", place=verdict.place)
    granted = any(fnmatchcase(tool, one) for one in mandate.grants)
    if verdict.decision == "ask" and verdict.rule not in ALWAYS and granted:
        return Verdict("allow", f"granted to the job {mandate.name}", rule="job", place=verdict.place)
    return verdict


def alert_key(services: Services, text: str, mandate: Mandate) -> str:
    """The idempotency key of an alert of the heartbeat, so that the same words are told once in 24 hours; empty when
    they were told already."""
    now = services.clock.now()
    digest = sha256(text.strip().encode("utf-8", "replace")).hexdigest()[:24]
    day = now // DAY
    before, key = (f"alert:{mandate.job}:{digest}:{number}" for number in (day - 1, day))
    for one in (before, key):
        told = services.store.read(lambda connection, one=one: outbox.made(connection, one))
        if told and now - told < DAY:
            return ""
    return key


def reply_key(services: Services, text: str, mandate: Mandate) -> str | None:
    """The idempotency key with which the answer of a job is delivered, empty = any; None: it is not."""
    if is_silent(text, mandate):
        return None
    return (alert_key(services, text, mandate) or None) if mandate.purpose == "heartbeat" else ""


def is_silent(text: str, mandate: Mandate) -> bool:
    """Whether an answer says that there is nothing to say."""
    if text.strip(_MARKS).upper() in (one.strip(_MARKS) for one in SILENT):
        return True
    if _NO_NOTICE.search(text) and text.strip(_MARKS + "json").startswith("{"):
        return True
    rest, found = _EDGE.subn("", text.strip())
    return mandate.purpose == "heartbeat" and found > 0 and len(rest) <= SHORT
