"""Encoded messages of running conversations, so that a long history costs a join of bytes and not an encoding.

A wire names groups of neighbouring messages (those that become one wire message, or must stay together) and encodes
a group. All groups but the last are kept per session; the last may still grow.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import groupby

import msgspec

from limpet.llm.learned import Fields, without
from limpet.llm.unicode import clean
from limpet.types.message import Message

_CAP = 48 << 20
_MOST = 64
"""Sessions: as many as a gateway keeps at hand. Each holds its messages too, which `_CAP` does not count."""
_BLOCK = 64 << 10
_encode = msgspec.json.Encoder().encode


class _Kept:
    """What was encoded of one session: `pieces` are groups, and once enough of them came together they are `blocks`.

    `ends` and `block_ends` say how many messages each reaches to.
    """

    __slots__ = ("_block", "block_ends", "blocks", "ends", "messages", "open", "pieces", "size")

    def __init__(self, block: int) -> None:
        self._block = block
        self.messages: tuple[Message, ...] = ()
        self.blocks: list[bytes] = []
        self.block_ends: list[int] = []
        self.pieces: list[bytes] = []
        self.ends: list[int] = []
        self.open = 0
        self.size = 0

    @property
    def end(self) -> int:
        """How many messages are kept."""
        return self.ends[-1] if self.ends else self.block_ends[-1] if self.block_ends else 0

    def add(self, piece: bytes, end: int) -> None:
        self.pieces.append(piece)
        self.ends.append(end)
        self.open += len(piece)
        self.size += len(piece)
        if self.open >= self._block:
            self.blocks.append(b",".join(filter(None, self.pieces)))
            self.size += len(self.blocks[-1]) - self.open
            self.block_ends.append(end)
            self.pieces, self.ends, self.open = [], [], 0

    def cut(self, count: int) -> None:
        """Drop what reaches beyond the first `count` messages, whole blocks where need be."""
        while self.ends and self.ends[-1] > count:
            self.ends.pop()
            size = len(self.pieces.pop())
            self.open -= size
            self.size -= size
        while not self.ends and self.block_ends and self.block_ends[-1] > count:
            self.block_ends.pop()
            self.size -= len(self.blocks.pop())


class PrefixCache:
    """At most `cap` bytes of encoded messages of `most` sessions, the least recently used session goes first."""

    def __init__(self, *, cap: int = _CAP, block: int = _BLOCK, most: int = _MOST) -> None:
        self._cap = cap
        self._most = most
        self._block = block
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
        """The encoded messages in order, in parts that a comma joins.

        `encode(messages, last)` gives one group's bytes, empty to leave it out.
        """
        kept = self._take(session)
        kept.cut(_common(kept.messages, messages))
        while (at := kept.end) and (at == len(messages) or group(messages[at - 1]) == group(messages[at])):
            kept.cut(at - 1)  # a group that now goes on, or is the last
        groups = [tuple(found) for _, found in groupby(messages[at:], group)]
        for found in groups[:-1]:
            at += len(found)
            kept.add(encode(found, False), at)
        kept.messages = messages[:at]
        parts = [part for part in (*kept.blocks, *kept.pieces) if part]
        if groups and (last := encode(groups[-1], True)):
            parts.append(last)
        self._give_back(session, kept)
        return parts

    def _take(self, session: str) -> _Kept:
        kept = self._sessions.pop(session, None) or _Kept(self._block)
        self._size -= kept.size
        return kept

    def _give_back(self, session: str, kept: _Kept) -> None:
        if not session:
            return
        self._sessions[session] = kept
        self._size += kept.size
        while self._sessions and (self._size > self._cap or len(self._sessions) > self._most):
            _, oldest = self._sessions.popitem(last=False)
            self._size -= oldest.size


def body_of(
    head: Fields, parts: Sequence[bytes], *, key: str, tail: Fields | None = None, refused: Sequence[str] = ()
) -> list[bytes]:
    """The JSON object of `head`, the list `key` of `parts`, and `tail`, without the fields that are `refused`.

    It comes in pieces: small neighbours in one, blocks as they are.
    """
    before, after = (to_json(without(fields, refused))[1:-1] for fields in (head, tail or {}))
    body: list[bytes] = []
    small = [b"{", before, b',"' if before else b'"', key.encode(), b'":[']
    for at, part in enumerate(parts):
        if at:
            small.append(b",")
        if len(part) < _BLOCK:
            small.append(part)
        else:
            body += [b"".join(small), part]
            small = []
    return [*body, b"".join([*small, b"]," if after else b"]", after, b"}"])]


def _common(old: tuple[Message, ...], new: tuple[Message, ...]) -> int:
    """How many messages at the start are the same; equal ones count, so a rebuilt projection still hits."""
    count = min(len(old), len(new))
    if old[:count] == new[:count]:
        return count
    return next(at for at in range(count) if old[at] is not new[at] and old[at] != new[at])


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
