"""Lines of IRC: RFC 1459 with the tags of IRCv3 (https://ircv3.net/specs/extensions/message-tags)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

LONGEST = 512
"""Bytes of a line with its end, as others get it: with the prefix that the server puts before it (RFC 1459, 2.3)."""
_ESCAPED = re.compile(r"\\(.?)")
_MEANS = {":": ";", "s": " ", "r": "\r", "n": "\n"}
_BREAKS = str.maketrans("\r\n\0", "   ")
_STYLES = re.compile(
    r"\x03(?:\d{1,2}(?:,\d{1,2})?)?|\x04(?:[0-9a-fA-F]{6}(?:,[0-9a-fA-F]{6})?)?|[\x02\x0f\x11\x16\x1d-\x1f]"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line; `source` is a server or `nick!user@host`."""

    command: str
    params: tuple[str, ...] = ()
    source: str = ""
    tags: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def nick(self) -> str:
        return self.source.partition("!")[0]

    def param(self, at: int) -> str:
        """The parameter at `at`, empty when there is none."""
        return self.params[at] if -len(self.params) <= at < len(self.params) else ""


def parse(raw: bytes) -> Line:
    """A line as a server sent it; text that is not UTF-8 is read as Latin-1, as old clients write it."""
    try:
        rest = raw.decode()
    except UnicodeDecodeError:
        rest = raw.decode("latin-1")
    rest = rest.rstrip("\r\n")
    tags: dict[str, str] = {}
    source = ""
    if rest.startswith("@"):
        listed, _, rest = rest[1:].partition(" ")
        for one in listed.split(";"):
            key, _, value = one.partition("=")
            tags[key] = _ESCAPED.sub(lambda found: _MEANS.get(found[1], found[1]), value)
    rest = rest.lstrip(" ")
    if rest.startswith(":"):
        source, _, rest = rest[1:].partition(" ")
    middle, colon, last = rest.lstrip(" ").partition(" :")
    words = middle.split()
    params = (*words[1:], last) if colon else tuple(words[1:])
    return Line(words[0].upper() if words else "", params, source, tags)


def written(command: str, *params: str) -> bytes:
    """A line to be sent; nothing in `params` can end it or begin another one."""
    clean = [param.translate(_BREAKS) for param in params]
    if clean:
        clean[-1] = f":{clean[-1]}"
    return " ".join((command, *clean)).encode() + b"\r\n"


def folded(name: str) -> str:
    """A name to compare by. Only ASCII is folded: servers that hold `[` and `{` for one letter know one person as two
    then, but no server two as one."""
    return "".join(one.lower() if one.isascii() else one for one in name)


def unstyled(text: str) -> str:
    """A text without colours and styles."""
    return _STYLES.sub("", text)
