"""What is new in an answer: without the mail it answers and the signature."""

from __future__ import annotations

import re

_RULE = re.compile(r"\s*(?:_{10,}|-{3,}[^-\n]{3,60}-{3,}|-{10,})\s*")
_FIELD = re.compile(r"\s*\**(?:From|Sent|Von|Gesendet|De|Envoyé|Da|Van|发件人|差出人)\s*[:\uff1a]", re.IGNORECASE)
_INTRODUCED = re.compile(r"(?s).*(?:\d|@).*[:\uff1a]\s*")
_SIGNATURE = 12
"""Lines of a signature."""
_INTRODUCTION = 3
"""Lines of what introduces a quote ("On … wrote:")."""


def cut(text: str) -> tuple[str, str]:
    """What was said, and what it stands above. Quotes with words below them stay: they are answered one by one."""
    lines = text.split("\n")
    end = _outlook(lines)
    end = _quote(lines, end)
    end = _signature(lines, end)
    end = _quote(lines, end)
    return "\n".join(lines[:end]).strip(), "\n".join(lines[end:]).strip()


def _outlook(lines: list[str]) -> int:
    """Where a copied header begins, after a rule; the end, when there is none."""
    for at, line in enumerate(lines):
        if _RULE.fullmatch(line) and any(_FIELD.match(one) for one in lines[at + 1 : at + 4]):
            return at
    return len(lines)


def _quote(lines: list[str], end: int) -> int:
    start = end
    while start and (not lines[start - 1].strip() or lines[start - 1].startswith(">")):
        start -= 1
    if not any(line.startswith(">") for line in lines[start:end]):
        return end
    for size in range(1, _INTRODUCTION + 1):
        before = "\n".join(lines[max(0, start - size) : start])
        if _INTRODUCED.fullmatch(before) and "\n\n" not in before:
            return max(0, start - size)
    return start


def _signature(lines: list[str], end: int) -> int:
    for at in range(end - 1, max(-1, end - _SIGNATURE - 2), -1):
        if lines[at].rstrip("\r") in ("-- ", "--"):
            return at
    return end
