"""Simulation: what policy, as it is now, would have said of the calls of recorded turns. Nothing is run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from limpet.assistant.scope import person_of
from limpet.assistant.services import Services
from limpet.assistant.taint import TaintPolicy
from limpet.errors import ToolError
from limpet.session.log import Log
from limpet.store import approvals, entries, inbox
from limpet.store.sessions import SessionRow
from limpet.tools.deferred import unwrapped
from limpet.types.content import ToolCall
from limpet.types.entry import AssistantEntry, Entry, ToolResultEntry
from limpet.types.envelope import lowest
from limpet.types.ports import Decision, Policy, Scope, Tool, Verdict

Happened = Literal["allow", "ask", "deny", "open"]
"""What was decided then; `open`: the call has no result."""
REFUSED = ("Not allowed: ", "Not approved")


class Judged(Struct, frozen=True):
    """A recorded call. `now` is None for one that cannot be made any more: no such tool, other arguments."""

    session: str
    turn: str
    tool: str
    plan: str
    then: Happened
    now: Verdict | None

    @property
    def decision(self) -> Decision | None:
        return self.now.decision if self.now else None


def simulate(services: Services, session: SessionRow, policy: Policy) -> Iterator[Judged]:
    """Every call of a session, in order, each with what was in the window when it was made."""
    recorded = services.store.read(lambda connection: entries.load(connection, session.id))
    asked = services.store.read(lambda connection: approvals.calls_of(connection, session.id))
    tools = {tool.spec.name: tool for tool in services.tools}
    results = {
        f"{entry.payload.assistant}.{entry.payload.index}": entry.payload.result
        for entry in recorded
        if isinstance(entry.payload, ToolResultEntry)
    }
    log = Log()
    for entry in recorded:
        if isinstance(entry.payload, AssistantEntry):
            scope = _scope(services, session, entry, log=log)
            guarded = TaintPolicy(policy, log, turn=entry.turn, workspace=services.workspace)
            for index, call in enumerate(entry.payload.message.calls):
                name = f"{entry.id}.{index}"
                result = results.get(name)
                then = _happened(result.text if result and result.is_error else "", result is None, name in asked)
                plan, now = _judge(services, tools, call, policy=guarded, scope=scope)
                yield Judged(session.id, entry.turn, unwrapped(call).name, plan, then, now)
        log.extend([entry])


def _happened(error: str, is_open: bool, asked: bool) -> Happened:
    if asked or error.startswith(REFUSED[1]):
        return "ask"
    if is_open:
        return "open"
    return "deny" if error.startswith(REFUSED[0]) else "allow"


def _judge(
    services: Services, tools: Mapping[str, Tool], call: ToolCall, *, policy: Policy, scope: Scope
) -> tuple[str, Verdict | None]:
    call = unwrapped(call)
    tool = tools.get(call.name)
    try:
        bound = tool.bind(call.arguments, workspace=services.workspace) if tool else None
    except ToolError:
        bound = None
    if tool is None or bound is None:
        return f"{call.name} {call.arguments}", None
    return bound.plan(), policy.decide(tool, bound, scope)


def _scope(services: Services, session: SessionRow, entry: Entry, *, log: Log) -> Scope:
    events = services.store.read(lambda connection: inbox.taken_by(connection, entry.turn))
    return Scope(
        agent=session.agent,
        people=tuple(person_of(row.inbound) for row in events),
        trust="external" if log.tainted else lowest(row.inbound.trust for row in events),
        workspace=services.workspace,
    )
