"""What a fake server answers with, as data: in a test's Python or in a JSON file (a list of replies)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct


class Call(Struct, frozen=True, omit_defaults=True):
    """A tool call. `arguments` is streamed as it stands, in `pieces` parts; without an id one is made."""

    name: str
    arguments: str = "{}"
    id: str = ""
    pieces: int = 3


class Reply(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One answer. By default: thinking, text and calls, streamed as the real service would, then its end.

    - `text`: its pieces; `stop`: the service's own word for why it ended (chosen when empty)
    - `status`, `headers`, `body`: with a status other than 200, or a `body`, no stream but this; a text as it is
    - `chunks`: JSON events sent instead of those made from `text` and `calls`; the usual end follows unless `bare`
    - `raw`: text sent literally as the body of a 200 instead of everything else
    - `delay`, `gap`: seconds before the headers, and between events
    - `stall_after`, `cut_after`: after that many events say nothing more, or break the connection
    - `pings`: seconds between comments (events `ping` at Anthropic) while it stalls
    - `split`: bytes per write, to cut events and characters anywhere
    """

    text: tuple[str, ...] = ()
    thinking: str = ""
    signature: str = ""
    calls: tuple[Call, ...] = ()
    stop: str = ""
    usage: tuple[int, int] = (100, 10)
    cached: int = 0
    status: int = 200
    headers: dict[str, str] = {}
    body: object = None
    chunks: tuple[object, ...] = ()
    bare: bool = False
    raw: tuple[str, ...] = ()
    delay: float = 0.0
    gap: float = 0.0
    stall_after: int = -1
    cut_after: int = -1
    pings: float = 0.0
    split: int = 0


class Seen(Struct, frozen=True):
    """A request as it came: `raw` bytes, `body` decoded (None: no JSON object), header names in lower case.

    `peer` names the connection it came by.
    """

    path: str
    headers: dict[str, str]
    raw: bytes
    body: dict[str, object] | None
    peer: str = ""
    query: str = ""


Script = Sequence[Reply] | Callable[[Seen], Reply]
"""Replies in order (past the end the fake refuses with 400), or a function of the request."""


class Rules(Struct, frozen=True):
    """What a strict fake demands beyond the service's standing rules.

    - `key`: the one API key it takes
    - `deepseek`: answers with calls must bring the field `reasoning_content` back
    - `forbidden`: fields of the body that it refuses; `id_pattern`: what ids of calls must look like
    - `max_characters`: of all messages together, beyond which the context is too long; 0 = no limit
    - `alternate`: user and assistant must take turns (Mistral, Anthropic always)
    - `kimi`: answers with calls must bring a `reasoning_content` back that is not empty, and schemas are Moonshot's
    - `cache_marks`: parts may carry `cache_control` (OpenRouter before Anthropic's models)
    - `streams`: whether it can stream; else it refuses `stream` and answers in one piece of JSON
    - `signatures`: calls of this API are Gemini's and come with a signature that must come back
    """

    key: str = "sk-test"
    deepseek: bool = False
    forbidden: tuple[str, ...] = ()
    id_pattern: str = ""
    max_characters: int = 0
    alternate: bool = False
    kimi: bool = False
    signatures: bool = False
    cache_marks: bool = False
    streams: bool = True


def load_script(path: Path) -> list[Reply]:
    """The replies in a JSON file. Raises `msgspec.ValidationError` that names the field."""
    return msgspec.json.decode(path.read_bytes(), type=list[Reply])


def pieces(text: str, count: int) -> list[str]:
    """`text` in `count` parts (fewer when it is shorter); an empty text is one empty part."""
    size = max(1, -(-len(text) // max(1, count)))
    return [text[at : at + size] for at in range(0, len(text), size)] or [""]
