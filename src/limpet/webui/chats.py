"""What the owner does in a conversation at the page. Each is what a slash command or `limpet sessions` does."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence

from limpet.assistant import approvals, asking, branching
from limpet.assistant.commands_subagents import stop_all
from limpet.errors import ChannelError, InputError
from limpet.session import branch, keys
from limpet.store import approvals as approval_rows
from limpet.store import entries, forks, sessions
from limpet.store.sessions import SessionRow
from limpet.types.approval import Approval, Reply
from limpet.types.channel import File
from limpet.types.entry import Label, Leaf
from limpet.types.ids import new_id
from limpet.webui.desk import AGENT, Desk

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def key_of(chat: str) -> str:
    """The session key of a chat of the page. Raises `InputError` for what is no name of one."""
    if not NAME.fullmatch(chat):
        raise InputError(f"{chat!r} is not a name for a chat.", hint="Use up to 64 letters, digits, _ and -.")
    return keys.web(AGENT, chat)


def chat_of(key: str) -> str:
    """The chat of the page that a session key is of; empty when it belongs elsewhere and can only be looked at."""
    if key == keys.main(AGENT):
        return "main"
    name = key.removeprefix(keys.web(AGENT, ""))
    return name if name != key and NAME.fullmatch(name) else ""


def new_chat() -> str:
    """A name that no chat has."""
    return f"chat-{secrets.token_hex(4)}"


async def say(desk: Desk, chat: str, text: str, *, files: Sequence[File] = ()) -> None:
    """Raises `StoreError`, `NotReadyError`."""
    await desk.voice.say(chat, text, new_id("w"), files=files)


def file_of(name: str, mime: str, data: bytes) -> File:
    """A file that was chosen in the browser."""

    async def fetch(limit: int) -> bytes:
        if len(data) > limit:
            raise ChannelError(f"it has {len(data):,} bytes; at most {limit:,} are taken")
        return data

    return File(name, mime, fetch, size=len(data))


async def stop(desk: Desk, key: str) -> bool:
    """Stop what runs under a key, its helpers too; whether there was something."""
    async with desk.agents.use(keys.agent_of(key)) as services:
        found = await asking.stop(services, key)
        helpers = await stop_all(services, key)
    desk.gateway.lanes.poke(key)
    return found or helpers > 0


def waiting(desk: Desk, key: str) -> list[Approval]:
    """What waits for the owner's word under a key, oldest first."""
    now = desk.clock.now()
    return desk.store.read(lambda connection: approval_rows.open_under(connection, key, now=now))


async def decide(desk: Desk, approval: Approval, reply: Reply) -> None:
    """Give the owner's word. Raises `InputError`."""
    async with desk.agents.use(approval.agent) as services:
        await approvals.decide(services, approval.id, reply, who=approvals.PAGE)
    desk.gateway.lanes.poke(approval.key)


def session_of(desk: Desk, name: str) -> SessionRow:
    """Raises `InputError`."""
    row = desk.store.read(lambda connection: sessions.find(connection, name))
    if row is None:
        raise InputError(f"There is no session {name}.")
    return row


async def fork(desk: Desk, session: str, entry: str, *, before: bool = False) -> str:
    """Copy a conversation up to an entry, or to what stands before it, into a new chat; gives its name.

    Raises `InputError`.
    """
    row = session_of(desk, session)
    log = desk.store.read(lambda connection: entries.load(connection, row.id))
    place = next((one.parent if before else one.id for one in log if one.id == entry), None)
    if place is None:
        raise InputError(f"There is no entry {entry}.")
    leaf = branch.target(log, place) if place else ""
    base = keys.web(AGENT, f"{chat_of(row.key) or 'fork'}-fork"[:50])
    key = desk.store.read(lambda connection: forks.free_key(connection, base))
    async with desk.agents.use(row.agent) as services:
        await branching.fork(services, row, leaf, key=key)
    return chat_of(key)


async def go_to(desk: Desk, session: str, entry: str) -> None:
    """Go on from an entry of the conversation's tree. Raises `InputError`."""
    row = session_of(desk, session)
    log = desk.store.read(lambda connection: entries.load(connection, row.id))
    async with desk.agents.use(row.agent) as services:
        await branching.append(services, row, Leaf(branch.target(log, entry)))


async def label(desk: Desk, session: str, entry: str, *, text: str) -> None:
    """Name a place. Raises `InputError`."""
    row, name = session_of(desk, session), branch.check_label(text)
    async with desk.agents.use(row.agent) as services:
        await branching.append(services, row, Label(target=entry, label=name))


def tips(desk: Desk, session: str) -> list[tuple[str, str, bool]]:
    """The branches of a conversation, newest first: the last entry of each, its first words, whether it is shown."""
    log = desk.store.read(lambda connection: entries.load(connection, session))
    leaf = desk.store.read(lambda connection: sessions.leaf(connection, session))
    return [(one.entry.id, one.words, one.entry.id == leaf) for one in branch.tips(log)]
