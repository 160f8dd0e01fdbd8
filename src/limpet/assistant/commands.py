"""Slash commands: the one registry for all doors.

A command is an event like any other: stored first, answered through the outbox. Those that only read, and `/stop`, are
answered at once; those that write to the session wait for their place in the inbox and run under the lease.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from msgspec import structs

from limpet.assistant import commands_aims as aims
from limpet.assistant import commands_approvals as approvals
from limpet.assistant import commands_cron as jobs
from limpet.assistant import commands_look as look
from limpet.assistant import commands_mcp as mcp
from limpet.assistant import commands_memory as memory
from limpet.assistant import commands_recall as recall
from limpet.assistant import commands_session as session
from limpet.assistant import commands_skills as skills
from limpet.assistant import commands_subagents as subagents
from limpet.assistant import commands_tree as tree
from limpet.assistant import commands_trust as trust
from limpet.assistant import commands_undo as undo
from limpet.assistant.orders import Command, Order, Talk, parse
from limpet.errors import LimpetError
from limpet.store import inbox, outbox, sessions
from limpet.store.owner import Owner
from limpet.store.sessions import Lease
from limpet.store.sql import Connection
from limpet.types.envelope import Beside, InboxRow, Part
from limpet.types.ids import new_id


def find(text: str) -> Command | None:
    """The command that `text` calls; None when it is for the model. An unknown `/word` is a command too."""
    found = parse(text)
    if found is None:
        return None
    command = COMMANDS.get(found[0], _UNKNOWN)
    return structs.replace(command, needs_lease=False) if command.looks_alone and not found[1] else command


async def answer(conversation: Talk, row: InboxRow, command: Command) -> None:
    """Run a command that needs no lease; its reply and the end of its event are one commit.

    Whoever looks at the inbox meanwhile leaves it alone; nothing is done when somebody was faster.
    """
    services = conversation.services
    with _answering(services.owner, row.id) as ours:
        found = services.store.read(lambda connection: inbox.find(connection, row.id))
        if not ours or found is None or found.state != "queued":
            return
        reply = await _reply(command, Order(conversation, row, _arguments(row)))
        await services.store.write(
            lambda connection: _settle(connection, row, reply=reply or "", session="", now=services.clock.now())
        )


@contextmanager
def _answering(owner: Owner, row: int) -> Generator[bool]:
    """Whether it is ours to run the command in `row`."""
    ours = row not in owner.answering
    owner.answering.add(row)
    try:
        yield ours
    finally:
        if ours:
            owner.answering.discard(row)


async def run_queued(conversation: Talk, row: InboxRow, lease: Lease) -> None:
    """Run the command that is next in the inbox, under the lease, which is given back."""
    command = find(row.inbound.text) or _UNKNOWN
    services = conversation.services
    with _answering(services.owner, row.id) as ours:
        try:
            reply = await _reply(command, Order(conversation, row, _arguments(row), lease)) if ours else ""
        except LimpetError as error:
            reply = error.present()
        if reply is not None:

            def work(connection: Connection) -> None:
                if ours:
                    _settle(connection, row, reply=reply, session=lease.session, now=services.clock.now())
                sessions.release(connection, lease)

            await services.store.write(work)
    services.nudges.send()


async def _reply(command: Command, order: Order) -> str | None:
    if not command.is_for(order.row.inbound):
        return f"Only the owner may use {order.row.inbound.text.split()[0]} here."
    return await command.run(order)


def _settle(connection: Connection, row: InboxRow, *, reply: str, session: str, now: int) -> None:
    """The end of the event and its reply; nothing when it was answered meanwhile, by a lane or at its arrival."""
    if inbox.settle(connection, row.id, state="done") and reply:
        beside = Beside(reply_to=row.inbound.message if row.inbound.group else "")
        part = Part(address=row.inbound.address, text=reply, key=new_id("p"), beside=beside)
        outbox.queue(connection, part, session=session, turn="", now=now)


def _arguments(row: InboxRow) -> str:
    found = parse(row.inbound.text)
    return found[1] if found else ""


def command_of(order: Order) -> str:
    """The word after the slash."""
    found = parse(order.row.inbound.text)
    return found[0] if found else ""


async def _help(order: Order) -> str:
    lines = [f"/{c.name}{' ' + c.usage if c.usage else ''} - {c.summary}" for c in COMMANDS.values()]
    return "\n".join([*lines, *skills.listed(order, taken=COMMANDS)])


async def _unknown(order: Order) -> str:
    """A skill may have this name; a command of ours was found before."""
    if await skills.say_named(order, command_of(order)):
        return ""
    word = order.row.inbound.text.split()[0]
    return f"There is no command {word}. /help lists them; to say it to the model, put a word before it."


_UNKNOWN = Command(name="", summary="", run=_unknown)
COMMANDS = {
    command.name: command
    for command in (
        Command(name="help", summary="what you can say here", run=_help, peers="anywhere"),
        Command(name="status", summary="model, session and what it has used", run=look.status, peers="anywhere"),
        Command(
            name="new",
            summary="begin a new conversation; the old one is kept",
            run=session.new,
            needs_lease=True,
            peers="alone",
        ),
        Command(name="reset", summary="the same as /new", run=session.new, needs_lease=True, peers="alone"),
        Command(
            name="compact",
            summary="summarise the older part of this conversation; `focus` is what to keep above all",
            usage="[focus]",
            run=session.compact,
            needs_lease=True,
        ),
        Command(
            name="reload", summary="read the workspace files anew, tools included", run=session.reload, needs_lease=True
        ),
        Command(
            name="rewind",
            summary="go back to before one of your messages, or to a label; alone it lists them",
            usage="[n|label]",
            run=tree.rewind,
            needs_lease=True,
        ),
        Command(
            name="fork",
            summary="copy this conversation into a new one",
            usage="[name]",
            run=tree.fork,
            needs_lease=True,
        ),
        Command(
            name="label", summary="name this place, to come back to", usage="[text]", run=tree.label, needs_lease=True
        ),
        Command(name="stop", summary="stop what I am doing now", run=look.stop, decides=True, peers="anywhere"),
        Command(
            name="approve",
            summary="yes to what waits for your word, this once or always",
            usage="[id] [always]",
            run=approvals.approve,
            decides=True,
            peers="anywhere",
        ),
        Command(
            name="queue",
            summary="what becomes of messages while I work: steer, followup, collect, interrupt",
            usage="[mode|default]",
            run=session.queue,
            needs_lease=True,
        ),
        Command(
            name="subagents",
            summary="the helpers at work here, and those of the last day; stop one",
            usage="[stop id|all]",
            run=subagents.show_or_stop,
        ),
        Command(name="export", summary="this conversation as a file", run=session.export, peers="alone"),
        Command(name="restart", summary="have the gateway begin anew", run=session.restart),
        Command(name="whoami", summary="who I take you for", run=look.whoami, peers="anywhere"),
        Command(
            name="deny",
            summary="no to what waits for your word",
            usage="[id]",
            run=approvals.deny,
            decides=True,
            peers="anywhere",
        ),
        Command(
            name="answer",
            summary="answer what I asked you",
            usage="[id] text",
            run=approvals.answer,
            decides=True,
            peers="anywhere",
        ),
        Command(name="context", summary="what the next request holds, in tokens", run=look.show_context),
        Command(
            name="model",
            summary="show or change the model",
            usage="[provider/model]",
            run=session.model,
            needs_lease=True,
        ),
        Command(
            name="mcp",
            summary="say a prompt of an MCP server; alone it lists them",
            usage="[server.prompt name=value…]",
            run=mcp.mcp,
            needs_lease=True,
            looks_alone=True,
        ),
        Command(
            name="skill",
            summary="have a skill used; alone it lists them",
            usage="[name] [what to do]",
            run=skills.skill,
            needs_lease=True,
            looks_alone=True,
        ),
        Command(name="usage", summary="what was used in the last day and here", run=look.usage),
        Command(
            name="think",
            summary="how much to think",
            usage="[off|low|medium|high]",
            run=session.think,
            needs_lease=True,
        ),
        Command(
            name="trust",
            summary="whose words are in this conversation; `once` lets the next turn act on strangers' words unasked",
            usage="[once]",
            run=trust.trust,
            needs_lease=True,
            looks_alone=True,
        ),
        Command(
            name="recall",
            summary="whether memories go with your messages; `why` shows what was found for the last one",
            usage="[on|off|why]",
            run=recall.recall,
            needs_lease=True,
            looks_alone=True,
        ),
        Command(
            name="goal",
            summary="show or change what I am after over many turns",
            usage="[text|budget n|done|drop]",
            run=aims.goal,
            needs_lease=True,
            looks_alone=True,
        ),
        Command(
            name="plan",
            summary="show or change the steps on the way",
            usage="[add text|done n|drop n|clear]",
            run=aims.plan,
            needs_lease=True,
            looks_alone=True,
        ),
        Command(
            name="cron",
            summary="jobs and reminders: what is due when; add, pause, resume, run or remove one",
            usage="[add what --at when|pause|resume|run|remove name]",
            run=jobs.cron,
            needs_lease=True,
            looks_alone=True,
        ),
        Command(
            name="memory",
            summary="what is remembered; forget, change, take back, confirm it",
            usage="[list|add|forget|edit|undo|confirm|reject|history|consolidate|status] [id|words]",
            run=memory.memory,
            needs_lease=True,
            looks_alone=True,
        ),
        Command(
            name="rollback",
            summary="show what a turn changed in the workspace, then take it back",
            usage="[n|turn|list|yes|redo]",
            run=undo.undo,
            needs_lease=True,
        ),
        Command(
            name="retry",
            summary="try the last message again after a failure",
            run=session.retry,
            needs_lease=True,
            peers="alone",
        ),
    )
}
