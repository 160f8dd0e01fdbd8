"""The forms in which a known value may appear: whole encodings, and escapes in any mixture."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from functools import cache
from urllib.parse import quote, quote_plus

LAYERS = 2
"""How often escapes may be escaped again, as in JSON inside JSON."""

_NAMED = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'"}
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


def forms(value: str) -> Iterable[str]:
    """The value plain, as JSON and Python write it, URL-encoded, base64 and hexadecimal, each once."""
    clean = value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    found = [value, json.dumps(clean)[1:-1], json.dumps(clean, ensure_ascii=False)[1:-1], repr(clean)[1:-1]]
    for quoted in (quote(clean, safe=""), quote(clean), quote_plus(clean)):
        found += [quoted, _lower_escapes(quoted)]
    found += base64_forms(clean.encode())
    found += [clean.encode().hex(), clean.encode().hex().upper()]
    return dict.fromkeys(found)


def needles(value: str) -> Iterable[str]:
    """What to look for in an unescaped text: the value, and what becomes of one that looks escaped itself."""
    once = unescaped(value)
    return dict.fromkeys((value, value.replace(" ", "+"), once, unescaped(once)))


def base64_forms(data: bytes) -> list[str]:
    """What base64 makes of `data` wherever it stands in something longer, such as `user:data`.

    Three alignments are possible; the characters at either end that depend on the neighbours are left off.
    """
    found: list[str] = []
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + data).decode()
        stable = encoded[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6]
        found += [stable, stable.replace("+", "-").replace("/", "_")]
    return found


def escapes(text: str) -> bool:
    """Whether `text` may hold escapes at all."""
    return "%" in text or "\\" in text or "&" in text


def unescaped(text: str) -> str:
    """`text` with one layer of URL, JSON, Python and HTML escapes undone, whichever stand where."""
    return _escape().sub(_meaning, text)


def origins(text: str) -> tuple[str, list[int]]:
    """`unescaped(text)`, and for each of its characters (and its end) where in `text` it comes from."""
    pieces: list[str] = []
    places: list[int] = []
    done = 0
    for match in _escape().finditer(text):
        meaning = _meaning(match)
        pieces += [text[done : match.start()], meaning]
        places += range(done, match.start())
        places += [match.start()] * len(meaning)
        done = match.end()
    pieces.append(text[done:])
    places += range(done, len(text) + 1)
    return "".join(pieces), places


def origins_below(text: str, depth: int) -> list[int]:
    """For each character (and the end) of what `depth` layers of escapes leave of `text`: where it comes from."""
    shown, places = text, list(range(len(text) + 1))
    for _ in range(depth):
        shown, inner = origins(shown)
        places = [places[place] for place in inner]
    return places


def unwrapped(text: str) -> tuple[str, list[int]]:
    """`text` without line breaks, and for each character (and the end) where in `text` it comes from."""
    places = [place for place, character in enumerate(text) if character not in "\r\n"]
    return without_breaks(text), [*places, len(text)]


def without_breaks(text: str) -> str:
    return text.replace("\r", "").replace("\n", "")


def unfinished(text: str) -> int:
    """Where an escape begins that the end of `text` cuts; its length where none does."""
    found = _beginning().search(text)
    return found.start() if found else len(text)


@cache
def _escape() -> re.Pattern[str]:
    return re.compile(
        r"%[0-7][0-9a-fA-F]|(?:%[89a-fA-F][0-9a-fA-F])+"
        r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|\\."
        r"|&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});",
        re.DOTALL,
    )


@cache
def _beginning() -> re.Pattern[str]:
    return re.compile(
        r"(?:(?:%[89a-fA-F][0-9a-fA-F])*%[0-9a-fA-F]?|(?:%[89a-fA-F][0-9a-fA-F])+"
        r"|\\(?:u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?)?|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?"
        r"|&(?:[a-z]{0,4}|#[xX]?[0-9a-fA-F]{0,7}))\Z"
    )


def _meaning(match: re.Match[str]) -> str:
    text = match[0]
    if text[0] == "%":
        return bytes.fromhex(text.replace("%", "")).decode("utf-8", "replace")
    if text[0] == "&":
        if text in _NAMED:
            return _NAMED[text]
        code = int(text[3:-1], 16) if text[2] in "xX" else int(text[2:-1])
        return chr(code) if code <= 0x10FFFF else text
    if len(text) == 2:
        return _LETTERS.get(text[1], text[1])
    if len(text) == 12:
        pair = bytes.fromhex(text[2:6] + text[8:])
        return pair.decode("utf-16-be")
    return chr(int(text[2:], 16))


def _lower_escapes(quoted: str) -> str:
    """%2F as %2f, which some programs write."""
    head, *rest = quoted.split("%")
    return head + "".join(f"%{part[:2].lower()}{part[2:]}" for part in rest)
