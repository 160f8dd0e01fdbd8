"""What a person can tell the terminal itself: another conversation, a message to go back to, a command of their own.

These stand before the commands of all doors; what they do to a conversation they do through those.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct

from limpet.assistant.commands_undo import undoable
from limpet.assistant.orders import parse
from limpet.cli.chat_room import Room
from limpet.cli.chat_shell import run
from limpet.cli.talk import Talk
from limpet.cli.terminal import say
from limpet.errors import InputError
from limpet.session import branch, keys
from limpet.session.stand_in import plain_user
from limpet.store import entries, sessions
from limpet.store.sessions import SessionRow
from limpet.store.sql import Connection
from limpet.types.entry import Entry
from limpet.undo.copies import Point

KNOWN = 50
"""Conversations and messages that are offered."""
POINTS = 1_000


class Order(Struct, frozen=True):
    """`run` is given what stands behind the name; False: it is for the commands of all doors."""

    run: Callable[[Room, str], Awaitable[bool]]
    summary: str
    usage: str = ""


async def obey(room: Room, line: str) -> bool:
    """Do what `line` tells the terminal; False when it is to be said. What goes wrong is told."""
    stripped = line.strip()
    try:
        if stripped.startswith("!") and stripped.strip("!"):
            await _command(room, stripped)
            return True
        found = parse(stripped)
        order = ORDERS.get(found[0]) if found else None
        return order is not None and found is not None and await order.run(room, found[1])
    except InputError as error:
        say(error.present(), error=True)
        return True


async def _command(room: Room, typed: str) -> None:
    keep = typed.startswith("!!")
    with room.talk.elsewhere():
        ran = await run(typed.lstrip("!").strip(), keep=keep)
    if keep:
        room.kept.append(ran.attachment())


async def _help(room: Room, arguments: str) -> bool:
    if arguments:
        return False
    await room.say("/help")
    say("Only on this terminal:")
    for name, order in ORDERS.items():
        if name != "help":
            say(f"/{name}{' ' + order.usage if order.usage else ''} - {order.summary}")
    say("!command - run a command of yours here; !!command sends its output with your next message")
    return True


async def _verbose(room: Room, arguments: str) -> bool:
    if room.full is None:
        say("This terminal shows lines only; results of tools are in `limpet sessions show`.", error=True)
    else:
        room.full.view.unfold()
    return True


async def _sessions(room: Room, arguments: str) -> bool:
    """Change to the named conversation, or to one that is picked."""
    known = _known(room.talk)
    if arguments:
        keys.cli(room.talk.services.agent, arguments)
        room.goto = arguments
    elif room.full is None:
        say("\n".join(f"{name}  {about}" for name, about in map(_about, known)) or "There is none yet.")
        say("/sessions NAME changes to one of them, or to a new one.")
    else:
        from limpet.cli.chat_pick import pick  # only at full terminals

        rows = [_about(one) for one in known]
        width = max((len(name) for name, _ in rows), default=0)
        at = next((at for at, one in enumerate(known) if one.row.key == room.talk.conversation.key), 0)
        chosen = await _chosen(pick("Conversations", [f"{name:<{width}}  {about}" for name, about in rows], start=at))
        room.goto = rows[chosen][0] if chosen is not None else ""
    return True


async def _fork(room: Room, arguments: str) -> bool:
    """Copy the conversation, and ask where to go on."""
    if room.full is None:
        return False
    from limpet.cli.chat_pick import pick  # only at full terminals

    services, key = room.talk.services, room.talk.conversation.key
    origin = services.store.read(lambda connection: sessions.live(connection, key))
    before = {one.row.id for one in _known(room.talk)}
    await room.say(f"/fork {arguments}")
    made = [one.row for one in _known(room.talk) if one.row.id not in before and origin and one.row.parent == origin.id]
    if made and await _chosen(pick("Where to go on?", ["here", f"in the copy, {keys.name_of(made[0].key)}"])):
        room.goto = keys.name_of(made[0].key)
    return True


async def _rewind(room: Room, arguments: str) -> bool:
    """Pick a message to go back to before, and whether files go back as well; the message stands at the prompt."""
    places = branch.places(room.talk.conversation.log().entries)[:KNOWN]
    if arguments or room.full is None or not places:
        return False
    from limpet.cli.chat_pick import pick  # only at full terminals

    chosen = await _chosen(pick("Back to before which message?", [branch.first_words(place) for place in places]))
    if chosen is None:
        return True
    points = _points(room.talk, places[chosen])
    what = 0
    if points:
        turns = f"{len(points)} turn{'s' if len(points) > 1 else ''}"
        rows = ["the conversation only", f"the conversation and the files that {turns} changed since then"]
        picked = await _chosen(pick("What goes back?", rows))
        if picked is None:
            return True
        what = picked
    if what and not await _roll_back(room, points):
        say("The conversation stays where it is.", error=True)
        return True
    await room.say(f"/rewind {chosen + 1}")
    room.drafts.append(plain_user(places[chosen]))
    return True


def _points(talk: Talk, place: Entry) -> list[Point]:
    """Turns since `place` whose changes can be taken back, newest first."""
    keeper = talk.services.undo
    if keeper is None or keeper.off or not keeper.copies.exist:
        return []
    return [
        point for point in undoable(keeper.copies.points(talk.conversation.key, limit=POINTS)) if point.at >= place.at
    ]


async def _roll_back(room: Room, points: Sequence[Point]) -> bool:
    """Take back one turn after the other, each when it was shown; whether all of them were."""
    from limpet.cli.chat_pick import pick  # only at full terminals

    for point in points:
        await room.say(f"/rollback {point.turn}")
        if await _chosen(pick("Do exactly this?", ["y  yes", "n  no"], keys={"y": 0, "n": 1}, start=1)) != 0:
            return False
        await room.say("/rollback yes")
    return True


async def _chosen(picking: Awaitable[int | None]) -> int | None:
    """What was picked; Ctrl-C picks nothing."""
    try:
        return await picking
    except KeyboardInterrupt:
        return None


class _Known(Struct, frozen=True):
    """A conversation that a terminal can open, with what was said last."""

    row: SessionRow
    words: str


def names(talk: Talk) -> Sequence[tuple[str, str]]:
    """The names of conversations, with what was said last in each."""
    return [_about(one) for one in _known(talk)]


def _known(talk: Talk) -> list[_Known]:
    """Those of this agent on terminals, newest first."""

    def look(connection: Connection) -> list[_Known]:
        rows = sessions.recent(connection, limit=KNOWN, state="live", agent=talk.services.agent)
        return [_Known(row, _last(connection, row)) for row in rows if keys.kind_of(row.key) in ("main", "cli")]

    return talk.services.store.read(look)


def _last(connection: Connection, row: SessionRow) -> str:
    found = entries.load_some(connection, row.id, [entries.last_of_kind(connection, row.id, "user")])
    return branch.first_words(found[0]) if found else ""


def _about(one: _Known) -> tuple[str, str]:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.row.updated / 1000))
    return keys.name_of(one.row.key), f"{when}  {one.row.title or one.words}"


ORDERS: Mapping[str, Order] = {
    "help": Order(_help, "what you can say here"),
    "sessions": Order(_sessions, "change to another conversation, or begin one", "[name]"),
    "rewind": Order(_rewind, "pick a message to go back to before, with files or without (also: Esc Esc)", "[n|label]"),
    "fork": Order(_fork, "copy this conversation, and go on here or there", "[name]"),
    "verbose": Order(_verbose, "show results of tools and thoughts whole, or folded (also: ctrl-o)"),
}
