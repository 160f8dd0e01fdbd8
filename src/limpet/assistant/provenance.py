"""Where the arguments of a call came from: the owner's own words, or what strangers wrote (DESIGN 9).

A hijacked model does what a text told it to. Three things give that away, and none of them needs to understand the
text: the owner has asked for no such act; an address in the call is one that the owner never named; a short argument,
or a whole phrase, stands in strangers' prose. What a service lists in fields of its own (ids, names) is not prose; an
address in such a record is good when the owner named the record. `python -m bench agentdojo` measures both sides.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from limpet.assistant.acts import act_of, asked_for

Json: TypeAlias = "Mapping[str, Json] | list[Json] | str | float | None"

_ADDRESS = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # mail
    r"|https?://[^\s\"'<>)\]]+"  # web
    r"|(?<![\w.@-])(?:[\w-]+\.)+(?:com|org|net|io|dev|app|co|me|info|biz|xyz|ru|cn|de|ch|fr|uk|eu|us|example|invalid)"
    r"(?![\w-])(?:/[^\s\"'<>)\]]*)?"
    r"|(?<!\w)[a-z]{2}\d{2}[\da-z ]{9,30}\d(?!\w)"  # bank account
    r"|(?<![\w.])\+\d[\d ()/-]{6,18}\d(?!\w)",  # telephone
    re.IGNORECASE,
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[t ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?z?)?|\d\d?:\d\d")
_URL = re.compile(r"[a-z][a-z0-9+.-]*:/\S*", re.IGNORECASE)
"""A value that is one address as a whole, whatever characters it has."""
_VALUE = re.compile(r"(?=\S*\d)\S{16,}|\S{40,}|\d[\d .-]{6,}\d")
_LONGEST_QUERY = 300
_LONGEST_PATH = 100
_PROSE = 6
"""Words from which a field holds prose, in which anything can be told, and from which an argument is a phrase."""
_NAMED = 4
"""Characters that a field needs for its standing in the owner's words to mean that record."""
_ENOUGH = 5
"""Words of the owner in which a request can be told; a shorter one ("yes, do that") goes on with the one before."""


def fold(text: str) -> str:
    """`text` for comparison: one case, one form of each character, single blanks."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


class Found:
    """What one result from outside holds: `fields` of its own making, and `records`, the fields that belong together.

    A result that is no JSON is one field.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def records(self) -> tuple[tuple[str, ...], ...]:
        parsed = _parsed(_unwrapped(self._text))
        return tuple(tuple(map(fold, record)) for record in _records(parsed))

    @cached_property
    def prose(self) -> tuple[str, ...]:
        """The fields that hold prose."""
        return tuple(field for record in self.records for field in record if len(field.split()) >= _PROSE)


class Heard:
    """What a conversation holds for the judgement of a call.

    `owner` is all that the owner said, oldest first; `found` what came from outside; `links` the addresses that a
    search found, or that are links of a page which the owner named.
    """

    def __init__(self, owner: Sequence[str], found: Sequence[Found], *, links: frozenset[str] = frozenset()) -> None:
        self._all = fold("\n".join(owner))
        self._lately = _ADDRESS.sub(" ", fold("\n".join(_lately(owner))))
        self._found = found
        self.links = links

    def asks_for(self, tool: str) -> bool:
        """Whether the owner's newest request has a word for what the tool does."""
        return asked_for(act_of(tool), self._lately)

    def owner_named(self, value: str) -> bool:
        return _stands_in(value, self._all)

    def in_prose(self, value: str) -> bool:
        """Whether `value` stands inside something longer that strangers wrote."""
        return any(_stands_in(value, field) for found in self._found for field in found.prose if field != value)

    def in_named_record(self, value: str) -> bool:
        """Whether `value` is a field of a record that has another field which the owner has named."""
        return any(
            value in record and any(self._means(field) for field in record if field != value)
            for found in self._found
            for record in found.records
        )

    def _means(self, field: str) -> bool:
        return len(field) >= _NAMED and not field.isdigit() and _stands_in(field, self._all)


def unnamed(url: str, heard: Heard) -> str:
    """That the owner's words do not account for an address that is about to be fetched, however it is spelt."""
    plain = "".join(one for one in url if one.isprintable() and not one.isspace())
    known = url.strip() in heard.links or heard.owner_named(fold(plain)) or _good(plain, heard)
    return "" if known or not plain else f"you have not named {plain[:200]}"


def carried(query: str, heard: Heard) -> str:
    """What in a question to a search service is no word but a value, and not the owner's; empty when nothing is.

    The service is the owner's choice, so it may hear words. Keys, numbers and long texts are what somebody would steal.
    """
    if len(query) > _LONGEST_QUERY and not heard.owner_named(fold(query)):
        return f"the question has {len(query):,} characters, and is not yours"
    values = (found[0] for found in _VALUE.finditer(query) if not heard.owner_named(fold(found[0])))
    return next((f"you have not named {value[:200]}" for value in values), "")


def objection(tool: str, values: Mapping[str, object], heard: Heard, *, changes: bool) -> str:
    """Why the owner is asked about a call after strangers' words; empty when nothing speaks against it.

    `tool` is the name without the server's. `changes`: it does more than read; a reading call only takes addresses.
    """
    return (changes and unasked(tool, heard)) or foreign(values, heard, changes=changes)


def unasked(tool: str, heard: Heard) -> str:
    """That the owner has asked for no such act."""
    return "" if heard.asks_for(tool) else f"you have not asked for anything like {tool}"


def foreign(values: Mapping[str, object], heard: Heard, *, changes: bool) -> str:
    """Which argument the owner's words do not account for."""
    return next(filter(None, (_judged(value, heard, changes=changes) for value in _texts(values.values()))), "")


def _judged(value: str, heard: Heard, *, changes: bool) -> str:
    folded = fold(value)
    if not folded or _DATE.fullmatch(folded) or heard.owner_named(folded) or value.strip() in heard.links:
        return ""
    for address in [value.strip()] if _URL.fullmatch(value.strip()) else addresses(value):
        if not _good(address, heard):
            return f"you have not named {address[:200]}"
    if not changes:
        return ""
    if len(folded.split()) < _PROSE and "\n" not in value.strip():
        if heard.in_prose(folded) and not heard.in_named_record(folded):
            return f"{value[:200]!r} stands in what strangers wrote"
    elif "\n" not in value.strip() and heard.in_prose(folded):
        return f"{value[:200]!r} was written by strangers"
    return ""


def _good(address: str, heard: Heard) -> bool:
    """Whether the owner named the address, the record that it is a field of, or its host.

    Then what follows the host has to be the owner's words too: anything can be told in a path or a query.
    """
    folded = fold(address)
    if heard.owner_named(folded) or heard.in_named_record(folded):
        return True
    host, _, more = _parts(folded)
    if "." not in host or not heard.owner_named(host):
        return False
    return len(more) <= _LONGEST_PATH and all(map(heard.owner_named, re.findall(r"[^\W_]+", more)))


def host_of(url: str) -> str:
    """The host of a plain address, folded; empty for one with a user, or with what programs read in different ways."""
    return _parts(fold(url))[0]


def _parts(folded: str) -> tuple[str, str, str]:
    if "@" in folded or "\\" in folded:
        return "", "", ""
    found = re.fullmatch(r"(?:[a-z][a-z0-9+.-]*:/*)?([^/?#]*)([/?#]?)(.*)", folded, re.DOTALL)
    return (found[1], found[2], found[3]) if found else ("", "", "")


def addresses(text: str) -> Iterator[str]:
    """Mail and web addresses, bank accounts and telephone numbers in `text`."""
    for match in _ADDRESS.finditer(text):
        yield match[0].rstrip(".,;:!?")


def _texts(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        match value:
            case bool() | None:
                pass
            case str() | int() | float():
                yield str(value)
            case Mapping():
                yield from _texts(value.values())  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
            case Iterable():
                yield from _texts(value)  # pyright: ignore[reportUnknownArgumentType]
            case _:
                yield str(value)


def _lately(owner: Sequence[str]) -> Sequence[str]:
    """The newest messages in which a request can be told."""
    words = 0
    for place in range(len(owner) - 1, -1, -1):
        words += len(owner[place].split()) if owner[place].isascii() else len(owner[place])
        if words >= _ENOUGH:
            return owner[place:]
    return owner


def _stands_in(value: str, text: str) -> bool:
    """Whether `value` stands in `text`, not as a part of a longer word or number."""
    start = text.find(value)
    while start >= 0:
        end = start + len(value)
        before, after = text[start - 1 : start], text[end : end + 1]
        if not (_joins(before, value[0]) or _joins(after, value[-1])):
            return True
        start = text.find(value, start + 1)
    return False


def _joins(outside: str, inside: str) -> bool:
    return outside.isascii() and inside.isascii() and outside.isalnum() and inside.isalnum()


def _unwrapped(text: str) -> str:
    """What a server answered, without the marks around it."""
    found = re.search(r"<mcp-result>\n(.*)\n</mcp-result>", text, re.DOTALL)
    return found[1] if found else text


def _parsed(text: str) -> Json:
    """One JSON value, or several one after the other; else the text itself."""
    decoder, place = json.JSONDecoder(), 0
    values: list[Json] = []
    stripped = text.strip()
    try:
        while place < len(stripped):
            value, place = decoder.raw_decode(stripped, place)
            values.append(value)
            while stripped[place : place + 1].isspace():
                place += 1
    except (ValueError, RecursionError):
        return stripped
    return values


def _records(value: Json) -> Iterator[tuple[str, ...]]:
    """Each mapping's own fields, those of plain lists in it included; of anything else, each value alone."""
    if isinstance(value, Mapping):
        own: list[str] = []
        for part in value.values():
            for one in part if isinstance(part, list) else [part]:
                if isinstance(one, Mapping | list):
                    yield from _records(one)
                else:
                    own += _plain(one)
        yield tuple(own)
    elif isinstance(value, list):
        for part in value:
            yield from _records(part)
    else:
        yield tuple(_plain(value))


def _plain(value: str | float | None) -> list[str]:
    return [] if value is None or isinstance(value, bool) else [str(value)]
