"""Turns that nobody asked for: jobs, hooks and the heartbeat. What they may do was settled when those were made.

Nobody is there to ask, so what needs a word is refused at once, unless it was granted; what has nothing to say says
nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256

import msgspec
from msgspec import Struct, structs

from limpet.agent.limits import Limits
from limpet.assistant.services import Services
from limpet.llm.purposes import Purpose, purpose_of
from limpet.session.log import Log
from limpet.store import inbox, outbox, turns
from limpet.store.sessions import SessionRow
from limpet.store.sql import Connection
from limpet.tools.deferred import unwrapped
from limpet.tools.respond import RESPOND
from limpet.tools.rules import ALWAYS
from limpet.types.content import ToolCall
from limpet.types.entry import AssistantEntry, ToolResultEntry
from limpet.types.envelope import InboxRow, Mandate
from limpet.types.ports import Verdict

SILENT = ("[SILENT]", "HEARTBEAT_OK", "NO_REPLY")
"""Answers that say there is nothing to say; the last one is what prompts for other systems ask for."""
DAY = 86_400_000
SHORT = 300
"""Characters beside HEARTBEAT_OK that count as nothing to say."""
OWN = ("cron",)
"""Tools that no run of a job has."""
_FENCED = re.compile(r"\s*```(?:json)?\s*(\{.*\})\s*```\s*", re.DOTALL)
_AROUND = re.compile(r"<[^<>]{1,20}>|^[^\w\[]+|[^\w\]]+$")
"""What a word may be set in: tags, marks, emoji."""
_EDGE = re.compile(r"^[\W_]*HEARTBEAT_OK(?![^\W_])[^\w\s]*|(?<![^\W_])HEARTBEAT_OK[\W_]*$", re.IGNORECASE)
_BEAT = "cron:heartbeat-"


class Response(Struct, frozen=True):
    """What a heartbeat has found, as its tool takes it or a model without tools writes it."""

    notify: bool
    text: str = ""


_response = msgspec.json.Decoder(Response)


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
    if tool == RESPOND:
        return verdict
    if tool in OWN:
        return Verdict("deny", "a run of a job or hook makes no jobs", rule="job", place=verdict.place)
    if mandate.tools and not any(fnmatchcase(tool, one) for one in mandate.tools):
        return Verdict("deny", f"the job {mandate.name} was made without {tool}", rule="job", place=verdict.place)
    granted = any(fnmatchcase(tool, one) for one in mandate.grants)
    if verdict.decision == "ask" and verdict.rule not in ALWAYS and granted:
        return Verdict("allow", f"granted to the job {mandate.name}", rule="job", place=verdict.place)
    return verdict


def reserved(key: str, tool: str) -> str:
    """Why the conversation under `key` must not use a tool that only heartbeats have; empty when it may."""
    return "only a heartbeat is answered with it" if tool == RESPOND and not key.startswith(_BEAT) else ""


def responded(log: Log, turn: str) -> str | None:
    """What the first response of a heartbeat in `turn` wants told, empty = nothing; None while there is none."""
    calls: dict[tuple[str, int], ToolCall] = {}
    given = {place for place, name in _results(log, turn) if name == RESPOND}
    for entry in log.entries:
        if entry.turn == turn and isinstance(entry.payload, AssistantEntry):
            calls |= {(entry.id, index): call for index, call in enumerate(entry.payload.message.calls)}
    for place, call in calls.items():
        if place in given and (found := _read(unwrapped(call).arguments)) is not None:
            return found.text if found.notify else ""
    return None


def _results(log: Log, turn: str) -> Iterator[tuple[tuple[str, int], str]]:
    for entry in log.entries:
        payload = entry.payload
        if entry.turn == turn and isinstance(payload, ToolResultEntry) and not payload.result.is_error:
            yield (payload.assistant, payload.index), payload.name


def _read(text: str) -> Response | None:
    try:
        return _response.decode(text)
    except msgspec.MsgspecError:
        return None


def alert_key(services: Services, text: str, mandate: Mandate) -> str:
    """The idempotency key of an alert of the heartbeat, so that the same words are told once in 24 hours, however they
    are set; empty when they were told already."""
    now = services.clock.now()
    digest = sha256(_bare(text).encode("utf-8", "replace")).hexdigest()[:24]
    day = now // DAY
    before, key = (f"alert:{mandate.job}:{digest}:{number}" for number in (day - 1, day))
    for one in (before, key):
        told = services.store.read(lambda connection, one=one: outbox.made(connection, one))
        if told and now - told < DAY:
            return ""
    return key


def _bare(text: str) -> str:
    """The words and numbers of a text, without case and marks."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold().replace("_", " ")))


def to_be_told(services: Services, text: str, mandate: Mandate) -> tuple[str, str]:
    """What of an answer is delivered, and the idempotency key for it (empty: any); nothing where a job has nothing to
    say, or its heartbeat has told it within a day."""
    told = spoken(text, mandate)
    if not told or mandate.purpose != "heartbeat":
        return told, ""
    key = alert_key(services, told, mandate)
    return (told, key) if key else ("", "")


def spoken(text: str, mandate: Mandate) -> str:
    """What of an answer is to be told; empty when it says that there is nothing to say."""
    fenced = _FENCED.fullmatch(text)
    if (found := _read(fenced[1] if fenced else text)) is not None:
        return (spoken(found.text, mandate) if found.text else text) if found.notify else ""
    if _AROUND.sub("", _AROUND.sub("", text).strip("_")).upper() in SILENT:
        return ""
    rest, edges = _EDGE.subn("", text.strip())
    if mandate.purpose != "heartbeat" or not edges:
        return text
    return rest.strip() if len(rest) > SHORT else ""
