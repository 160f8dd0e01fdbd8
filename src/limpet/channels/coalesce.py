"""What belongs together: messages that a platform made of one, and the pieces of an answer that grows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from msgspec import Struct

from limpet.types.channel import Arrival
from limpet.types.envelope import Address
from limpet.types.ports import Clock

WAIT = 0.8
"""Seconds between two messages of a person that may be parts of one."""
NEARLY = 0.95
"""A text that fills so much of the platform's limit was probably cut by it."""
LEAST = 200
"""Characters of a block of an answer: shorter paragraphs wait for the next one."""

Who = tuple[Address, str]


@dataclass(slots=True)
class _Open:
    """Parts so far, and until when another one may come (seconds of the clock)."""

    parts: list[Arrival]
    until: float


@dataclass(slots=True)
class Gathering:
    """Holds back messages that may be parts of one: those of an album, and pastes that the platform cut.

    `limit` is what the platform lets a person say at once (0: it cuts nothing), measured by `measure`. It decides and
    does not wait: whoever owns it calls `due` when `next_due` has come. Order of one person's messages is kept.
    """

    clock: Clock
    limit: int = 0
    measure: Callable[[str], int] = len
    _open: dict[Who, _Open] = field(default_factory=dict[Who, _Open])

    def put(self, arrival: Arrival) -> tuple[tuple[Arrival, ...], ...]:
        """Take a message; gives the messages, as their parts, that wait for nothing any more, in order."""
        who = (arrival.address, arrival.sender)
        waiting = self._open.pop(who, None)
        ready: list[tuple[Arrival, ...]] = []
        parts = [arrival]
        if waiting is not None and self._continues(waiting, arrival):
            parts = [*waiting.parts, arrival]
        elif waiting is not None:
            ready.append(tuple(waiting.parts))
        if self._may_go_on(arrival):
            self._open[who] = _Open(parts, self.clock.monotonic() + WAIT)
        else:
            ready.append(tuple(parts))
        return tuple(ready)

    def next_due(self) -> float | None:
        """When the first of those held back is to go on, in seconds of the monotonic clock; None: nothing waits."""
        return min((waiting.until for waiting in self._open.values()), default=None)

    def due(self) -> tuple[tuple[Arrival, ...], ...]:
        """The messages, as their parts, whose time is up."""
        now = self.clock.monotonic()
        return self._take([who for who, waiting in self._open.items() if waiting.until <= now])

    def rest(self) -> tuple[tuple[Arrival, ...], ...]:
        """All that is held back, when no more will come."""
        return self._take(list(self._open))

    def _take(self, whose: Sequence[Who]) -> tuple[tuple[Arrival, ...], ...]:
        return tuple(tuple(self._open.pop(who).parts) for who in whose)

    def _continues(self, waiting: _Open, arrival: Arrival) -> bool:
        last = waiting.parts[-1]
        if self.clock.monotonic() > waiting.until or arrival.replaces or arrival.pressed:
            return False
        if last.album or arrival.album:
            return last.album == arrival.album
        return not arrival.text.startswith("/")

    def _may_go_on(self, arrival: Arrival) -> bool:
        if arrival.replaces or arrival.pressed:
            return False
        return bool(arrival.album) or self._was_cut(arrival)

    def _was_cut(self, arrival: Arrival) -> bool:
        return self.limit > 0 and self.measure(arrival.text) >= NEARLY * self.limit

    def as_one(self, parts: Sequence[Arrival]) -> Arrival:
        """One message of its parts: named by the first, with the text and the files of all."""
        first = parts[0]
        if len(parts) == 1:
            return first
        text = first.text
        for before, part in pairwise(parts):
            cut_hard = not part.album and self.limit > 0 and self.measure(before.text) >= self.limit
            text += part.text if cut_hard or not text or not part.text else f"\n{part.text}"
        return replace(
            first,
            text=text,
            files=tuple(file for part in parts for file in part.files),
            mentioned=any(part.mentioned for part in parts),
            to_all=any(part.to_all for part in parts),
        )


_FENCE = re.compile(r"[ \t>*+\-\d.]*?(`{3,}|~{3,})(.*)$")
_CUTS = (re.compile(r"\n"), re.compile(r"[.!?\u2026]\s|[\u3002\uff01\uff1f]"), re.compile(r"\s"))


def blocks(text: str, done: bool, *, start: int = 0, limit: int = 4_000) -> tuple[str, ...]:
    """The next blocks of an answer that grows, from the character `start` on, whole when `done`.

    Joined, they are what `text` holds from `start` on as far as it can be sent already: continue behind it. A block
    ends with a paragraph and has at least `LEAST` characters; one of more than `limit` is cut at a line, a sentence
    or a word. Code between fences stays whole, however long: `render` cuts it, with fences of its own.
    """
    found: list[str] = []
    while (end := _end(text, start, limit, done=done)) > start:
        found.append(text[start:end])
        start = end
    return tuple(found)


def _end(text: str, start: int, limit: int, *, done: bool) -> int:
    """Where the block that begins at `start` ends; `start` when that is not known yet."""
    end = start
    for unit in _units(text, start):
        if end > start and unit.end - start > limit:
            return end
        if unit.end - start > limit and not unit.fenced:
            return _cut(text, start, start + limit)
        if not unit.whole:
            break
        end = unit.end
        if end - start >= LEAST:
            return end
    return len(text) if done else start


class _Unit(Struct, frozen=True):
    """A paragraph with the blank lines behind it, or fenced code. `whole`: its end has come."""

    end: int
    fenced: bool
    whole: bool


def _units(text: str, start: int) -> Iterator[_Unit]:
    fence = ""
    begin = place = start
    while place < len(text):
        stop = text.find("\n", place) + 1
        line = text[place : stop or len(text)].rstrip()
        before, fence = fence, _fence(fence, line)
        if fence and not before and place > begin:
            yield _Unit(place, False, True)
            begin = place
        place = stop or len(text)
        ended = stop > 0 and ((before and not fence) or not (fence or line))
        if ended:
            yield _Unit(place, bool(before), True)
            begin = place
    if begin < len(text):
        yield _Unit(len(text), bool(fence), False)


def _fence(fence: str, line: str) -> str:
    """The fence that is open after `line`, when `fence` was before it; empty outside of code."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    if not fence:
        return "" if found[1][0] == "`" and "`" in found[2] else found[1]
    return "" if found[1].startswith(fence) and not found[2].strip() else fence


def _cut(text: str, start: int, end: int) -> int:
    """A good place in the second half of `start` to `end`; `end` when there is none."""
    middle = (start + end) // 2
    for kind in _CUTS:
        places = [found.end() for found in kind.finditer(text, middle, end)]
        if places:
            return places[-1]
    return end
