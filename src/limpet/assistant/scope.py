"""For whom a turn works, as policy is told with each call: who speaks in it, and what the model has read."""

from __future__ import annotations

from collections.abc import Sequence

from limpet.assistant.elsewhere import EVENT
from limpet.assistant.services import Services
from limpet.assistant.unattended import judged, mandate_of
from limpet.session.log import Log
from limpet.store import inbox
from limpet.store.commits import TurnWriter
from limpet.types.envelope import Inbound, Trust, lowest
from limpet.types.ports import EVERYWHERE, BoundCall, Person, Scope, Tool, Verdict


class ScopedPolicy:
    """Implements the port `Policy` for one turn: asks that of `services` with the scope of the turn."""

    def __init__(self, log: Log, writer: TurnWriter, services: Services) -> None:
        self._log = log
        self._writer = writer
        self._services = services

    def decide(self, tool: Tool, call: BoundCall, scope: Scope = EVERYWHERE) -> Verdict:
        turn = self._writer.turn
        rows = self._services.store.read(lambda connection: inbox.of_turn(connection, turn))
        verdict = self._services.policy.decide(tool, call, self._scope([row.inbound for row in rows]))
        mandate = mandate_of(rows)
        return verdict if mandate is None else judged(tool.spec.name, verdict, mandate)

    def _scope(self, events: Sequence[Inbound]) -> Scope:
        """As it is now: further people may have joined the turn."""
        services = self._services
        trusts: list[Trust] = [event.trust for event in events]
        return Scope(
            agent=services.agent,
            people=tuple(map(person_of, events)),
            trust="external" if self._log.tainted else lowest(trusts),
            workspace=services.workspace,
        )


def person_of(event: Inbound) -> Person:
    """Who speaks in an event: for a job who made it. What an agent of the owner says elsewhere is the owner's."""
    is_owner = event.trust == "owner" or event.event.startswith(EVENT)
    if event.mandate is not None:
        return Person(event.mandate.channel, event.mandate.sender, is_owner)
    return Person(event.address.channel, event.sender, is_owner)
