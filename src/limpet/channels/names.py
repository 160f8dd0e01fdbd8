"""Whether a text names the bot, on platforms where a mention is only its name in the text."""

from __future__ import annotations

import re

_TO_ALL = re.compile(r"(?<![\w@])@(?:all|everyone|room)(?!\w)", re.IGNORECASE)
_PART_OF_A_NAME = r"\w\-\[\]\\`^{}|"


def means_all(text: str) -> bool:
    """Whether a text is for everybody in the room."""
    return bool(_TO_ALL.search(text))


def addressed(text: str, *names: str) -> tuple[str, bool]:
    """The text without a name of the bot at its beginning, and whether one stands anywhere in it as a word."""
    alternatives = "|".join(re.escape(name) for name in sorted(filter(None, names), key=len, reverse=True))
    if not alternatives:
        return text, False
    name = rf"(?<![{_PART_OF_A_NAME}@])@?(?:{alternatives})(?![{_PART_OF_A_NAME}])"
    found = re.match(rf"\s*{name}[\s,:;]*(?=\S)", text, re.IGNORECASE)
    if found is not None:
        return text[found.end() :], True
    return text, re.search(name, text, re.IGNORECASE) is not None
