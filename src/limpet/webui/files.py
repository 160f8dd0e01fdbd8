"""Stored files for the browser: pictures to be seen, all else to be fetched. What a file holds is never run."""

from __future__ import annotations

import re
from collections.abc import Callable

from starlette.responses import FileResponse, PlainTextResponse, Response

from limpet.channels.media import safe_name, sniff

BLOB = re.compile(r"[0-9a-f]{64}")
HEAD = 65_536
"""Bytes by which it is known what a file is."""
SHOWN = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif")
HEADERS = {"Content-Security-Policy": "default-src 'none'; sandbox", "Cache-Control": "private, max-age=86400"}


def answer(name: str, called: str, *, path: Callable[[str], str]) -> Response:
    """The file with the hash `name`; `called` is what to save it as, `path` gives where it lies."""
    try:
        place = path(name) if BLOB.fullmatch(name) else ""
    except FileNotFoundError:
        place = ""
    if not place:
        return PlainTextResponse("There is no such file.\n", 404)
    with open(place, "rb") as file:
        kind = sniff(file.read(HEAD), called)
    if kind.mime in SHOWN:
        return FileResponse(place, media_type=kind.mime, headers=HEADERS)
    return FileResponse(
        place, media_type="application/octet-stream", filename=safe_name(called or name[:12], kind), headers=HEADERS
    )
