"""Encoded messages of running conversations, so that a long history costs a join of bytes and not an encoding.

A wire names groups of neighbouring messages (those that become one wire message, or must stay together) and encodes
a group. All groups but the last are kept per session; the last may still grow.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import groupby

import msgspec

from limpet.llm.unicode import clean
from limpet.types.message import Message

_CAP = 48 << 20
_encode = msgspec.json.Encoder().encode


class _Kept:
    __slots__ = ("ends", "messages", "pieces", "size")

    def __init__(self) -> None:
        self.messages: tuple[Message, ...] = ()
        self.pieces: list[bytes] = []
        self.ends: list[int] = []
        self.size = 0


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
    ) -> list[bytes]:
        """The encoded groups in order. `encode(messages, last)` gives one group's bytes, empty to leave it out."""
        kept = self._take(session)
        count = _common(kept.messages, messages)
        at = _cut(kept, count)
        while at and (at == len(messages) or group(messages[at - 1]) == group(messages[at])):
            at = _cut(kept, at - 1)  # a group that now goes on, or is the last
        groups = [tuple(found) for _, found in groupby(messages[at:], group)]
        for found in groups[:-1]:
            piece = encode(found, False)
            at += len(found)
            kept.pieces.append(piece)
            kept.ends.append(at)
            kept.size += len(piece)
        kept.messages = messages[:at]
        pieces = [piece for piece in kept.pieces if piece]
        if groups and (last := encode(groups[-1], True)):
            pieces.append(last)
        self._give_back(session, kept)
        return pieces

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


def _cut(kept: _Kept, count: int) -> int:
    """Drop what does not fit into the first `count` messages; where the kept part then ends."""
    while kept.ends and kept.ends[-1] > count:
        kept.ends.pop()
        kept.size -= len(kept.pieces.pop())
    return kept.ends[-1] if kept.ends else 0


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
