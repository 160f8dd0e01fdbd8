"""Slash commands: the one registry for all doors.

A command is an event like any other: stored first, answered through the outbox. Those that only read, and `/stop`, are
answered at once; those that write to the session wait for their place in the inbox and run under the lease.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec import Struct

from limpet.assistant.services import Services
from limpet.errors import LimpetError
from limpet.llm.tokens import estimate
from limpet.session.export import plain
from limpet.session.log import Log
from limpet.store import commits, entries, inbox, outbox, sessions, spending, turns, usage
from limpet.store.outbox import Part
from limpet.store.sessions import Lease
from limpet.store.sql import Connection
from limpet.types.entry import ModelChange, PromptEntry
from limpet.types.envelope import InboxRow
from limpet.types.ids import new_id
from limpet.types.usage import Usage

LEVELS = ("off", "low", "medium", "high")
DAY = 24 * 3600 * 1000
"""Milliseconds."""
_SHAPE = re.compile(r"/([a-z_]+)(?:@\S+)?(?:\s+(.*))?", re.DOTALL)


class Talk(Protocol):
    """What a command needs of the conversation it is given in; provided by `conversation`."""

    @property
    def services(self) -> Services: ...
    @property
    def key(self) -> str: ...
    def model_reference(self) -> str: ...
    def log(self) -> Log: ...
    def name_model(self, reference: str) -> None: ...
    def forget(self) -> None: ...
    def stop(self) -> None: ...
    async def run_begun(self, lease: Lease, name: str) -> object: ...


class Order(Struct, frozen=True):
    """A command as it was given. `lease` is None for those that need none."""

    conversation: Talk
    row: InboxRow
    arguments: str
    lease: Lease | None = None


class Command(Struct, frozen=True):
    """`run` does it and gives the reply; None when the reply comes on its own (a turn)."""

    name: str
    summary: str
    run: Callable[[Order], Awaitable[str | None]]
    usage: str = ""
    needs_lease: bool = False


def find(text: str) -> Command | None:
    """The command that `text` calls; None when it is for the model. An unknown `/word` is a command too."""
    match = _SHAPE.fullmatch(text.strip())
    return COMMANDS.get(match[1], _UNKNOWN) if match else None


async def answer(conversation: Talk, row: InboxRow, command: Command) -> None:
    """Run a command that needs no lease; its reply and the end of its event are one commit."""
    reply = await command.run(Order(conversation, row, _arguments(row)))
    await conversation.services.store.write(
        lambda connection: _settle(
            connection, row, reply=reply or "", session="", now=conversation.services.clock.now()
        )
    )


async def run_queued(conversation: Talk, row: InboxRow, lease: Lease) -> None:
    """Run the command that is next in the inbox, under the lease, which is given back."""
    command = find(row.inbound.text) or _UNKNOWN
    services = conversation.services
    try:
        reply = await command.run(Order(conversation, row, _arguments(row), lease))
    except LimpetError as error:
        reply = error.present()
    if reply is not None:

        def work(connection: Connection) -> None:
            _settle(connection, row, reply=reply, session=lease.session, now=services.clock.now())
            sessions.release(connection, lease)

        await services.store.write(work)
    services.nudges.send()


def _settle(connection: Connection, row: InboxRow, *, reply: str, session: str, now: int) -> None:
    inbox.settle(connection, row.id, state="done")
    if reply:
        part = Part(address=row.inbound.address, text=reply, key=new_id("p"))
        outbox.queue(connection, part, session=session, turn="", now=now)


def _arguments(row: InboxRow) -> str:
    match = _SHAPE.fullmatch(row.inbound.text.strip())
    return (match[2] or "").strip() if match else ""


async def _help(order: Order) -> str:
    return "\n".join(f"/{c.name}{' ' + c.usage if c.usage else ''} - {c.summary}" for c in COMMANDS.values())


async def _unknown(order: Order) -> str:
    word = order.row.inbound.text.split()[0]
    return f"There is no command {word}. /help lists them; to say it to the model, put a word before it."


async def _status(order: Order) -> str:
    conversation = order.conversation
    services, key = conversation.services, conversation.key
    model = await services.models.get(conversation.model_reference())
    live = services.store.read(lambda connection: sessions.live(connection, key))
    lines = [f"model: {model.profile.reference}", f"session: {key}"]
    if live is None:
        return "\n".join([*lines, "no conversation yet"])
    turn = services.store.read(lambda connection: turns.live(connection, live.id))
    spent = services.store.read(lambda connection: usage.of_session(connection, live.id))
    count = services.store.read(lambda connection: entries.last_seq(connection, live.id))
    return "\n".join(
        [
            *lines,
            f"id: {live.id}",
            f"entries: {count}",
            f"turn: {'working' if turn else 'idle'}",
            f"used: {_tokens(spent)}",
        ]
    )


async def _stop(order: Order) -> str:
    conversation = order.conversation
    key = conversation.key
    found = await conversation.services.store.write(lambda connection: turns.request_stop(connection, key))
    conversation.stop()
    conversation.services.nudges.send()
    return "Stopped." if found else "There is nothing to stop."


async def _context(order: Order) -> str:
    conversation = order.conversation
    return await context(conversation)


async def context(conversation: Talk) -> str:
    """The sections of the next request with their estimated tokens, as a table in plain text."""
    model = await conversation.services.models.get(conversation.model_reference())
    profile = model.profile
    log = conversation.log()
    prompt = await current_prompt(conversation)
    rows = [(section.name, estimate(section.text)) for section in prompt.sections]
    tools = sum(estimate(f"{tool.name} {tool.description} {bytes(tool.parameters).decode()}") for tool in prompt.tools)
    said = sum(estimate(plain(message)) for message in log.messages())
    rows += [(f"tools ({len(prompt.tools)})", tools), ("messages", said)]
    rows = [(name, round(tokens * profile.token_factor)) for name, tokens in rows]
    total = sum(tokens for _, tokens in rows)
    window = f" of {profile.window}" if profile.window else ""
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {tokens:>7}" for name, tokens in rows]
    made = f"snapshot: {prompt.tier}, {prompt.reason}"
    return "\n".join([*lines, f"{'total':<{width}}  {total:>7}{window} tokens (estimated)", made])


async def current_prompt(conversation: Talk) -> PromptEntry:
    """The snapshot that the next request uses, or would use if it were the first."""
    model = await conversation.services.models.get(conversation.model_reference())
    prompt = conversation.log().prompt
    return prompt or conversation.services.prompting.snapshot(model.profile, reason="preview")


async def _usage(order: Order) -> str:
    """What was used in the last 24 hours, by model, and in this conversation."""
    conversation = order.conversation
    store, key = conversation.services.store, conversation.key
    since = conversation.services.clock.now() - DAY
    rows = store.read(lambda connection: spending.spent(connection, "model", since=since))
    lines = [f"{row.name}: {row.requests} requests, {_tokens(row.usage)}" for row in rows]
    live = store.read(lambda connection: sessions.live(connection, key))
    if live is not None:
        here = store.read(lambda connection: usage.of_session(connection, live.id))
        lines.append(f"this conversation: {_tokens(here)}")
    return "\n".join(["In the last 24 hours:", *lines]) if lines else "Nothing was used yet."


def _tokens(used: Usage) -> str:
    cost = "price unknown" if used.cost is None else f"${used.cost / 1e6:.4f}"
    read = used.input + used.cache_read + used.cache_write
    return f"{read} tokens in ({used.cache_read} cached), {used.output} out, {cost}"


async def _new(order: Order) -> str:
    lease, conversation = order.lease, order.conversation
    assert lease is not None
    now = conversation.services.clock.now()
    await conversation.services.store.write(lambda connection: sessions.end(connection, lease, reason="new", now=now))
    conversation.forget()
    return "A new conversation. What was said before is kept (`limpet sessions list`)."


async def _model(order: Order) -> str:
    lease, conversation, reference = order.lease, order.conversation, order.arguments
    assert lease is not None
    services = conversation.services
    if not reference:
        model = await services.models.get(conversation.model_reference())
        return f"{model.profile.reference}. Change it with /model provider/model."
    model = await services.models.get(reference)
    reference = model.profile.reference
    now = services.clock.now()

    def work(connection: Connection) -> None:
        sessions.set_model(connection, lease, reference)
        entries.append(connection, lease, ModelChange(reference), turn="", now=now)

    await services.store.write(work)
    conversation.name_model("")
    return f"From here on this conversation speaks to {reference}."


async def _think(order: Order) -> str:
    lease, level = order.lease, order.arguments.lower()
    assert lease is not None
    store, key = order.conversation.services.store, order.conversation.key
    if not level:
        live = store.read(lambda connection: sessions.live(connection, key))
        return f"Thinking: {(live.thinking if live else '') or 'as the settings say'}. Change it with /think LEVEL."
    if level not in (*LEVELS, "default"):
        return f"There is no level {level}. There are: {', '.join(LEVELS)}, and default for what the settings say."
    wanted = "" if level == "default" else level
    await store.write(lambda connection: sessions.set_thinking(connection, lease, wanted))
    return f"Thinking: {wanted or 'as the settings say'}, from the next message on."


async def _retry(order: Order) -> str | None:
    lease, conversation = order.lease, order.conversation
    assert lease is not None
    services = conversation.services
    newest = services.store.read(lambda connection: turns.newest(connection, lease.session))
    if newest is None or newest.state not in ("failed", "interrupted", "cancelled"):
        return "There is nothing to try again: the last turn was finished."
    name, now = new_id("t"), services.clock.now()

    def work(connection: Connection) -> None:
        commits.begin_again(connection, lease, turn=name, row=order.row.id, now=now)

    await services.store.write(work)
    await conversation.run_begun(lease, name)
    return None


_UNKNOWN = Command(name="", summary="", run=_unknown)
COMMANDS = {
    command.name: command
    for command in (
        Command(name="help", summary="what you can say here", run=_help),
        Command(name="status", summary="model, session and what it has used", run=_status),
        Command(name="new", summary="begin a new conversation; the old one is kept", run=_new, needs_lease=True),
        Command(name="stop", summary="stop what I am doing now", run=_stop),
        Command(name="context", summary="what the next request holds, in tokens", run=_context),
        Command(
            name="model", summary="show or change the model", usage="[provider/model]", run=_model, needs_lease=True
        ),
        Command(name="usage", summary="what was used in the last day and here", run=_usage),
        Command(name="think", summary="how much to think", usage="[off|low|medium|high]", run=_think, needs_lease=True),
        Command(name="retry", summary="try the last message again after a failure", run=_retry, needs_lease=True),
    )
}
