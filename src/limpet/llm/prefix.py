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
_SEAL = 96 << 10  # below what malloc asks the system for anew each time
_encode = msgspec.json.Encoder().encode


class _Kept:
    """The groups of one session that cannot grow any more, encoded, with commas between: `sealed` and then `tail`.

    Group number n ends before message `ends[n]` and at byte `offsets[n]`. Sealed pieces are never copied again.
    """

    __slots__ = ("ends", "messages", "offsets", "sealed", "tail")

    def __init__(self) -> None:
        self.messages: tuple[Message, ...] = ()
        self.sealed: list[bytes] = []
        self.tail = bytearray()
        self.ends: list[int] = []
        self.offsets: list[int] = []

    @property
    def size(self) -> int:
        return self.offsets[-1] if self.offsets else 0

    def cut(self, count: int) -> int:
        """Drop what does not fit into the first `count` messages; the number of messages that are left."""
        start = self.size - len(self.tail)
        while self.ends and self.ends[-1] > count:
            self.ends.pop()
            self.offsets.pop()
        while start > self.size:
            last = self.sealed.pop()
            start -= len(last)
            self.tail[:] = last
        del self.tail[self.size - start :]
        return self.ends[-1] if self.ends else 0

    def add(self, piece: bytes, end: int, *, seal: int) -> None:
        before = self.size
        if piece:
            self.tail += b"," + piece if before else piece
        self.ends.append(end)
        self.offsets.append(before + (len(piece) + bool(before) if piece else 0))
        if len(self.tail) >= seal:
            self.sealed.append(bytes(self.tail))
            self.tail.clear()


class PrefixCache:
    """At most `cap` bytes of encoded messages, the least recently used session goes first.

    `seal` is the size in bytes of the pieces that a request consists of.
    """

    def __init__(self, *, cap: int = _CAP, seal: int = _SEAL) -> None:
        self._cap = cap
        self._seal = seal
        self._sessions: OrderedDict[str, _Kept] = OrderedDict()
        self._size = 0

    def encode(
        self,
        session: str,
        messages: tuple[Message, ...],
        *,
        group: Callable[[Message], str],
        encode: Callable[[Sequence[Message], bool], bytes],
    ) -> list[bytes]:
        """The encoded messages with commas between them, in a few pieces.

        `encode(messages, last)` gives one group's bytes, empty to leave it out.
        """
        kept = self._take(session)
        at = kept.cut(_common(kept.messages, messages))
        while at and (at == len(messages) or group(messages[at - 1]) == group(messages[at])):
            at = kept.cut(at - 1)  # after a step back a group is the last one again, or grows
        groups = [tuple(found) for _, found in groupby(messages[at:], group)]
        for found in groups[:-1]:
            at += len(found)
            kept.add(encode(found, False), at, seal=self._seal)
        kept.messages = messages
        last = encode(groups[-1], True) if groups else b""
        self._give_back(session, kept)
        comma = b"," if last and kept.size else b""
        return [*kept.sealed, b"".join((kept.tail, comma, last))]

    def _take(self, session: str) -> _Kept:
        kept = self._sessions.pop(session, None) or _Kept()
        self._size -= kept.size
        return kept

    def _give_back(self, session: str, kept: _Kept) -> None:
        if not session:
            return
        self._sessions[session] = kept
        self._size += kept.size
        while self._size > self._cap and self._sessions:
            _, oldest = self._sessions.popitem(last=False)
            self._size -= oldest.size


def _common(old: tuple[Message, ...], new: tuple[Message, ...]) -> int:
    """How many messages at the start are the same; equal ones count, so a rebuilt projection still hits."""
    count = min(len(old), len(new))
    if old[:count] == new[:count]:
        return count
    return next(at for at in range(count) if old[at] is not new[at] and old[at] != new[at])


def body_of(head: Mapping[str, object], messages: Sequence[bytes], tail: Mapping[str, object]) -> list[bytes]:
    """A request in pieces: the fields of `head`, the encoded `messages`, the fields of `tail`, none of them empty.

    The pieces are not joined: with a long history that alone would copy a megabyte for each request.
    """
    return [to_json(head)[:-1] + b',"messages":[', *messages, b"]," + to_json(tail)[1:]]


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
