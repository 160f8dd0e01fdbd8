"""Requests as the caches see them: blocks of real bodies, in our layout and in those of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from bench.cache_rules import Block, Priced
from limpet.llm.tokens import estimate
from limpet.prompt.runtime import OPEN

_RUNTIME = f'{{"type":"text","text":"{OPEN}'.encode()
_MARK = b',"cache_control":'


class Piece(NamedTuple):
    """One block of a body without its mark: bytes, kind, the message it is in (-1: none), seconds it is kept for."""

    data: bytes
    kind: str
    message: int
    kept: int = 0


class _Message(Struct):
    role: str
    content: Raw = Raw(b"null")


class _Body(Struct):
    tools: list[Raw] = []
    system: list[Raw] = []
    messages: list[Raw] = []


class _Kind(Struct):
    type: str = ""


def of_anthropic(body: bytes) -> list[Piece]:
    """The blocks of a body of the Messages API."""
    parsed = msgspec.json.decode(body, type=_Body)
    pieces = [_piece(raw, "tool", -1) for raw in parsed.tools]
    pieces += [_piece(raw, "system", -1) for raw in parsed.system]
    for number, raw in enumerate(parsed.messages):
        content = msgspec.json.decode(msgspec.json.decode(raw, type=_Message).content, type=list[Raw])
        pieces += [_piece(block, "", number) for block in content]
    return pieces


def of_chat(body: bytes) -> list[Piece]:
    """The messages of a body of Chat Completions, after its tools."""
    parsed = msgspec.json.decode(body, type=_Body)
    tools = [Piece(bytes(raw), "tool", -1) for raw in parsed.tools]
    return tools + [Piece(bytes(raw), "message", number) for number, raw in enumerate(parsed.messages)]


def _piece(raw: Raw, kind: str, message: int) -> Piece:
    data, mark, setting = bytes(raw).rpartition(_MARK)
    kept = (3_600 if b'"1h"' in setting else 300) if mark else 0
    data = data + b"}" if mark else setting
    if not kind:
        kind = "runtime" if data.startswith(_RUNTIME) else msgspec.json.decode(data, type=_Kind).type
    return Piece(data, kind, message, kept)


class Counter:
    """Gives each distinct block and each distinct prefix a number, and counts its tokens once."""

    def __init__(self) -> None:
        self._blocks: dict[bytes, tuple[int, int]] = {}
        self._ends: dict[tuple[int, int], int] = {}

    def priced(self, at: float, pieces: Sequence[Piece]) -> Priced:
        blocks: list[Block] = []
        end = tokens = 0
        for piece in pieces:
            known = self._blocks.get(piece.data)
            if known is None:
                known = (len(self._blocks) + 1, estimate(piece.data.decode()))
                self._blocks[piece.data] = known
            end = self._ends.setdefault((end, known[0]), len(self._ends) + 1)
            tokens += known[1]
            blocks.append(Block(known[0], end, tokens, piece.kind, piece.message))
        return Priced(at, blocks, [(place, piece.kept) for place, piece in enumerate(pieces) if piece.kept])


# --- layouts: blocks of ours to those of somebody else ------------------------------------------------------------

Layout = Callable[[Sequence[Piece]], list[Piece]]


def ours(pieces: Sequence[Piece]) -> list[Piece]:
    return list(pieces)


def short(pieces: Sequence[Piece]) -> list[Piece]:
    """Ours, kept for five minutes."""
    return [piece._replace(kept=min(piece.kept, 300)) for piece in pieces]


def unmarked(pieces: Sequence[Piece]) -> list[Piece]:
    return [piece._replace(kept=0) for piece in pieces]


def pi(pieces: Sequence[Piece]) -> list[Piece]:
    """The end of tools, system and newest message, for five minutes."""
    return _marked(pieces, [_last(pieces, "tool"), _last(pieces, "system"), len(pieces) - 1])


def nanobot(pieces: Sequence[Piece]) -> list[Piece]:
    """The end of tools, system and the message before the newest, for five minutes."""
    newest = pieces[-1].message
    before = max((place for place, piece in enumerate(pieces) if 0 <= piece.message < newest), default=-1)
    return _marked(pieces, [_last(pieces, "tool"), _last(pieces, "system"), before])


def one_block(pieces: Sequence[Piece]) -> list[Piece]:
    """Time and recalled memories at the end of the one system block, not kept in the history."""
    newest, rest = _parted(pieces)
    at = _last(rest, "system")
    rest[at] = rest[at]._replace(data=rest[at].data + newest)
    return pi(rest)


def clock(pieces: Sequence[Piece]) -> list[Piece]:
    """The time in the system block, to the minute; recalled memories where ours are."""
    newest, _ = _parted(pieces)
    time = next((line for line in newest.split(b"\\n") if line.startswith(b"Time:")), b"")
    at = _last(pieces, "system")
    return pi([piece._replace(data=piece.data + time) if at == place else piece for place, piece in enumerate(pieces)])


def memory_first(pieces: Sequence[Piece]) -> list[Piece]:
    """Time and recalled memories between system and history, not kept in the history."""
    newest, rest = _parted(pieces)
    at = _last(rest, "system") + 1
    return pi([*rest[:at], Piece(newest, "text", -1), *rest[at:]])


def _parted(pieces: Sequence[Piece]) -> tuple[bytes, list[Piece]]:
    """The newest runtime block, and everything but runtime blocks."""
    newest = next((piece.data for piece in reversed(pieces) if piece.kind == "runtime"), b"{}")
    return newest, [piece for piece in pieces if piece.kind != "runtime"]


def _marked(pieces: Sequence[Piece], places: Sequence[int]) -> list[Piece]:
    return [piece._replace(kept=300 if place in places else 0) for place, piece in enumerate(pieces)]


def _last(pieces: Sequence[Piece], kind: str) -> int:
    return max((place for place, piece in enumerate(pieces) if piece.kind == kind), default=-1)


LAYOUTS: dict[str, Layout] = {
    "Limpet": ours,
    "Limpet, 5 minutes": short,
    "Pi: append-only, 5 minutes": pi,
    "nanobot: marks before the newest message": nanobot,
    "clock in the system prompt": clock,
    "everything in one system block": one_block,
    "memory before the history": memory_first,
    "no marks": unmarked,
}
