"""Content blocks: what a message is made of.

A block whose tag this version does not know decodes to `Opaque` and is written back byte for byte,
so that a log written by a newer Limpet survives an older one.
"""

from __future__ import annotations

from msgspec import Raw, Struct


class Text(Struct, frozen=True, tag="text", omit_defaults=True):
    """Plain or Markdown text. `signature` is opaque provider metadata, replayed only to its producer."""

    text: str
    signature: str = ""


class Thinking(Struct, frozen=True, tag="thinking", omit_defaults=True):
    """Reasoning. Kept as received and replayed only to the model that made it.

    `redacted` holds an encrypted payload of the provider; `text` is then empty.
    """

    text: str
    signature: str = ""
    redacted: str = ""


class Image(Struct, frozen=True, tag="image", omit_defaults=True):
    """A picture by reference: `blob` is the SHA-256 (hex) of its bytes in the blob store."""

    blob: str
    mime: str
    name: str = ""
    width: int = 0
    height: int = 0


class ToolCall(Struct, frozen=True, tag="call", omit_defaults=True):
    """A call a model asked for.

    `arguments` is always the text of one JSON object, whatever the provider sent. When that could not be
    had without guessing, it is `{}` and `fault` says why; such a call is answered with an error, never run.
    `id` is the provider's; inside Limpet a call is named by its assistant entry and its index.
    """

    id: str
    name: str
    arguments: str
    fault: str = ""
    signature: str = ""


class Opaque(Struct, frozen=True, tag="opaque"):
    """A block or payload of a kind this version does not know: its JSON, untouched."""

    raw: Raw


UserBlock = Text | Image | Opaque
AssistantBlock = Text | Thinking | ToolCall | Opaque
ResultBlock = Text | Image | Opaque
