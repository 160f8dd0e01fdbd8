"""A program talks with an agent: which conversation it means, what of its messages is new, what it is answered."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from limpet.errors import class_of
from limpet.gateway.programs import Break, Outcome, Programs, Saying
from limpet.net.client import Web
from limpet.server.api import pictures
from limpet.server.api.access import Caller
from limpet.server.api.asks import Ask, Ended, Fault, Line
from limpet.server.api.faults import fault_for
from limpet.session import keys
from limpet.store import api_threads, sessions
from limpet.store.driver import Store
from limpet.types.envelope import InboxRow
from limpet.types.ids import new_id
from limpet.types.ports import Clock

_PLAIN = re.compile(r"[A-Za-z0-9_.@-]{1,64}")
RULES = "[The program that you are used through says]\n{system}"
EARLIER = "[What was said before, as the program tells it]\n{told}"
AGAIN = "[The answer begins again.]\n\n"
LATER = "The answer is not there after {minutes:g} minutes; the turn goes on. The same Idempotency-Key gives it later."
KEPT = "{why}\nThe message is kept and answered later; the same Idempotency-Key gives the answer."


class Named(Struct, frozen=True):
    """What the headers say: `session` of the conversation, `event` of the request, for good."""

    session: str = ""
    event: str = ""


@dataclass(frozen=True, slots=True)
class Talk:
    """A message that is stored. `session` is the name of its conversation; `begins` tells how that was begun."""

    row: InboxRow
    session: str
    begins: tuple[Line, ...] = ()
    system: str = ""

    @property
    def number(self) -> str:
        return str(self.row.id)


class Conversing:
    """Has agents answer."""

    def __init__(self, programs: Programs, store: Store, web: Web, *, clock: Clock) -> None:
        self._programs = programs
        self._store = store
        self._web = web
        self._clock = clock

    async def begin(self, ask: Ask, caller: Caller, *, agent: str, named: Named) -> Talk:
        """Store what is new in a request. Raises `Fault`, `LimpetError`."""
        if ask.stop:
            raise Fault(400, "A conversation of the agent knows no stop sequences; leave them out.", field="stop")
        earlier, new = _split(ask.lines)
        mark = _digest(*(line.text for line in new), *(one for line in new for one in line.pictures))
        known = self._programs.known(caller.name, named.event)
        if known is not None:
            if known.inbound.message != mark:
                raise Fault(422, "This Idempotency-Key was used for another message.", code="idempotency_error")
            return Talk(known, known.key.rpartition(":")[2])
        images = await pictures.fetched(tuple(one for line in new for one in line.pictures), self._web)
        session = self._session(ask, caller, named.session, agent=agent, earlier=earlier)
        key = keys.api(agent, caller.name, session)
        fresh = self._store.read(lambda connection: sessions.live(connection, key)) is None
        saying = Saying(
            token=caller.name,
            session=session,
            event=named.event,
            text=_text(ask, new, earlier if fresh else (), fresh=fresh),
            mark=mark,
            agent=agent,
            trust=caller.trust,
            files=pictures.files(images),
            sampling=ask.sampling,
        )
        row = await self._programs.say(saying)
        named_by_us = not (named.session or ask.session or ask.previous)
        return Talk(row, session, tuple(new) if named_by_us and not earlier else (), ask.system)

    async def answers(
        self, talk: Talk, caller: Caller, *, stream: bool, minutes: float
    ) -> AsyncGenerator[str | Ended | None]:
        """Pieces of the answer, at last all of it; None while nothing is heard. Raises `Fault`."""
        until = self._clock.monotonic() + minutes * 60
        said, gap = "", ""
        async with aclosing(self._programs.follow(talk.row)) as heard:
            async for one in heard:
                match one:
                    case str():
                        said, piece, gap = said + gap + one, gap + one, ""
                        yield piece
                    case Break():
                        gap = f"\n\n{AGAIN if one.again else ''}" if said else ""
                    case Outcome():
                        ended = _ended(one)
                        rest = _rest(said, ended.text)
                        if rest:
                            yield rest
                        whole = said + rest if stream else ended.text
                        await self._note(talk, caller, whole)
                        yield msgspec.structs.replace(ended, text=whole)
                    case None if self._clock.monotonic() > until:
                        raise Fault(504, LATER.format(minutes=minutes), code="timeout")
                    case None:
                        yield None

    async def leave(self, talk: Talk) -> None:
        """Nobody waits for the answer any more, and it is not wanted."""
        await self._programs.stop(talk.row)

    def _session(self, ask: Ask, caller: Caller, named: str, *, agent: str, earlier: Sequence[Line]) -> str:
        """The name of the conversation that a request belongs to; a new one where it goes on from nothing known."""
        if ask.previous:
            return self._goes_on(ask.previous, caller, agent)
        if given := named or ask.session:
            return given if _PLAIN.fullmatch(given) else f"h-{_digest(given)[:24]}"
        if not earlier:
            return new_id("s")
        name, now = _beginning(ask.system, earlier, agent=agent), self._clock.now()
        thread = self._store.read(lambda connection: api_threads.find(connection, caller.name, name, now=now))
        return thread.session if thread is not None and thread.session else f"t-{name[:24]}"

    def _goes_on(self, previous: str, caller: Caller, agent: str) -> str:
        number = previous.removeprefix("resp_")
        row = self._programs.row(int(number)) if number.isascii() and number.isdigit() and len(number) < 16 else None
        prefix = keys.api(agent, caller.name, "")
        if row is None or not row.key.startswith(prefix):
            raise Fault(404, f"There is no answer {previous[:80]!r}.", code="previous_response_not_found")
        return row.key.removeprefix(prefix)

    async def _note(self, talk: Talk, caller: Caller, answer: str) -> None:
        """Remember how a conversation began, so that a program that tells it all again goes on with it."""
        if not talk.begins:
            return
        lines = (*talk.begins, Line("assistant", answer))
        name = _beginning(talk.system, lines, agent=keys.agent_of(talk.row.key))
        session, now = talk.session, self._clock.now()
        await self._store.write(
            lambda connection: api_threads.note(connection, caller.name, name, session=session, now=now)
        )


def _split(lines: Sequence[Line]) -> tuple[Sequence[Line], Sequence[Line]]:
    """What was said before, and what is new: all after the last answer. Raises `Fault`."""
    last = max((index for index, line in enumerate(lines) if line.role == "assistant"), default=-1)
    new = lines[last + 1 :]
    if not any(line.text.strip() or line.pictures for line in new):
        raise Fault(400, "The newest message has to be one of the user, and say something.", field="messages")
    return lines[: last + 1], new


def _text(ask: Ask, new: Sequence[Line], earlier: Sequence[Line], *, fresh: bool) -> str:
    """What the agent is told; in a new conversation with the program's rules, and with what it says was before."""
    parts = [RULES.format(system=ask.system)] if fresh and ask.system.strip() else []
    if earlier:
        told = "\n\n".join(f"{line.role}: {line.text}" for line in earlier if line.text.strip())
        parts.append(EARLIER.format(told=told))
    return "\n\n".join([*parts, *(line.text for line in new if line.text.strip())])


def _beginning(system: str, lines: Sequence[Line], *, agent: str) -> str:
    """How a conversation began, up to its first answer: by this it is known again."""
    first = next(index for index, line in enumerate(lines) if line.role == "assistant")
    return _digest(agent, system, *(f"{line.role}:{line.text.strip()}" for line in lines[: first + 1]))


def _digest(*parts: str) -> str:
    return hashlib.sha256(msgspec.json.encode([part.encode("utf-8", "replace").decode() for part in parts])).hexdigest()


def _rest(said: str, text: str) -> str:
    """What of the answer was not said yet."""
    if not text or said.rstrip().endswith(text.strip()):
        return ""
    return f"\n\n{text}" if said else text


def _ended(outcome: Outcome) -> Ended:
    """Raises `Fault`."""
    if outcome.state == "kept":
        raise Fault(503, KEPT.format(why=outcome.text), code="kept")
    if outcome.state == "failed":
        raise fault_for(class_of(outcome.error), outcome.text)
    stop = outcome.stop if outcome.stop in ("length", "refusal") else "stop"
    return Ended(outcome.text, stop=stop, usage=outcome.usage)
