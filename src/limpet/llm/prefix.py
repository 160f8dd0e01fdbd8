"""Encoded messages of running conversations, so that a long history costs a join of bytes and not an encoding.

A wire names groups of neighbouring messages (those that become one wire message, or must stay together) and encodes
a group. All groups but the last are kept per session; the last may still grow.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

import msgspec

from limpet.llm.unicode import clean
from limpet.types.message import Message

_CAP = 48 << 20
Buffer = bytes | bytearray
_encode = msgspec.json.Encoder().encode


class _Kept:
    """The groups of one session that cannot grow any more: `body` is all of them with commas between.

    Group number n ends before message `ends[n]` and at byte `offsets[n]`.
    """

    __slots__ = ("body", "ends", "messages", "offsets")

    def __init__(self) -> None:
        self.messages: tuple[Message, ...] = ()
        self.body = bytearray()
        self.ends: list[int] = []
        self.offsets: list[int] = []

    def cut(self, count: int) -> int:
        """Drop what does not fit into the first `count` messages; the number of messages that are left."""
        while self.ends and self.ends[-1] > count:
            self.ends.pop()
            self.offsets.pop()
        del self.body[self.offsets[-1] if self.offsets else 0 :]
        return self.ends[-1] if self.ends else 0

    def add(self, piece: bytes, end: int) -> None:
        if piece:
            self.body += b"," + piece if self.body else piece
        self.ends.append(end)
        self.offsets.append(len(self.body))


class PrefixCache:
    """At most `cap` bytes of encoded messages, the least recently used session goes first."""

    def __init__(self, *, cap: int = _CAP) -> None:
        self._cap = cap
        self._sessions: OrderedDict[str, _Kept] = OrderedDict()
        self._size = 0

    def encode(
        self,
        session: str,
        messages: tuple[Message, ...],
        *,
        group: Callable[[Message], str],
        encode: Callable[[Sequence[Message], bool], bytes],
    ) -> list[Buffer]:
        """The encoded messages in a few pieces, to be joined by commas at once: the first one grows later on.

        `encode(messages, last)` gives one group's bytes, empty to leave it out.
        """
        kept = self._take(session)
        at = kept.cut(_common(kept.messages, messages))
        groups = [tuple(found) for _, found in groupby(messages[at:], group)]
        for found in groups[:-1]:
            at += len(found)
            kept.add(encode(found, False), at)
        kept.messages = messages
        last = encode(groups[-1], True) if groups else b""
        self._give_back(session, kept)
        return [piece for piece in (kept.body, last) if piece]

    def _take(self, session: str) -> _Kept:
        kept = self._sessions.pop(session, None) or _Kept()
        self._size -= len(kept.body)
        return kept

    def _give_back(self, session: str, kept: _Kept) -> None:
        if not session:
            return
        self._sessions[session] = kept
        self._size += len(kept.body)
        while self._size > self._cap and self._sessions:
            _, oldest = self._sessions.popitem(last=False)
            self._size -= len(oldest.body)


def _common(old: tuple[Message, ...], new: tuple[Message, ...]) -> int:
    """How many messages at the start are the same; equal ones count, so a rebuilt projection still hits."""
    count = min(len(old), len(new))
    if old[:count] == new[:count]:
        return count
    return next(at for at in range(count) if old[at] is not new[at] and old[at] != new[at])


def joined(head: Mapping[str, object], messages: Sequence[Buffer], tail: Mapping[str, object]) -> bytes:
    """A request: the fields of `head`, the encoded `messages`, the fields of `tail`, none of them empty.

    One join, because a long history is a copy of a megabyte each time.
    """
    parts: list[Buffer] = [to_json(head)[:-1], b',"messages":[']
    for piece in messages:
        parts += [piece, b","]
    if messages:
        parts.pop()
    return b"".join([*parts, b"],", to_json(tail)[1:]])


def to_json(value: object) -> bytes:
    """`value` as JSON; lone surrogates become U+FFFD."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(_cleaned(value))


def _cleaned(value: object) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(key): _cleaned(item) for key, item in msgspec.convert(value, dict[str, object]).items()}
    if isinstance(value, list | tuple):
        return [_cleaned(item) for item in msgspec.convert(value, list[object])]
    return value
