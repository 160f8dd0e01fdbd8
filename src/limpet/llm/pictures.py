"""Pictures of a message as the wires send them: base64 out of the blob store, or a note where that cannot be."""

from __future__ import annotations

import base64

from limpet.types.content import Image
from limpet.types.ports import Blobs


def data_of(image: Image, blobs: Blobs | None, *, allowed: bool) -> str | None:
    """The picture in base64; None when the model takes none or the blob is gone."""
    if blobs is None or not allowed:
        return None
    try:
        return base64.b64encode(blobs.get(image.blob)).decode()
    except OSError:
        return None


def note_of(image: Image, *, allowed: bool) -> str:
    """The text that stands in for a picture."""
    size = f", {image.width}x{image.height}" if image.width and image.height else ""
    why = "no longer stored" if allowed else "not shown: this model takes no images"
    return f"[image: {image.name or image.mime}{size}; {why}]"
