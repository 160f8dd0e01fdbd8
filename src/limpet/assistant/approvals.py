"""Approvals of one turn: stored before anybody is asked, decided by the owner alone, good for exactly one plan.

A call that needs a word ends its turn's work for now (`TurnWaits`); the turn is then `waiting`, holds no lease, and
goes on, here or in another process, once somebody has decided. Who goes on finds the word by call and hash.
"""

from __future__ import annotations

from msgspec import structs

from limpet.assistant.services import Services
from limpet.assistant.subagents import is_helper
from limpet.assistant.unattended import mandate_of
from limpet.errors import InputError, TurnWaits
from limpet.store import approvals, inbox, sessions, subagents
from limpet.store.approvals import Place
from limpet.store.commits import TurnWriter
from limpet.store.sql import Connection
from limpet.types.approval import Approval, Reply, Ruling, Wanted
from limpet.types.envelope import Inbound

NOBODY = "Not approved, for nobody can be asked here"
TOO_LATE = "Not approved, for nobody answered within {minutes} minutes"
TERMINAL, PAGE = "cli", "page"
"""Who sits at this machine's terminal, and who is logged in at the page: its owner."""


class Unasked:
    """Implements the port `Approvals` where no turn runs: no, at once."""

    async def ask(self, wanted: Wanted) -> Ruling:
        return Ruling(False, NOBODY)


class TurnApprovals:
    """Implements the port `Approvals` for the turn of `writer`."""

    def __init__(self, services: Services, writer: TurnWriter) -> None:
        self._services = services
        self._writer = writer

    async def ask(self, wanted: Wanted) -> Ruling:
        services, turn = self._services, self._writer.turn
        now = services.clock.now()
        found = services.store.read(lambda connection: approvals.of_call(connection, turn, wanted))
        if found is None:
            if services.store.read(lambda connection: _is_granted(connection, services.agent, wanted)):
                return Ruling(True)
            if not services.approvals.can_ask or self._is_unattended() or is_helper(self._writer.key):
                return Ruling(False, NOBODY)
            found = await services.store.write(lambda connection: self._insert(connection, wanted, now))
            services.nudges.send()
        if not found.outcome and found.expires > now:
            raise TurnWaits((found.id,))
        return _ruling(found if found.outcome else await self._expire(found, now))

    def _is_unattended(self) -> bool:
        turn = self._writer.turn
        return mandate_of(self._services.store.read(lambda connection: inbox.of_turn(connection, turn))) is not None

    async def _expire(self, found: Approval, now: int) -> Approval:
        await self._services.store.write(lambda connection: approvals.expire(connection, found.id, now=now))
        return structs.replace(found, outcome="expired")

    def _insert(self, connection: Connection, wanted: Wanted, now: int) -> Approval:
        services, writer = self._services, self._writer
        if not sessions.fresh(connection, writer.lease):
            raise sessions.lost(writer.lease)
        rows = inbox.of_turn(connection, writer.turn)
        people = [one for row in rows for one in subagents.origins(connection, row)]
        asked_by = [one for one in people if one.trust == "owner"]
        place = Place(
            session=writer.lease.session,
            key=writer.key,
            turn=writer.turn,
            agent=services.agent,
            owner=who_is(asked_by[-1]) if asked_by else TERMINAL,
            process=services.owner.name,
        )
        return approvals.insert(connection, wanted, place, now=now, lasts=services.rules.approval)


def who_is(inbound: Inbound) -> str:
    """Who speaks: `cli` for this machine's terminal, else channel, account and sender."""
    address = inbound.address
    if address.channel == TERMINAL:
        return TERMINAL
    return ":".join((address.channel, address.account, inbound.sender))


async def decide(services: Services, name: str, reply: Reply, *, who: str) -> Approval:
    """Settle the approval `name` by the word of `who` (see `who_is`), and wake who waits for it.

    The seam for buttons and pages. Raises `InputError`: not the owner's word, no longer open, not one of the choices.
    """
    now = services.clock.now()
    made = await services.store.write(lambda connection: settle(connection, name, reply, who=who, now=now))
    services.nudges.send()
    return made


def settle(connection: Connection, name: str, reply: Reply, *, who: str, now: int) -> Approval:
    """`decide` within a transaction. Raises `InputError`."""
    found = next((one for one in approvals.matching(connection, name) if one.id == name), None)
    if found is None:
        raise InputError(f"There is no approval {name}.")
    if who not in (TERMINAL, PAGE, found.owner):
        raise InputError("Only the owner may decide this.")
    _check(found, reply)
    if not approvals.decide(connection, found.id, reply, by=who, now=now):
        said = found.outcome or "expired"
        raise InputError(f"{found.id} is not open any more: {said}.")
    return structs.replace(found, outcome=reply.word, text=reply.text, by=who, at=now)


def _check(found: Approval, reply: Reply) -> None:
    wanted = found.wanted
    if wanted.kind == "call" and reply.word == "answer":
        raise InputError(f"{found.id} wants a yes or no.")
    if wanted.kind == "question" and reply.word not in ("answer", "deny"):
        raise InputError(f"{found.id} is a question: answer it, or deny an answer.")
    if reply.word == "answer" and not reply.text.strip():
        raise InputError("The answer is empty.")
    if reply.word == "answer" and wanted.only_choices and reply.text not in wanted.choices:
        raise InputError(f"Only these are answers: {', '.join(wanted.choices)}.")


def _is_granted(connection: Connection, agent: str, wanted: Wanted) -> bool:
    return wanted.kind == "call" and approvals.grant_of(connection, agent, wanted.hash) is not None


def _ruling(found: Approval) -> Ruling:
    match found.outcome:
        case "once" | "always":
            return Ruling(True)
        case "answer":
            return Ruling(True, found.text)
        case "expired":
            return Ruling(False, TOO_LATE.format(minutes=max(1, (found.expires - found.created) // 60_000)))
        case _:
            return Ruling(False)
