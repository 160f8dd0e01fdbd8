"""For whom a turn works, as policy is told with each call: who speaks in it, and what the model has read."""

from __future__ import annotations

from limpet.assistant.services import Services
from limpet.assistant.subagents import lacks, origins_of
from limpet.assistant.unattended import judged, mandate_of, reserved
from limpet.session.log import Log
from limpet.store import inbox
from limpet.store.commits import TurnWriter
from limpet.types.envelope import Inbound, Person, Trust, lowest
from limpet.types.ports import EVERYWHERE, BoundCall, Scope, Tool, Verdict


class ScopedPolicy:
    """Implements the port `Policy` for one turn: asks that of `services` with the scope of the turn."""

    def __init__(self, log: Log, writer: TurnWriter, services: Services) -> None:
        self._log = log
        self._writer = writer
        self._services = services

    def decide(self, tool: Tool, call: BoundCall, scope: Scope = EVERYWHERE) -> Verdict:
        depth = self._services.rules.helpers.depth
        if why := lacks(self._writer.key, tool.spec.name, depth=depth):
            return Verdict("deny", why, rule="helper")
        if why := reserved(self._writer.key, tool.spec.name):
            return Verdict("deny", why, rule="heartbeat")
        turn = self._writer.turn
        rows = self._services.store.read(lambda connection: inbox.of_turn(connection, turn))
        verdict = self._services.policy.decide(tool, call, self._scope())
        mandate = mandate_of(rows)
        return verdict if mandate is None else judged(tool.spec.name, verdict, mandate)

    def _scope(self) -> Scope:
        """As it is now: further people may have joined the turn. A helper works for those its parent works for."""
        services = self._services
        events = origins_of(services.store, self._writer.turn)
        trusts: list[Trust] = [event.trust for event in events]
        return Scope(
            agent=services.agent,
            people=tuple(map(person_of, events)),
            trust="external" if self._log.tainted else lowest(trusts),
            workspace=services.workspace,
        )


def person_of(event: Inbound) -> Person:
    """Who speaks in an event: for a job who made it. What an agent of the owner says elsewhere is the owner's."""
    is_owner = event.trust == "owner" or event.internal
    if (mandate := event.mandate) is not None:
        return Person(mandate.channel, mandate.sender, is_owner, mandate.profile)
    return Person(event.address.channel, event.sender, is_owner)
