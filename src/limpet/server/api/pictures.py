"""Pictures of requests: out of `data:` addresses, or fetched, with the guard that tools have."""

from __future__ import annotations

import base64
import binascii
from urllib.parse import unquote_to_bytes, urlsplit

from limpet.channels.media import sniff
from limpet.errors import ToolError
from limpet.net.client import Caps, Web
from limpet.server.api.asks import Fault
from limpet.types.channel import File
from limpet.types.content import Image
from limpet.types.ports import Blobs

MOST = 20
LARGEST = 20_000_000
SECONDS = 20.0
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


async def fetched(addresses: tuple[str, ...], web: Web) -> tuple[bytes, ...]:
    """The pictures behind `addresses`. Raises `Fault`."""
    if len(addresses) > MOST:
        raise Fault(400, f"At most {MOST} images are taken with one request.", code="too_many_images")
    return tuple([await _one(address, web) for address in addresses])


async def _one(address: str, web: Web) -> bytes:
    scheme, _, rest = address.partition(":")
    if scheme.lower() == "data":
        data = _inline(rest)
    elif _scheme(address) in ("http", "https"):
        data = await _far(address, web)
    else:
        raise Fault(400, "An image is a `data:` address, or one of http or https.", code="invalid_image_url")
    if len(data) > LARGEST:
        raise Fault(400, f"An image has at most {LARGEST:,} bytes.", code="invalid_image")
    if sniff(data, "image").mime not in PICTURES:
        raise Fault(400, "Images are PNG, JPEG, GIF or WebP; this one is none of them.", code="invalid_image")
    return data


def _scheme(address: str) -> str:
    try:
        return urlsplit(address).scheme
    except ValueError:
        return ""


def _inline(rest: str) -> bytes:
    head, _, body = rest.partition(",")
    if not head.lower().endswith(";base64"):
        return unquote_to_bytes(body)
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        raise Fault(400, "The image is no valid base64.", code="invalid_base64") from None


async def _far(address: str, web: Web) -> bytes:
    try:
        found = await web.get(address, caps=Caps(LARGEST, SECONDS))
    except ToolError as error:
        raise Fault(400, f"An image could not be fetched: {error}", code="invalid_image_url") from None
    if found.status != 200 or found.cut:
        why = "it is too large" if found.cut else f"HTTP {found.status}"
        raise Fault(400, f"An image could not be fetched: {why}.", code="invalid_image_url")
    return found.body


def files(pictures: tuple[bytes, ...]) -> tuple[File, ...]:
    """As what is attached to a message."""
    return tuple(_file(data, number) for number, data in enumerate(pictures, start=1))


def _file(data: bytes, number: int) -> File:
    async def fetch(limit: int) -> bytes:
        return data

    kind = sniff(data, "image")
    return File(f"image-{number}{kind.suffixes[0] if kind.suffixes else ''}", kind.mime, fetch, len(data))


async def blocks(pictures: tuple[bytes, ...], blobs: Blobs) -> tuple[Image, ...]:
    """As what stands in a request to a model."""
    return tuple([Image(await blobs.put(data), sniff(data, "image").mime, "image") for data in pictures])
