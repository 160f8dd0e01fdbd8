"""Shortening long text by whole lines and characters. What is kept and what is omitted always add up to the whole."""

from __future__ import annotations

import unicodedata

from msgspec import Struct

_REACH = 32
"""Characters to go back, at most, to find a place where a text may be cut."""


class Cut(Struct, frozen=True):
    """A text in three parts that add up to it: kept `head`, omitted characters and lines, kept `tail`."""

    head: str
    tail: str
    omitted: int
    omitted_lines: int
    total: int
    total_lines: int

    @property
    def whole(self) -> bool:
        return self.omitted == 0


def count_lines(text: str) -> int:
    """Lines of `text`; a last line without newline counts."""
    return text.count("\n") + (not text.endswith("\n") if text else 0)


def head(text: str, *, lines: int, chars: int) -> Cut:
    """The first whole lines of `text` within both caps. Nothing is kept when the first line alone is too long."""
    end = _after_line(text, lines)
    if end > chars:
        end = text.rfind("\n", 0, chars) + 1
    return _cut(text, end, len(text))


def tail(text: str, *, lines: int, chars: int) -> Cut:
    """The last whole lines of `text` within both caps; of a last line that is too long, its end."""
    start = _before_line(text, lines)
    if len(text) - start > chars:
        least = len(text) - chars
        newline = text.find("\n", least - 1 if least else 0, len(text) - 1)
        start = newline + 1 if newline >= 0 else _forward(text, least)
    return _cut(text, 0, start)


def ends(text: str, *, chars: int, share: float = 0.4) -> Cut:
    """The beginning and the end of `text`, `chars` together, `share` of them for the beginning."""
    if len(text) <= chars:
        return _cut(text, len(text), len(text))
    first, last = int(chars * share), chars - int(chars * share)
    newline = text.rfind("\n", 0, first) + 1
    end = newline if newline >= first // 2 and newline else _back(text, first)
    least = len(text) - last
    newline = text.find("\n", max(least - 1, 0), len(text) - last // 2) if last else -1
    start = newline + 1 if newline >= 0 else _forward(text, least)
    return _cut(text, end, max(start, end))


def _cut(text: str, end: int, start: int) -> Cut:
    omitted = text[end:start]
    return Cut(
        head=text[:end],
        tail=text[start:],
        omitted=len(omitted),
        omitted_lines=count_lines(omitted),
        total=len(text),
        total_lines=count_lines(text),
    )


def _after_line(text: str, lines: int) -> int:
    place = 0
    for _ in range(lines):
        newline = text.find("\n", place)
        if newline < 0:
            return len(text)
        place = newline + 1
    return place


def _before_line(text: str, lines: int) -> int:
    place = len(text) - text.endswith("\n")
    for _ in range(lines):
        newline = text.rfind("\n", 0, place)
        if newline < 0:
            return 0
        place = newline
    return place + 1


def _joined(text: str, place: int) -> bool:
    """Whether the characters before and at `place` belong together on screen."""
    before, at = text[place - 1], text[place]
    if "\ud800" <= before <= "\udbff" and "\udc00" <= at <= "\udfff":
        return True
    if before == "\u200d" or at in "\u200d\ufe0e\ufe0f" or "\U0001f3fb" <= at <= "\U0001f3ff":
        return True
    if "\U0001f1e6" <= at <= "\U0001f1ff" and _flags_before(text, place) % 2:
        return True
    return (before == "\r" and at == "\n") or unicodedata.combining(at) != 0 or unicodedata.category(at) == "Mn"


def _flags_before(text: str, place: int) -> int:
    """Letters of flags in a row before `place`; two make a flag."""
    near = place
    while near > max(place - 4 * _REACH, 0) and "\U0001f1e6" <= text[near - 1] <= "\U0001f1ff":
        near -= 1
    return place - near


def _back(text: str, place: int) -> int:
    for near in range(place, max(place - _REACH, 0), -1):
        if near >= len(text) or not _joined(text, near):
            return near
    return max(place - _REACH, 0) and place


def _forward(text: str, place: int) -> int:
    for near in range(max(place, 1), min(place + _REACH, len(text))):
        if not _joined(text, near):
            return near
    return place
