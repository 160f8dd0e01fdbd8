"""A digest: what is worth remembering of a part of the log, and a summary that can stand for it.

One request gives both, so a flush costs nothing beside the compaction it precedes. When the model's cache is warm and
the request fits, the question is put at the end of the conversation itself, whose prefix the provider has already
read; else the part is written out and read in pieces, each of which brings the summary so far up to date.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct, structs

from limpet.assistant.inquiry import Inquiry
from limpet.errors import ContextOverflowError, LimpetError
from limpet.llm.tokens import estimate
from limpet.prompt.templates import template
from limpet.session.export import markdown
from limpet.session.room import Room
from limpet.toolkit.truncate import ends
from limpet.types.content import Text
from limpet.types.entry import Entry
from limpet.types.message import Message, Request, UserMessage

WORDS_PER_TOKEN = 0.7
"""English words of a token, for telling a model how long its summary may be."""
PIECES = 6
"""Most requests for one digest: of a longer part the middle is left out, and the digest says so."""
NOTES = 30
"""Most lines of notes that one digest gives."""
NOTE_LENGTH = 500
"""Characters of one line of notes."""
_NOTES = re.compile(r"<notes>(.*?)(?:</notes>|(?=<summary>)|\Z)", re.DOTALL)
_SUMMARY = re.compile(r"<summary>(.*?)(?:</summary>|\Z)", re.DOTALL)


class UselessDigestError(LimpetError):
    """The model gave nothing that could stand for the conversation."""


class Digest(Struct, frozen=True):
    """`notes` are lines without list marks; `whole`: they are of all that was said, not only of the part asked for."""

    notes: tuple[str, ...]
    summary: str
    whole: bool = False


class Material(Struct, frozen=True):
    """What a digest is made of: the part of the log, the summary before it, and what the owner wants kept (`focus`).

    `live` is the conversation's own next request when its prefix is warm in the provider's cache, else None.
    """

    entries: Sequence[Entry]
    previous: str = ""
    focus: str = ""
    live: Request | None = None


async def digest(inquiry: Inquiry, material: Material, room: Room) -> Digest:
    """The digest of `material`. Raises `UselessDigestError`, `ModelError`."""
    task = _task(room, material.focus)
    if material.live is not None:
        request = _asked_at_end(material.live, task, room)
        if inquiry.tokens(request) + room.summary <= room.window:
            try:
                return structs.replace(_checked(await inquiry.ask(request), room), whole=True)
            except (UselessDigestError, ContextOverflowError):
                pass  # read in pieces, by a request of its own
    return await _in_pieces(inquiry, material, room, task=task)


def _task(room: Room, focus: str) -> str:
    task = template("digest").replace("{words}", str(int(room.summary * WORDS_PER_TOKEN)))
    return f"{task}\n\nThe user asks you to keep above all: {focus}" if focus else task


def _asked_at_end(live: Request, task: str, room: Room) -> Request:
    """`live` with the task as its last words. Tools and their choice stay: changing them would cost the cache."""
    messages: tuple[Message, ...] = live.messages
    last = messages[-1] if messages else None
    if isinstance(last, UserMessage):
        content = (*last.content, *((Text(last.runtime),) if last.runtime else ()), Text(task))
        messages = (*messages[:-1], UserMessage(content))
    else:
        messages = (*messages, UserMessage((Text(task),)))
    sampling = structs.replace(live.sampling, max_tokens=max(room.reserve, 2 * room.summary))
    return structs.replace(live, messages=messages, sampling=sampling)


async def _in_pieces(inquiry: Inquiry, material: Material, room: Room, *, task: str) -> Digest:
    summary, notes = material.previous, list[str]()
    overhead = estimate(task) + 200
    factor = inquiry.factor * inquiry.model.profile.token_factor
    space = int((room.limit - room.summary) / factor) - overhead
    if space < 200:
        raise UselessDigestError("The window is too small for a summary.")
    pieces = _pieces(markdown(material.entries), space)
    for number, piece in enumerate(pieces, start=1):
        head = f"Summary so far:\n\n{summary}\n\n" if summary else ""
        which = f"Part {number} of {len(pieces)} of the conversation" if len(pieces) > 1 else "The conversation"
        text = f"{head}{which}, as a record:\n\n<record>\n{piece}\n</record>\n\n{task}"
        found = await _twice(inquiry, text, room)
        summary = found.summary
        notes += found.notes
    return Digest(tuple(dict.fromkeys(notes))[:NOTES], summary)


async def _twice(inquiry: Inquiry, text: str, room: Room) -> Digest:
    """Ask, and once more when the answer is of no use."""
    try:
        return _checked(await inquiry.ask(inquiry.plain(text, max_tokens=2 * room.summary)), room)
    except UselessDigestError as error:
        text += f"\n\nYour last try was of no use: {error} Write the two parts, briefly."
        return _checked(await inquiry.ask(inquiry.plain(text, max_tokens=2 * room.summary)), room)


def _checked(answer: str, room: Room) -> Digest:
    """The two parts of an answer; one without marks is all summary. Raises `UselessDigestError`."""
    notes, summary = _NOTES.search(answer), _SUMMARY.search(answer)
    said = (summary[1] if summary else "" if notes else answer).strip()
    if not said:
        raise UselessDigestError("There was no summary.")
    if estimate(said) > 2 * room.summary:
        raise UselessDigestError(f"The summary was too long ({estimate(said):,} tokens).")
    lines = [line.strip().lstrip("-*• ").strip() for line in notes[1].splitlines()] if notes else []
    return Digest(tuple(line[:NOTE_LENGTH] for line in lines if line)[:NOTES], said)


def _pieces(text: str, tokens: int) -> list[str]:
    """`text` in at most `PIECES` pieces of so many tokens each at the most, cut between its paragraphs."""
    total = estimate(text)
    if total <= tokens:
        return [text]
    size = max(1, len(text) * tokens // total)
    if len(text) > size * PIECES:
        cut = ends(text, chars=size * (PIECES - 1), share=1 / PIECES)
        text = f"{cut.head}\n\n[{cut.omitted:,} characters of the record are left out here]\n\n{cut.tail}"
    pieces: list[str] = []
    while text:
        end = min(size, len(text))
        while estimate(text[:end]) > tokens:
            end = end * 3 // 4
        if end < len(text):
            paragraph = text.rfind("\n\n", end // 2, end)
            end = paragraph if paragraph > 0 else end
        pieces.append(text[:end])
        text = text[end:].lstrip("\n")
    return pieces
