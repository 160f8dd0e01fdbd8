"""Attachments as Telegram takes them: which method, which form."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from limpet.channels.telegram.api import Value
from limpet.errors import RefusedError
from limpet.types.envelope import Attachment

LARGEST = 50_000_000
"""Bytes of one upload of a bot (https://core.telegram.org/bots/api#sending-files)."""
_LARGEST_PHOTO = 10_000_000
_ALBUM = 10
_METHODS = {"photo": "sendPhoto", "voice": "sendVoice", "audio": "sendAudio", "document": "sendDocument"}


class Upload(Struct, frozen=True):
    """A request that carries files; `params` are what it needs beside chat and caption."""

    method: str
    params: dict[str, Value]
    files: dict[str, tuple[str, bytes]]
    album: bool = False


def upload(attachments: Sequence[Attachment], data: Sequence[bytes], *, as_files: bool = False) -> Upload:
    """One request for all attachments. `as_files`: nothing is shown as a photo. Raises `RefusedError`."""
    if len(attachments) > _ALBUM:
        raise RefusedError(f"one message holds at most {_ALBUM} attachments")
    kinds: list[str] = []
    for one, content in zip(attachments, data, strict=True):
        if len(content) > LARGEST:
            raise RefusedError(f"{one.name} has {len(content)} bytes, more than the {LARGEST} that bots may send")
        kinds.append("document" if as_files else _kind(one.mime, len(content)))
    if len(attachments) == 1:
        kind = kinds[0]
        return Upload(_METHODS[kind], {}, {kind: (attachments[0].name, data[0])})
    # Files and photos cannot stand in one album.
    kind = kinds[0] if len(set(kinds)) == 1 and kinds[0] != "voice" else "document"
    files = {f"file{at}": (one.name, data[at]) for at, one in enumerate(attachments)}
    media: list[object] = [{"type": kind, "media": f"attach://{part}"} for part in files]
    return Upload("sendMediaGroup", {"media": media}, files, album=True)


def captioned(one: Upload, caption: dict[str, Value]) -> dict[str, Value]:
    """The parameters with a caption, which in an album stands under the first of its pictures, but the last file."""
    if not one.album:
        return {**one.params, **caption}
    media = msgspec.convert(one.params["media"], list[dict[str, object]])
    at = -1 if media[0]["type"] == "document" else 0
    media[at] = {**media[at], **caption}
    return {"media": list[object](media)}


def _kind(mime: str, size: int) -> str:
    if mime in ("image/jpeg", "image/png", "image/webp") and size <= _LARGEST_PHOTO:
        return "photo"
    if mime == "audio/ogg":
        return "voice"
    return "audio" if mime in ("audio/mpeg", "audio/mp4") else "document"
