"""Cuts a row of blocks into messages that fit: between blocks, else after a line, a sentence, a word, a character."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from msgspec.structs import replace

from limpet.channels.text.document import Block

Cost = tuple[int, ...]
"""What a message takes of each limit."""
"""The first `SIZES` are sizes of it as sent, as many others its lines."""
SIZES = 2
Message = tuple[Block, ...]

FULL = 0.97
"""A part filled so far is not tried to be filled better."""
_SENTENCE = re.compile(r"[.!?…][\"')\]]*\s+|[\u3002\uff01\uff1f]")
_JOINERS = "\u200d\ufe0e\ufe0f\u20e3"
_FLAGS = range(0x1F1E6, 0x1F200)
_TONES = range(0x1F3FB, 0x1F400)
_TAGS = range(0xE0020, 0xE0080)
_LONGEST = 32
"""Characters of one sign (an emoji of several) that are looked at to keep it whole."""


class Strip:
    """A block from which parts are taken by place in its text."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._ends = list(accumulate(len(span.text) for span in block.spans))
        self.text = "".join(span.text for span in block.spans)

    def part(self, start: int, end: int) -> Block:
        """The block with its text from `start` to `end`; what follows its beginning continues the item."""
        if start == 0 and end == len(self.text):
            return self._block
        first, last = bisect_right(self._ends, start), bisect_right(self._ends, end - 1)
        spans = list(self._block.spans[first : last + 1])
        if spans:
            tail = end - (self._ends[last] - len(spans[-1].text))
            spans[-1] = replace(spans[-1], text=spans[-1].text[:tail])
            skipped = start - (self._ends[first] - len(self._block.spans[first].text))
            spans[0] = replace(spans[0], text=spans[0].text[skipped:])
        opens = self._block.opens if start == 0 else 0
        return replace(self._block, spans=tuple(spans), opens=opens, tight=self._block.tight and start == 0)


@dataclass(slots=True)
class Packer:
    """Packs blocks into messages. `cost` is what one block takes as a message of its own, `gap` what joining it adds.

    `bare` is a block without what makes it larger than its text, for a limit in which nothing else fits.
    """

    limits: Cost
    cost: Callable[[Block], Cost]
    gap: Callable[[Block], Cost]
    bare: Callable[[Block], Block]

    def pack(self, blocks: Sequence[Block]) -> list[Message]:
        """Messages in order; the text of their blocks joined is that of `blocks`."""
        messages: list[list[Block]] = [[]]
        used = self._zero()
        for block in blocks:
            cost = self.cost(block)
            together = self._add(used, cost, self.gap(block) if messages[-1] else self._zero())
            if self._fits(together):
                messages[-1].append(block)
                used = together
            elif self._fits(cost):
                carried = self._carried(messages)
                messages.append([*carried, block])
                used = self._add(cost, *(self.cost(one) for one in carried), *(self.gap(block) for _ in carried))
                if not self._fits(used):
                    messages[-2] += carried
                    messages[-1], used = [block], cost
            else:
                used = self._cut(messages, used, block)
        return [tuple(message) for message in messages if message]

    def _carried(self, messages: list[list[Block]]) -> list[Block]:
        """A heading at the end of a message goes along with what it stands above."""
        last = messages[-1]
        return [last.pop()] if len(last) > 1 and last[-1].kind == "heading" else []

    def _cut(self, messages: list[list[Block]], used: Cost, block: Block) -> Cost:
        """Puts a block that fits in no message into several; gives what the last one has used."""
        strip = Strip(block)
        start, end = 0, len(strip.text)
        if messages[-1] and any(2 * one > limit for one, limit in zip(used, self.limits, strict=True)):
            messages.append([])
        while start < end:
            taken = self._add(used, self.gap(block)) if messages[-1] else self._zero()
            stop = self.stop(strip, start, _less(self.limits, taken))
            if stop == start and messages[-1]:
                messages.append([])
                continue
            if stop == start:
                strip = Strip(self.bare(block))
                stop = self.stop(strip, start, self.limits) or min(end, whole(strip.text, start + 1, start))
                stop = max(stop, start + 1)
            part = strip.part(start, stop)
            messages[-1].append(part)
            used = self._add(taken, self.cost(part))
            start = stop
            if start < end:
                messages.append([])
        return used

    def stop(self, strip: Strip, start: int, room: Cost) -> int:
        """Where a part that begins at `start` and fits into `room` had best end; `start` when nothing fits."""
        text = strip.text
        low, high = start, _reach(text, start, room) + 1
        guess = high - 1
        while low + 1 < high:
            cost = self.cost(strip.part(start, guess))
            if _within(cost, room):
                low = guess
                if any(one > FULL * limit for one, limit in zip(cost[:SIZES], room, strict=False)):
                    break
                guess = (low + high + 1) // 2
            else:
                high = guess
                scale = min(limit / one for one, limit in zip(cost[:SIZES], room, strict=False) if one)
                guess = min(high - 1, max(low + 1, start + int((guess - start) * min(scale, FULL))))
        if low in (start, len(text)):
            return low
        code = strip.part(start, low).kind in ("code", "verbatim")
        for place in (_line_end(text, start, low),) if code else _ends(text, start, low):
            if start < place and _within(self.cost(strip.part(start, place)), room):
                return place
        return whole(text, low, start)

    def _fits(self, cost: Cost) -> bool:
        return _within(cost, self.limits)

    def _zero(self) -> Cost:
        return (0,) * len(self.limits)

    def _add(self, *costs: Cost) -> Cost:
        return tuple(sum(column) for column in zip(*costs, strict=True))


def _within(cost: Cost, room: Cost) -> bool:
    return all(one <= limit for one, limit in zip(cost, room, strict=True))


def _less(limits: Cost, taken: Cost) -> Cost:
    return tuple(limit - one for limit, one in zip(limits, taken, strict=True))


def _reach(text: str, start: int, room: Cost) -> int:
    """How far a part can go at most: a character takes one at least, and so does a line."""
    end = min(len(text), start + max(0, min(room[:SIZES])))
    place = start
    for _ in range(min(room[SIZES:])):
        place = text.find("\n", place, end) + 1
        if not place:
            return end
    return place


def _ends(text: str, start: int, end: int) -> Iterator[int]:
    """Good places to cut in the second half of `start` to `end`, best first."""
    middle = (start + end) // 2
    yield max(_line_end(text, middle, end), 0)
    yield max((found.end() for found in _SENTENCE.finditer(text, middle, end)), default=0)
    if text[end].isspace():
        yield end
    yield next((place for place in range(end, middle, -1) if text[place - 1].isspace()), 0)


def _line_end(text: str, start: int, end: int) -> int:
    return text.rfind("\n", start, end) + 1


def whole(text: str, place: int, start: int) -> int:
    """The last place up to `place` that is within no sign of several characters; `place` when there is none."""
    for back in range(place, max(start, place - _LONGEST), -1):
        if not _inside(text, back):
            return back
    return place


def _inside(text: str, place: int) -> bool:
    """Whether the characters before and after `place` are one sign."""
    if place >= len(text):
        return False
    after = text[place]
    if after in _JOINERS or text[place - 1] == "\u200d" or ord(after) in _TONES or ord(after) in _TAGS:
        return True
    if ord(after) in _FLAGS:
        before = place
        while before and place - before <= _LONGEST and ord(text[before - 1]) in _FLAGS:
            before -= 1
        return (place - before) % 2 == 1
    return unicodedata.category(after) in ("Mn", "Mc", "Me")
