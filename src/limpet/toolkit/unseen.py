"""Characters that nobody sees: they hide words in a text, or make it look like another one."""

from __future__ import annotations

_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Printable by their class, and drawn as nothing."""
_SELECTORS = ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
"""Variation selectors: any number of them may follow a character, so they can carry a whole text."""
_TAGS = (0xE0000, 0xE007F)
_ZERO_WIDTH = frozenset("\u00ad\u180e\u200b\u2060\u2061\u2062\u2063\u2064\ufeff")
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def is_unseen(character: str) -> bool:
    """Whether `character` is shown as nothing, or steers how others are shown."""
    code = ord(character)
    selects = code > 0x2FF and any(first <= code <= last for first, last in _SELECTORS)
    return selects or character in _BLANK or not character.isprintable()


def hidden_in(text: str) -> dict[str, int]:
    """Characters of `text` that ordinary prose has no use for and that can hide instructions: code to how often.

    Joiners and single variation selectors, which emoji and some scripts need, do not count.
    """
    found: dict[str, int] = {}
    if text.isascii():
        return found
    for before, character in zip(f" {text}", text, strict=False):
        code = ord(character)
        tag = _TAGS[0] <= code <= _TAGS[1]
        row = any(first <= code <= last and first <= ord(before) <= last for first, last in _SELECTORS)
        if tag or row or character in _ZERO_WIDTH or character in _TURNING or character in _BLANK:
            name = f"U+{code:04X}"
            found[name] = found.get(name, 0) + 1
    return found
