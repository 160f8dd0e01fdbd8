"""`/rollback`: what a turn changed in the workspace is shown first and taken back on a second word."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence

import apsw
from msgspec import Struct

from limpet.assistant.orders import Order
from limpet.assistant.subagents import is_helper
from limpet.errors import UserError
from limpet.store import entries
from limpet.store.sql import Connection
from limpet.types.entry import AssistantEntry, Entry, Flush, Note, Rollback, ToolStarted
from limpet.undo import rollback
from limpet.undo.copies import Point
from limpet.undo.keeper import Keeper, TurnName, named, show
from limpet.undo.rollback import Proposal
from limpet.undo.tree import TooManyError

LISTED = 10
CALLS, CALL_LENGTH = 12, 160
NOTED = 30
"""Files that the note to the model names."""
OFF = "Undo is switched off here (`undo.days` is 0)."
NOTHING = "There is nothing that could be taken back: no turn of this conversation or its helpers has changed a file."
USAGE = (
    "/rollback shows the newest turn, /rollback 2 or its name another one, /rollback list all, /rollback yes does it."
)


class _Case(Struct, frozen=True):
    """What a rollback is about: the point and the log of its turn."""

    keeper: Keeper
    point: Point
    entries: tuple[Entry, ...]


async def undo(order: Order) -> str:
    """Show what taking back a turn would do; `yes` does what was shown last."""
    keeper = order.conversation.services.undo
    if keeper is None or keeper.off:
        return OFF
    word = order.arguments.strip()
    try:
        if not keeper.copies.exist:
            return NOTHING
        if word == "list":
            return await asyncio.to_thread(_list, keeper, order.conversation.key)
        if word == "yes":
            return await _do(order, keeper)
        return await _show(order, keeper, await asyncio.to_thread(_choose, keeper, order.conversation.key, word))
    except TooManyError as error:
        return f"That turn cannot be taken back: {error}."
    except (apsw.Error, OSError) as error:
        raise UserError(f"The copies or the workspace cannot be read: {error}. Nothing was changed.") from error


def _choose(keeper: Keeper, key: str, word: str) -> Point:
    """The point that `word` means: nothing for the newest, a number from it on, a turn's name, `redo`."""
    points = keeper.copies.points(key, limit=1_000)
    if word == "redo":
        found = [point for point in points if point.undoes and not point.undone]
        if not found:
            raise UserError("There is no rollback that could be taken back.")
        return found[0]
    if word and not word.isdecimal():
        named = [point for point in points if point.turn == word]
        if not named:
            raise UserError(f"Nothing is kept of a turn {word}.", hint=USAGE)
        return named[0]
    turns = undoable(points)
    number = int(word[:6] or 1)
    if not turns:
        raise UserError(NOTHING)
    if not 1 <= number <= len(turns):
        raise UserError(f"There are {len(turns)} turns that could be taken back.", hint=USAGE)
    return turns[number - 1]


def undoable(points: Sequence[Point]) -> list[Point]:
    """Turns that changed something and were not taken back, newest first."""
    return [point for point in points if not point.undoes and not point.undone and _changed(point)]


def _changed(point: Point) -> bool:
    return bool(point.refused) or point.changes is None or bool(point.changes)


def _list(keeper: Keeper, key: str) -> str:
    turns = undoable(keeper.copies.points(key, limit=1_000))
    lines = [f"{number}. {_title(point)}: {_size(point)}" for number, point in enumerate(turns[:LISTED], start=1)]
    return "\n".join([*lines, USAGE]) if lines else NOTHING


def _size(point: Point) -> str:
    if point.refused:
        return f"cannot be taken back: {point.refused}"
    if point.changes is None:
        return "not finished"
    return "1 change" if len(point.changes) == 1 else f"{len(point.changes)} changes"


def _title(point: Point) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(point.at / 1000))
    if point.undoes:
        return f"the rollback of {when}"
    return f"the turn of {'a helper, ' if is_helper(point.key) else ''}{when} ({point.turn})"


async def _show(order: Order, keeper: Keeper, point: Point, *, first: str = "") -> str:
    """The plan, remembered so that `yes` can be held to it."""
    case = _case(order, keeper, point)
    if point.workspace != keeper.workspace:
        return f"{_title(point).capitalize()} was in another workspace, {point.workspace}."
    proposal = await asyncio.to_thread(_propose, case)
    key = order.conversation.key

    def remember() -> None:
        with keeper.copies.writing():
            keeper.copies.show(key, point.turn, proposal.fingerprint)

    await asyncio.to_thread(remember)
    text = _text(case, proposal)
    return order.conversation.services.redactor.redact(f"{first}\n{text}".strip())


def _case(order: Order, keeper: Keeper, point: Point) -> _Case:
    store = order.conversation.services.store
    found = store.read(lambda connection: entries.load(connection, point.session))
    return _Case(keeper, point, tuple(entry for entry in found if entry.turn == point.turn))


def _propose(case: _Case, *, begun: bool = False) -> Proposal:
    """The plan for a point. What Limpet itself wrote for the notes during that turn is not the turn's."""
    own = {os.fsencode(entry.payload.path) for entry in case.entries if isinstance(entry.payload, Flush)}
    return rollback.propose(case.keeper, case.point, others=own, begun=begun)


def _text(case: _Case, proposal: Proposal) -> str:
    point = case.point
    parts: list[str] = []
    if point.refused:
        parts.append(f"What its commands changed cannot be taken back: {point.refused}.")
    if proposal.actions:
        parts.append(f"Taking back {_title(point)} would:\n" + "\n".join(proposal.actions))
    else:
        parts.append(f"Of {_title(point)} there is nothing to take back any more.")
    if proposal.exceptions:
        parts.append("These stay as they are:\n" + "\n".join(proposal.exceptions))
    if gone := rollback.irreversible(proposal.steps, case.keeper):
        parts.append(f"Too large to be kept, so gone for good: {', '.join(named(gone))}.")
    if point.closed:
        parts.append(f"Not looked into: {', '.join(named(point.closed))}.")
    parts.append(_beyond(case.entries))
    if proposal.differences:
        parts.append(proposal.differences)
    if proposal.actions:
        parts.append("/rollback yes does exactly this.")
    return "\n\n".join(part for part in parts if part)


def _beyond(log: Sequence[Entry]) -> str:
    """What no rollback can take back: calls that may have acted outside the workspace, by the log of the turn."""
    answers = {entry.id: entry.payload.message.calls for entry in log if isinstance(entry.payload, AssistantEntry)}
    lines: list[str] = []
    for entry in log:
        payload = entry.payload
        if isinstance(payload, ToolStarted) and payload.effect in ("unsafe", "idempotent"):
            calls = answers.get(payload.assistant, ())
            arguments = calls[payload.index].arguments if payload.index < len(calls) else ""
            short = arguments if len(arguments) <= CALL_LENGTH else f"{arguments[:CALL_LENGTH]}…"
            lines.append(f"- {payload.name} {short}")
    if not lines:
        return ""
    more = [f"- … and {len(lines) - CALLS} more"] if len(lines) > CALLS else []
    return "What these calls did outside the workspace stays done:\n" + "\n".join([*lines[:CALLS], *more])


async def _do(order: Order, keeper: Keeper) -> str:
    """Do what was shown, unless it would be something else by now; then that is shown."""
    conversation, lease = order.conversation, order.lease
    assert lease is not None
    mark = TurnName(f"rollback-{order.row.id}", conversation.key, lease.session)
    begun = await asyncio.to_thread(keeper.copies.point, mark.turn)
    turn, fingerprint = await asyncio.to_thread(keeper.copies.shown, conversation.key)
    point = await asyncio.to_thread(keeper.copies.point, begun.undoes if begun else turn)
    if point is None:
        return f"Nothing was shown that could be done. {USAGE}"
    case = _case(order, keeper, point)
    proposal = await asyncio.to_thread(_propose, case, begun=begun is not None)
    if begun is None and proposal.fingerprint != fingerprint:
        return await _show(order, keeper, point, first="Something has changed since that was shown. Now it is this:")
    if begun is None and not proposal.restores:
        return "There is nothing to take back."
    return await _carry_out(order, case, proposal, mark=mark)


async def _carry_out(order: Order, case: _Case, proposal: Proposal, *, mark: TurnName) -> str:
    """Keep, record, restore, tell: each on the disk before the next. Run again after a crash it goes on."""
    services, keeper, point = order.conversation.services, case.keeper, case.point
    now = services.clock.now()
    async with services.locks.holding(rollback.paths(proposal.restores, keeper.workspace)):
        made = await asyncio.to_thread(rollback.begin, keeper, proposal.restores, mark, of=point, now=now)
        files = [change.path for change in made.changes or ()]
        recorded = Rollback(point.turn, mark.turn, order.row.id, files=named(files), count=len(files))
        await _append(order, recorded)
        failed = await asyncio.to_thread(rollback.carry_out, keeper, proposal.restores)
    restored = [path for path in files if path not in dict(failed)]
    await _append(order, Note(text=_told(restored, point), origin=mark.turn))
    await asyncio.to_thread(rollback.conclude, keeper, made, of=point)
    lines = [f"{len(restored)} of {len(files)} paths are again as they were before {_title(point)}."]
    lines += [f"- {show(path)}: {why}" for path, why in failed]
    lines += proposal.exceptions
    return "\n".join([*lines, "/rollback redo takes this back."])


async def _append(order: Order, payload: Rollback | Note) -> None:
    """Append an entry once, however often this order is carried out."""
    lease, services = order.lease, order.conversation.services
    assert lease is not None

    def known(entry: Entry) -> bool:
        kept = entry.payload
        if isinstance(payload, Note):
            return isinstance(kept, Note) and kept.origin == payload.origin
        return isinstance(kept, Rollback) and kept.mark == payload.mark

    def work(connection: Connection) -> None:
        if not any(map(known, entries.load(connection, lease.session))):
            entries.append(connection, lease, payload, turn="", now=services.clock.now())

    await services.store.write(work)


def _told(restored: Sequence[bytes], point: Point) -> str:
    """What the model is told with the next message."""
    files = "\n".join(f"- {show(path)}" for path in restored[:NOTED])
    more = f"\n- … and {len(restored) - NOTED} more" if len(restored) > NOTED else ""
    back = "has been done again" if point.undoes else "was taken back by the user"
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(point.at / 1000))
    return (
        f"What was changed in the workspace ({when}) {back}. These paths are again as they were before; read them anew "
        f"before you rely on them:\n{files}{more}"
    )
