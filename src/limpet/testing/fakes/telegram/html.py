"""Text with entities: reads `parse_mode=HTML` as strictly as the Bot API does, and finds mentions and commands."""

from __future__ import annotations

import re

from msgspec import Struct

from limpet.testing.fakes.shape import Refused

_TAGS = frozenset(
    "b strong i em u ins s strike del span tg-spoiler a code pre blockquote tg-emoji".split()  # noqa: SIM905
)
_TOKEN = re.compile(
    r"""<(?P<close>/?)(?P<tag>[a-zA-Z][\w-]*)(?P<rest>(?:\s+[\w-]+(?:\s*=\s*(?:"[^"]*"|'[^']*'))?)*)\s*>"""
    r"""|&(?P<name>\#x[0-9a-fA-F]+|\#[0-9]+|lt|gt|amp|quot);|(?P<open><)"""
)
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_FOUND = re.compile(r"(?<![\w/@])(?:(?P<mention>@\w{4,32})|(?P<bot_command>/\w{1,32}(?:@\w{4,32})?))(?![\w/@])")


class Span(Struct, frozen=True):
    """An entity; `offset` and `length` in UTF-16 units."""

    type: str
    offset: int
    length: int


def units(text: str) -> int:
    """How long Telegram finds a text. Raises `Refused` for half a character."""
    try:
        return len(text.encode("utf-16-le")) // 2
    except UnicodeEncodeError:
        raise Refused("Bad Request: strings must be encoded in UTF-8") from None


def parse(html: str) -> tuple[str, tuple[Span, ...]]:
    """The text and its entities. Raises `Refused` for what the Bot API does not take."""
    text, end = "", 0
    opened: list[tuple[str, int]] = []
    spans: list[Span] = []
    for token in _TOKEN.finditer(html):
        text += html[end : token.start()]
        end = token.end()
        where = f"at byte offset {len(html[: token.start()].encode())}"
        tag = (token["tag"] or "").lower()
        if token["open"] or (tag and tag not in _TAGS):
            raise _fault(f'Unsupported start tag "{tag}" {where}')
        if token["name"]:
            text += _character(token["name"])
        elif token["close"]:
            if not opened or opened[-1][0] != tag:
                raise _fault(
                    f'Unmatched end tag {where}, expected "</{opened[-1][0] if opened else ""}>", found "{tag}"'
                )
            start = opened.pop()[1]
            spans.append(Span(tag, start, units(text) - start))
        else:
            if tag == "span" and 'class="tg-spoiler"' not in token["rest"]:
                raise _fault(f'Tag "span" must have class "tg-spoiler" {where}')
            opened.append((tag, units(text)))
    if opened:
        raise _fault(f'Can\'t find end tag corresponding to start tag "{opened[-1][0]}"')
    return text + html[end:], tuple(spans)


def found(text: str) -> tuple[Span, ...]:
    """Mentions and commands in what somebody typed."""
    spans: list[Span] = []
    for one in _FOUND.finditer(text):
        spans.append(Span(one.lastgroup or "", units(text[: one.start()]), units(one[0])))
    return tuple(spans)


def _fault(about: str) -> Refused:
    return Refused(f"Bad Request: can't parse entities: {about}")


def _character(name: str) -> str:
    if name.startswith("#x"):
        return chr(int(name[2:], 16))
    return chr(int(name[1:])) if name.startswith("#") else _NAMED[name]
