"""`write_file` and `delete_path`."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from limpet.errors import ToolError
from limpet.toolkit.schema import tool
from limpet.toolkit.truncate import head
from limpet.tools.disk import check_unchanged, digest, judged, replace, sync_folder
from limpet.tools.files_edit import DIFF_CHARS, DIFF_LINES, diff_of
from limpet.tools.paths import STATE, Root, Spot, missing, read_bytes
from limpet.types.ports import ToolContext
from limpet.types.tool import Details, FileIntent, ToolResult, text_result

COMPARED = 65_536
"""Bytes of a file up to which people are shown what a new content changes."""
MERGED = "; as memory: what it held before is still there, and nothing stands there twice"


@tool(effect="file", writes=("path",), brief="Write a whole file.")
async def write_file(context: ToolContext, path: str, content: str) -> ToolResult:
    """Create a file or replace its whole content; missing folders are made. For small changes use edit_file."""
    wanted = content.encode("utf-8", "replace")
    with Root(context.workspace, veil=context.veil) as root:
        spot = root.target(path)
        if spot.kind == "folder" or path.endswith("/"):
            raise ToolError(f"{path!r} is a folder; nothing was written", hint="Give a file name.")
        before = read_bytes(spot) if spot.kind == "file" else None
        data = judged(spot, before or b"", wanted, context) or b""
        intent = await replace(root, spot, data, before=before, context=context)
    did = "created" if before is None else "unchanged:" if before == data else "replaced"
    return text_result(
        f"{did} {spot.relative} ({len(content):,} characters){MERGED if data != wanted else ''}",
        details=Details(
            summary=f"{did} {spot.relative}",
            path=intent.path,
            sha256=intent.after,
            diff=_difference(before or b"", data, spot.relative),
        ),
    )


def _difference(before: bytes, after: bytes, name: str) -> str:
    """What people are shown of a change: its beginning; nothing of what is no text, or too large to compare."""
    if max(len(before), len(after)) > COMPARED or b"\0" in before + after:
        return ""
    diff = diff_of(before.decode("utf-8", "replace"), after.decode("utf-8", "replace"), name)
    shown = head(diff, lines=DIFF_LINES, chars=DIFF_CHARS)
    return shown.head if shown.whole else f"{shown.head}[The rest of the diff is left out.]"


@tool(effect="file", writes=("path",), brief="Delete a file or folder (undo is possible).")
async def delete_path(context: ToolContext, path: str) -> ToolResult:
    """Delete a file or folder by moving it to the trash, from which the owner can bring it back."""
    with Root(context.workspace, veil=context.veil) as root:
        spot = root.target(path, link_itself=True)
        if spot.kind == "missing":
            raise missing(path)
        held = read_bytes(spot) if spot.kind == "file" else b""
        was = digest(held) if spot.kind == "file" else spot.kind
        if spot.kind != "link":
            judged(spot, held, None, context)
        if spot.kind == "file":
            check_unchanged(spot, was, context)
        await context.starting(FileIntent(path=spot.path, before=was, after=""))
        kept = to_trash(root, spot, key=context.key)
    what = "" if spot.kind == "file" else f"{spot.kind} "
    return text_result(
        f"deleted {what}{spot.relative} (kept in {kept})",
        details=Details(summary=f"deleted {spot.relative}", path=spot.path),
    )


def to_trash(root: Root, spot: Spot, *, key: str) -> str:
    """Move what is at `spot` to the trash of the call `key`, under its own relative path; gives where it is now."""
    trash = f"{STATE}/trash/{re.sub(r'[^A-Za-z0-9._-]', '_', key) or 'call'}"
    folder = root.state_folder(f"{trash}/{os.path.dirname(spot.relative)}".rstrip("/"))
    name = spot.name
    with suppress(FileNotFoundError):
        os.stat(name, dir_fd=folder, follow_symlinks=False)
        name = f"{name}.{os.urandom(3).hex()}"
    try:
        os.rename(spot.name, name, src_dir_fd=spot.folder, dst_dir_fd=folder)
    except OSError as error:
        raise ToolError(f"{spot.relative} was not deleted: {error.strerror}") from None
    sync_folder(spot.folder)
    parent = os.path.dirname(spot.relative)
    return "/".join(part for part in (trash, parent, name) if part)
