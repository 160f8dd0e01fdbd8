"""A recorded turn: the requests it made, byte for byte, and what happened in it, as lines that can be compared.

A recording is a part of a log and nothing else, so every turn ever taken can be replayed. Saved to a file it stands
alone: entries as the database has them, and the pictures they show.
"""

from __future__ import annotations

import base64
import binascii
import difflib
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Raw, Struct, structs

from limpet.errors import InputError
from limpet.session.export import plain
from limpet.session.log import Log
from limpet.types.codec import decode_payload, encode_payload
from limpet.types.content import Image
from limpet.types.entry import AssistantEntry, Entry, Note, ToolResultEntry, ToolStarted, UserEntry
from limpet.types.envelope import Trust
from limpet.types.message import AssistantMessage, Request

VERSION = 1
LOOP_NOTES = ("guard", "empty answer", "limit")
"""Origins of notes that the loop writes itself, and writes again in a replay."""


class Recording(Struct, frozen=True):
    """The log of a session up to the end of `turn`. `blobs` are pictures by their SHA-256, where they are known.

    `cache_key` is that of its requests where it is not the session itself (a fork).
    """

    turn: str
    entries: tuple[Entry, ...]
    blobs: dict[str, bytes] = {}
    cache_key: str = ""

    @property
    def before(self) -> list[Entry]:
        """What was there when the turn began."""
        first = next(place for place, entry in enumerate(self.entries) if entry.turn == self.turn)
        return list(self.entries[:first])

    @property
    def during(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.turn == self.turn]

    @property
    def answers(self) -> list[AssistantMessage]:
        return [entry.payload.message for entry in self.during if isinstance(entry.payload, AssistantEntry)]


def recording_of(entries: Sequence[Entry], turn: str, *, cache_key: str = "") -> Recording:
    """The recording of a turn in its session's log. Raises `InputError` when it is not there."""
    last = max((entry.seq for entry in entries if entry.turn == turn), default=0)
    if not last:
        raise InputError(f"There is no turn {turn} in this conversation.")
    return Recording(turn, tuple(entry for entry in entries if entry.seq <= last), cache_key=cache_key)


def requests_of(recording: Recording) -> list[Request]:
    """The requests that gave the answers of the turn, in order, as they were made."""
    log, found = Log(), list[Request]()
    for entry in recording.entries:
        if entry.turn == recording.turn and isinstance(entry.payload, AssistantEntry) and log.prompt is not None:
            found.append(
                Request(
                    session=entry.session,
                    system=log.prompt.system,
                    tools=log.prompt.tools,
                    messages=log.messages(),
                    tool_choice=entry.payload.tool_choice,
                    sampling=entry.payload.sampling,
                    rhythm=entry.payload.rhythm,
                    cache_key=recording.cache_key,
                )
            )
        log.extend([entry])
    return found


def given(recording: Recording) -> list[list[Entry]]:
    """What came into the turn from outside, before each of its answers, and after the last one.

    Messages of people, notes and reductions; not what the loop itself does again in a replay.
    """
    groups: list[list[Entry]] = [[]]
    for entry in recording.during:
        match entry.payload:
            case AssistantEntry():
                groups.append([])
            case ToolStarted() | ToolResultEntry():
                pass
            case Note(origin=origin) if origin in LOOP_NOTES:
                pass
            case _:
                groups[-1].append(entry)
    return groups


def lines(entries: Iterable[Entry], *, texts: bool = True) -> list[str]:
    """What was said and done, a line for each thing; without `texts` only what people said and what was called.

    Results stand in the order of their calls, whichever came first.
    """
    found: list[str] = []
    results: dict[int, list[str]] = {}
    for entry in entries:
        if isinstance(entry.payload, UserEntry | AssistantEntry):
            found += [line for index in sorted(results) for line in results[index]]
            results = {}
        match entry.payload:
            case UserEntry(message=message):
                found += _lines("user", "".join(map(plain, message.content)))
            case AssistantEntry(message=message):
                found += _lines("agent", message.text) if texts else []
                found += [f"call   {call.name} {_canonical(call.arguments)}" for call in message.calls]
            case ToolResultEntry(index=index, name=name, result=result) if texts:
                results[index] = _lines(f"{name} {'failed' if result.is_error else 'gave'}", result.text)
            case _:
                pass
    return found + [line for index in sorted(results) for line in results[index]]


def difference(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """A unified diff of two such lists; empty when they are equal."""
    return list(difflib.unified_diff(before, after, "recorded", "replayed", lineterm="", n=2))


class _Stored(Struct, frozen=True):
    session: str
    seq: int
    id: str
    parent: str
    at: int
    turn: str
    trust: Trust
    payload: Raw


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    limpet_replay: int
    turn: str
    entries: tuple[_Stored, ...]
    blobs: dict[str, str] = {}
    cache_key: str = ""


def to_json(recording: Recording) -> bytes:
    """The file of a recording: one JSON object."""
    stored = tuple(
        _Stored(
            session=entry.session,
            seq=entry.seq,
            id=entry.id,
            parent=entry.parent,
            at=entry.at,
            turn=entry.turn,
            trust=entry.trust,
            payload=Raw(encode_payload(entry.payload)),
        )
        for entry in recording.entries
    )
    blobs = {name: base64.b64encode(data).decode() for name, data in recording.blobs.items()}
    file = _File(VERSION, recording.turn, stored, blobs, recording.cache_key)
    return msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"


def from_json(data: bytes, *, name: str) -> Recording:
    """The recording in a file called `name`. Raises `InputError`."""
    try:
        file = msgspec.json.decode(data, type=_File)
        entries = tuple(
            Entry(
                session=one.session,
                seq=one.seq,
                id=one.id,
                parent=one.parent,
                at=one.at,
                turn=one.turn,
                payload=decode_payload(msgspec.json.format(bytes(one.payload), indent=-1)),
                trust=one.trust,
            )
            for one in file.entries
        )
        blobs = {key: base64.b64decode(text, validate=True) for key, text in file.blobs.items()}
    except (msgspec.DecodeError, UnicodeDecodeError, binascii.Error) as error:
        raise InputError(
            f"{name} is no recorded turn: {error}.", hint="Make one: `limpet replay TURN --save FILE`."
        ) from None
    if file.limpet_replay > VERSION:
        raise InputError(f"{name} was written by a newer Limpet.")
    return structs.replace(recording_of(entries, file.turn, cache_key=file.cache_key), blobs=blobs)


def pictures(entries: Iterable[Entry]) -> list[str]:
    """The blobs of all pictures that the entries show."""
    found: dict[str, None] = {}
    for entry in entries:
        match entry.payload:
            case UserEntry(message=message):
                blocks = message.content
            case ToolResultEntry(result=result):
                blocks = result.content
            case _:
                continue
        found.update((block.blob, None) for block in blocks if isinstance(block, Image))
    return list(found)


def _lines(head: str, text: str) -> list[str]:
    return [f"{head:<6} {line}" for line in text.strip().splitlines()]


def _canonical(arguments: str) -> str:
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments), order="sorted").decode()
    except msgspec.DecodeError:
        return arguments
