"""JSON in and out for everything that is stored. What this version does not know survives as `Opaque`, byte-equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import msgspec
from msgspec import Raw

from limpet.types.content import AssistantBlock, Opaque, ResultBlock, UserBlock
from limpet.types.entry import Payload

_KINDS = {kind.__struct_config__.tag for kind in get_args(Payload)}
_BLOCKS = {block.__struct_config__.tag for block in get_args(UserBlock | AssistantBlock | ResultBlock)}

_encoder = msgspec.json.Encoder()
_payloads: msgspec.json.Decoder[Payload] = msgspec.json.Decoder(Payload)
_fields = msgspec.json.Decoder(dict[str, Raw])
_items = msgspec.json.Decoder(list[Raw])


class _Tags(msgspec.Struct):
    kind: str = ""
    type: str = ""
    raw: Raw = Raw(b"null")


_tags = msgspec.json.Decoder(_Tags)


def encode_payload(payload: Payload | Opaque) -> bytes:
    """The stored form of an entry's payload."""
    if isinstance(payload, Opaque):
        return bytes(payload.raw)
    data = _encoder.encode(payload)
    return _map_blocks(data, _unwrap) if b'"type":"opaque"' in data else data


def decode_payload(data: bytes) -> Payload | Opaque:
    """The payload that `data` stands for; `Opaque` when its kind is unknown.

    Raises `msgspec.DecodeError` when `data` is not JSON, `msgspec.ValidationError` when a known kind is malformed.
    """
    try:
        return _payloads.decode(data)
    except msgspec.ValidationError:
        if _tags.decode(data).kind not in _KINDS:
            return Opaque(Raw(data))
        return _payloads.decode(_map_blocks(data, _wrap))


def _wrap(block: Raw) -> Raw:
    return block if _tags.decode(block).type in _BLOCKS else Raw(b'{"type":"opaque","raw":' + bytes(block) + b"}")


def _unwrap(block: Raw) -> Raw:
    tags = _tags.decode(block)
    return tags.raw if tags.type == "opaque" else block


def _map_blocks(data: bytes, change: Callable[[Raw], Raw]) -> bytes:
    """`data` with `change` applied to each content block of the message or result it carries."""
    payload = _fields.decode(data)
    for name in ("message", "result"):
        if name in payload:
            carrier = _fields.decode(payload[name])
            if "content" in carrier:
                blocks = [change(block) for block in _items.decode(carrier["content"])]
                carrier["content"] = Raw(_encoder.encode(blocks))
                payload[name] = Raw(_encoder.encode(carrier))
    return _encoder.encode(payload)
