"""Erasure on the owner's word: the one exception to "nothing in a log is ever changed" (DESIGN 1).

What an entry said goes, in the log, in copies of it in forks, in the search index, in the inbox and outbox rows it came
and went by, and in what was made of it: summaries, notes in the log, snapshots of the prompt. Its place stays, as a
tombstone with the hash of what stood there, so that every log still projects to what providers accept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, structs

from limpet.errors import InputError
from limpet.session import search
from limpet.session.hollow import blobs_of, hollow
from limpet.store import entries, removal, sessions
from limpet.store.owner import Owner
from limpet.store.sessions import SessionRow
from limpet.store.sql import Connection
from limpet.types.content import Opaque
from limpet.types.entry import AssistantEntry, Compaction, Entry, Flush, Note, Payload, PromptEntry, UserEntry

SUMMARY = "(What was said before was erased by the owner.)"


class Removed(Struct, frozen=True):
    """What a removal took: how many entries, in which sessions (ids), which blobs have no use any more.

    `files` are the notes in the workspace that were made of them, and `turns` the turns they were of, whose copies of
    files are kept elsewhere: it did not touch those.
    """

    entries: int
    sessions: tuple[str, ...] = ()
    blobs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()


def erase(
    connection: Connection, session: str, entry: str = "", *, owner: Owner, now: int, why: str = "erased by the owner"
) -> Removed:
    """Erase the content of a session, or of its entry `entry` (id), with all copies. Raises `InputError`."""
    row = removal.check_idle(connection, session, owner=owner)
    found = _with_copies(connection, session, entry)
    if entry and not found:
        raise InputError(f"There is no entry {entry} in {session}.")
    touched = {one.session: removal.check_idle(connection, one.session, owner=owner) for one in found}
    derived = _made_of(connection, found)
    derived += _snapshots(connection, row, told=_told(row, (*found, *derived)))
    blobs = {blob for one in found for blob in blobs_of(one.payload)}
    files = dict.fromkeys(
        one.payload.path for one in (*found, *derived) if isinstance(one.payload, Flush) and one.payload.path
    )
    count = sum(_bury(connection, one, now=now, why=why) for one in found)
    for one in derived:
        _bury(connection, one, now=now, why=f"made of what was {why}")
    _forget_traffic(connection, found)
    if not entry:
        _forget_session(connection, row)
    for name in {one.session for one in (*found, *derived)}:
        whole = not entry and name == session
        removal.forget_words(connection, name, summary=SUMMARY if whole else "")
    search.compact(connection)
    for name, one in touched.items():
        amount = sum(entry.session == name for entry in found)
        removal.forget_approvals(connection, name)
        removal.record(connection, one, entries=amount, why=why, now=now)
    gone = removal.drop_blobs(connection, blobs)
    turns = dict.fromkeys(one.turn for one in found if one.turn)
    return Removed(count, tuple(touched), blobs=tuple(gone), files=tuple(files), turns=tuple(turns))


def unquote(connection: Connection, texts: Sequence[str], *, now: int) -> int:
    """Take lines that the owner wants forgotten out of prompts, notes on files, flushes and what was recalled beside
    messages; in how many they stood.

    A prompt that quoted one is made anew with the next message.
    """
    touched: set[str] = set()
    count = 0
    for kind in ("prompt", "note", "flush", "user"):
        for one in entries.of_kind(connection, kind):
            rest = _unquoted(one.payload, texts)
            if rest is not None and not one.erased:
                removal.bury(connection, one, rest, now=now, why="forgotten by the owner")
                if kind != "user":
                    search.drop(connection, one.session, seq=one.seq)
                touched.add(one.session)
                count += 1
    for name in touched:
        sessions.read_anew(connection, name)
    return count


def _unquoted(payload: Payload | Opaque, texts: Sequence[str]) -> Payload | Opaque | None:
    """What is left of a payload that quotes one of `texts`; None when it does not."""
    flat = [" ".join(text.split()) for text in texts]

    def quotes(said: str) -> bool:
        return any(text in " ".join(said.split()) for text in flat)

    match payload:
        case PromptEntry() if quotes(payload.system):
            return hollow(payload)
        case Note(text=said) if quotes(said):
            return hollow(payload)
        case Flush(lines=lines):
            left = tuple(line for line in lines if not quotes(line))
            return structs.replace(payload, lines=left) if left != lines else None
        case UserEntry(message=message) if quotes(message.runtime):
            kept = "\n".join(line for line in message.runtime.split("\n") if not quotes(line))
            return structs.replace(payload, message=structs.replace(message, runtime="" if quotes(kept) else kept))
        case _:
            return None


def delete(connection: Connection, session: str, *, owner: Owner, now: int, why: str) -> Removed:
    """Delete a session with its entries. Copies in forks stay: they are other conversations. Raises `InputError`.

    Its words are out of reach at once, and off the disk when the index is written anew (`search.compact`).
    """
    row = removal.check_idle(connection, session, owner=owner)
    log = entries.load(connection, session)
    blobs = {blob for one in log for blob in blobs_of(one.payload)}
    files = dict.fromkeys(one.payload.path for one in log if isinstance(one.payload, Flush) and one.payload.path)
    _forget_session(connection, row)
    search.drop(connection, session)
    removal.delete(connection, session)
    removal.record(connection, row, entries=len(log), why=why, now=now)
    gone = removal.drop_blobs(connection, blobs)
    return Removed(len(log), (session,), blobs=tuple(gone), files=tuple(files))


def _with_copies(connection: Connection, session: str, entry: str) -> list[Entry]:
    """The entries of a session, or one of them, and their copies in other sessions."""
    by_session: dict[str, list[int]] = {}
    for name, seq in removal.places_of(connection, session, entry):
        by_session.setdefault(name, []).append(seq)
    return [one for name, seqs in by_session.items() for one in entries.load_some(connection, name, seqs)]


def _made_of(connection: Connection, found: Sequence[Entry]) -> list[Entry]:
    """The summaries and notes that later entries of the same sessions hold."""
    first: dict[str, int] = {}
    for one in found:
        first[one.session] = min(one.seq, first.get(one.session, one.seq))
    known = {(one.session, one.seq) for one in found}
    return [
        one
        for session, seq in first.items()
        for one in entries.load(connection, session, after=seq)
        if isinstance(one.payload, Compaction | Flush) and (session, one.seq) not in known
    ]


def _told(row: SessionRow, found: Sequence[Entry]) -> list[str]:
    """What other conversations may have been told of the erased ones: their summary and notes."""
    lines = [line for one in found if isinstance(one.payload, Flush) for line in one.payload.lines]
    return [text for text in (row.summary, *lines) if text]


def _snapshots(connection: Connection, row: SessionRow, *, told: Sequence[str]) -> list[Entry]:
    """The prompts that may tell of a session: those of later ones under its key, and all that quote what was `told`."""
    later = {one.id for one in sessions.under(connection, row.key) if one.created >= row.created and one.id != row.id}
    return [
        one
        for one in entries.of_kind(connection, "prompt")
        if isinstance(one.payload, PromptEntry)
        and one.session != row.id
        and (one.session in later or any(text in one.payload.system for text in told))
    ]


def _bury(connection: Connection, entry: Entry, *, now: int, why: str) -> bool:
    """Whether there was something to erase in an entry."""
    rest = hollow(entry.payload)
    if rest is None or entry.erased:
        return False
    removal.bury(connection, entry, rest, now=now, why=why)
    search.drop(connection, entry.session, seq=entry.seq)
    return True


def _forget_traffic(connection: Connection, found: Iterable[Entry]) -> None:
    """The rows by which the erased entries came and went, and the failed requests that may have held them."""
    for one in found:
        removal.forget_traces(connection, one.session)
        removal.forget_commands(connection, one.session)
        removal.forget_helpers(connection, one.session)
        match one.payload:
            case UserEntry(inbox=inbox) if inbox:
                removal.blank_event(connection, inbox)
            case AssistantEntry() if one.turn:
                removal.blank_parts(connection, turn=one.turn)
            case _:
                pass


def _forget_session(connection: Connection, row: SessionRow) -> None:
    """The rows of a whole session: its events, what was sent, why turns failed, the notes it still owes."""
    for event in removal.events_of(connection, row):
        removal.blank_event(connection, event)
    removal.blank_parts(connection, session=row.id)
    removal.forget_errors(connection, row.id)
    removal.forget_traces(connection, row.id)
    removal.forget_commands(connection, row.id)
    removal.forget_helpers(connection, row.id)
    sessions.owe_nothing(connection, row.id)
