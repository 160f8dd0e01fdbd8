"""`read_file`: text by whole lines, images as images, nothing binary."""

from __future__ import annotations

import os
import re
from typing import Annotated

from limpet.errors import ToolError
from limpet.toolkit.schema import tool
from limpet.toolkit.truncate import count_lines, head
from limpet.tools.disk import digest
from limpet.tools.paths import Root, Spot, missing, read_bytes
from limpet.tools.sniff import Picture, picture, what_binary
from limpet.types.content import Image, Text
from limpet.types.ports import ToolContext
from limpet.types.tool import Details, ToolResult, text_result

LINES = 2_000
CHARS = 50_000
LARGEST = 64 * 1024 * 1024
"""Bytes from which a file is not loaded at all."""
LARGEST_IMAGE = 4_500_000

_BLOB = re.compile(r"[0-9a-f]{64}")


@tool(effect="pure", brief="Read a text file or image.")
async def read_file(
    context: ToolContext,
    path: str,
    offset: Annotated[int, "first line, from 1"] = 1,
    limit: Annotated[int, "lines"] = LINES,
) -> ToolResult:
    """Read a text file (at most 2,000 lines or 50 KB a call, whole lines) or look at an image."""
    if offset < 1 or limit < 1:
        raise ToolError("offset and limit start at 1")
    spilled = _spilled(context, path)
    if spilled is not None:
        return text_result(_page(spilled.decode("utf-8", "replace"), path, offset, limit, context))
    with Root(context.workspace, veil=context.veil) as root:
        spot = root.find(path, reading=True)
        if spot.kind == "missing":
            raise missing(path)
        if spot.kind == "folder":
            raise ToolError(f"{path!r} is a folder", hint="List it with list_dir.")
        data = _load(spot)
    details = Details(summary=f"read {spot.relative}", path=spot.path, sha256=digest(data))
    image = picture(data)
    if image is not None:
        return await _look(spot, data, image, context=context, details=details)
    kind = what_binary(data)
    if kind:
        raise ToolError(
            f"{spot.relative} is not text: {kind}, {len(data):,} bytes", hint="Use exec with a program that reads it."
        )
    text, note = decode(data)
    return text_result(_page(text, spot.relative, offset, limit, context) + note, details=details)


def decode(data: bytes) -> tuple[str, str]:
    """The text of a file without its byte order mark, and a note for the model when bytes were not UTF-8."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace"), "\n[The file is UTF-16; shown as text.]"
    body = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return body.decode("utf-8"), ""
    except UnicodeDecodeError as error:
        place = body.count(b"\n", 0, error.start) + 1
        return body.decode("utf-8", "replace"), (
            f"\n[Not all of the file is UTF-8 (first on line {place}): such bytes are shown as \ufffd. "
            "edit_file leaves them as they are; write_file would lose them.]"
        )


def _load(spot: Spot) -> bytes:
    size = os.stat(spot.name, dir_fd=spot.folder, follow_symlinks=False).st_size
    if size > LARGEST:
        raise ToolError(
            f"{spot.relative} has {size:,} bytes, too large to read", hint="Take parts with exec (head, tail, grep)."
        )
    return read_bytes(spot, limit=LARGEST)


def _spilled(context: ToolContext, path: str) -> bytes | None:
    """The bytes of a spill or attachment when `path` is what a notice named. It is outside the workspace."""
    name = os.path.basename(path)
    if not path.startswith("/") or not _BLOB.fullmatch(name):
        return None
    try:
        return context.blobs.get(name) if context.blobs.path(name) == path else None
    except FileNotFoundError:
        return None


def _page(text: str, name: str, offset: int, limit: int, context: ToolContext) -> str:
    total = count_lines(text)
    if total == 0:
        return f"[{name} is empty.]"
    if offset > total:
        raise ToolError(f"offset {offset} is past the end: {name} has {total} lines")
    start = 0
    for _ in range(offset - 1):
        start = text.index("\n", start) + 1
    cap = min(CHARS, context.result_limit - 300)
    cut = head(text[start:], lines=min(limit, LINES), chars=max(cap, 200))
    if not cut.head:
        line = text[start:].split("\n", 1)[0]
        raise ToolError(
            f"line {offset} of {name} has {len(line):,} characters, over the {max(cap, 200):,} that fit",
            hint=f"Take a part of it with exec, for example: sed -n {offset}p {name!r} | cut -c1-2000",
        )
    if cut.whole:
        return cut.head
    last = offset + count_lines(cut.head) - 1
    return f"{cut.head}[Lines {offset}-{last} of {total}. Go on with offset={last + 1}.]"


async def _look(spot: Spot, data: bytes, image: Picture, *, context: ToolContext, details: Details) -> ToolResult:
    if len(data) > LARGEST_IMAGE:
        raise ToolError(
            f"{spot.relative} is an image of {len(data):,} bytes, over the {LARGEST_IMAGE:,} that a model takes",
            hint="Make it smaller with exec first.",
        )
    blob = await context.blobs.put(data)
    size = f"{image.width}x{image.height}" if image.width else "size unknown"
    return ToolResult(
        content=(
            Text(f"[Image {spot.relative}: {image.mime}, {size}, {len(data):,} bytes.]"),
            Image(blob=blob, mime=image.mime, name=spot.relative, width=image.width, height=image.height),
        ),
        details=details,
    )
