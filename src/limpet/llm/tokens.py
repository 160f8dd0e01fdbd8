"""How many tokens a text costs, estimated by classes of characters and rather too high than too low.

Weights follow a measurement of public texts against the tokenizers of GPT-4o/5, DeepSeek V4 and Claude
(reference figures in `docs/`): one set of weights, and one factor per provider (`Profile.token_factor`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from limpet.types.content import AssistantBlock, Image, Opaque, ResultBlock, Text, Thinking, ToolCall, UserBlock
from limpet.types.message import AssistantMessage, Message, Request, UserMessage
from limpet.types.tool import ToolSpec

# tokens per item
_WORD = 1.06
_EIGHT_LETTERS = 0.6  # more, for every whole eight letters of a word
_DIGIT = 0.75
_PUNCTUATION = 0.5
_BREAK = 0.4  # a line break, or two blanks of an indent
_TWO_BYTE = 0.5  # accented Latin, Greek, Cyrillic, Hebrew, Arabic
_THREE_BYTE = 0.9  # scripts of South Asia, signs
_CJK = 1.0
_FOUR_BYTE = 2.5  # emoji, rare characters
_BLOB = 0.75  # a character of base64 or a hash

_MESSAGE = 6
_TOOL = 12
_IMAGE = 1_600
_BLOB_RUN = 64

_OTHER, _LETTER, _DIGITS, _SPACE, _LINE, _PUNCT = b"x", b"a", b"0", b" ", b"n", b"."


def _class_of(byte: int) -> bytes:
    sign = chr(byte)
    if byte >= 0x80:
        kinds = ((0xC0, _OTHER), (0xE0, b"2"), (0xE2, b"3"), (0xE3, b"3"), (0xF0, b"c"), (0x100, b"4"))
        return next(kind for end, kind in kinds if byte < end)
    if sign.isalpha():
        return _LETTER
    if sign.isdigit():
        return _DIGITS
    if sign == "\n":
        return _LINE
    return _SPACE if byte <= 0x20 else _PUNCT


_CLASSES = b"".join(map(_class_of, range(256)))
_BLOB_SIGNS = bytes(
    0x62 if (chr(byte).isalnum() and byte < 0x80) or chr(byte) in "+/=_-" else 0x20 for byte in range(256)
)
_WORDS_ONLY = bytes(byte if byte == 0x61 else 0x20 for byte in range(256))
_RUN = b"b" * _BLOB_RUN
_BLOBS = re.compile(rb"[A-Za-z0-9+/=_-]{%d,}" % _BLOB_RUN)


def estimate(text: str) -> int:
    """Tokens of `text` before the provider's factor."""
    if not text:
        return 0
    data = text.encode("utf-8", "replace")
    total = 0.0
    if len(data) >= _BLOB_RUN and _RUN in data.translate(_BLOB_SIGNS):
        runs = _BLOBS.findall(data)
        total += _BLOB * sum(map(len, runs))
        data = _BLOBS.sub(b" ", data)
    classes = b" " + data.translate(_CLASSES)
    words = len(classes.translate(_WORDS_ONLY).split())
    total += _WORD * words + _EIGHT_LETTERS * classes.count(b"aaaaaaaa")
    total += _DIGIT * _count(classes, _DIGITS) + _PUNCTUATION * _count(classes, _PUNCT)
    total += _BREAK * (_count(classes, _LINE) + classes.count(b"  "))
    if len(data) != len(text):
        total += _TWO_BYTE * _count(classes, b"2") + _THREE_BYTE * _count(classes, b"3")
        total += _CJK * _count(classes, b"c") + _FOUR_BYTE * _count(classes, b"4")
    return int(total) + 1


def estimate_request(request: Request, *, factor: float = 1.0) -> int:
    """Tokens of a whole request, `factor` being the provider's."""
    return round(factor * (_fixed(request.system, request.tools) + sum(map(message_tokens, request.messages))))


class RunningEstimate:
    """The same for conversations that grow: what was counted of a session is not counted again."""

    def __init__(self, *, sessions: int = 64) -> None:
        self._most = sessions
        self._known: dict[str, tuple[tuple[Message, ...], int]] = {}
        self._head: tuple[str, tuple[ToolSpec, ...]] = ("", ())
        self._head_tokens = _fixed("", ())

    def request(self, request: Request, *, factor: float = 1.0) -> int:
        known, tokens = self._known.pop(request.session, ((), 0))
        messages = request.messages
        if messages[: len(known)] != known:
            known, tokens = (), 0
        tokens += sum(map(message_tokens, messages[len(known) :]))
        self._known[request.session] = (messages, tokens)
        while len(self._known) > self._most:
            del self._known[next(iter(self._known))]
        return round(factor * (self._fixed_part(request) + tokens))

    def _fixed_part(self, request: Request) -> int:
        """Tokens of system prompt and tools, counted again only when they are others."""
        system, tools = self._head
        if request.system != system or request.tools != tools:
            self._head = request.system, request.tools
            self._head_tokens = _fixed(request.system, request.tools)
        return self._head_tokens


def message_tokens(message: Message) -> int:
    """Tokens of one message before the provider's factor."""
    tokens = _MESSAGE + _content(message.content)
    if isinstance(message, UserMessage) and message.runtime:
        tokens += estimate(message.runtime)
    elif not isinstance(message, UserMessage | AssistantMessage):
        tokens += _MESSAGE
    return tokens


def _content(blocks: Iterable[UserBlock | AssistantBlock | ResultBlock]) -> int:
    tokens = 0
    for block in blocks:
        match block:
            case Text(text):
                tokens += estimate(text)
            case Thinking():
                tokens += estimate(block.text) + len(block.redacted) // 2
            case ToolCall():
                tokens += _TOOL + estimate(block.name) + estimate(block.arguments)
            case Image():
                area = block.width * block.height // 750  # Anthropic's rule; the largest of the usual ones
                tokens += min(area, _IMAGE) if area else _IMAGE
            case Opaque():
                pass
    return tokens


def _fixed(system: str, tools: tuple[ToolSpec, ...]) -> int:
    tokens = _MESSAGE + estimate(system)
    for tool in tools:
        tokens += _TOOL + estimate(tool.description) + estimate(bytes(tool.parameters).decode("utf-8", "replace"))
    return tokens


def _count(classes: bytes, kind: bytes) -> int:
    return len(classes) - len(classes.translate(None, kind))
