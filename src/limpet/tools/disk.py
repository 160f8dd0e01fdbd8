"""Changing one file of the workspace: hash, intent, act (DESIGN 4, effect `file`)."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import Literal

from limpet.errors import ToolError
from limpet.tools.paths import Root, Spot, read_bytes
from limpet.types.ports import ToolContext
from limpet.types.tool import FileIntent

State = Literal["done", "before", "unknown"]


def digest(data: bytes) -> str:
    """SHA-256 (hex)."""
    return hashlib.sha256(data).hexdigest()


def check_unchanged(spot: Spot, before: str, context: ToolContext) -> None:
    """Raises `ToolError` when the file is not what this session last read or wrote. One that is gone loses nothing."""
    known = context.seen.get(spot.path)
    if before and known is not None and known != before:
        raise ToolError(
            f"{spot.relative} changed since you last read it; nothing was written",
            hint="Read it again, then decide what to change.",
        )


def judged(spot: Spot, before: bytes, after: bytes | None, context: ToolContext) -> bytes | None:
    """What is to stand at `spot` instead of `after` (None: nothing), which memory files have a say in.

    Raises `ToolError` for what would lose too much.
    """
    if context.memory is None:
        return after
    return context.memory.judged(f"{spot.relative}{'/' * (spot.kind == 'folder')}", before, after)


async def replace(root: Root, spot: Spot, data: bytes, *, before: bytes | None, context: ToolContext) -> FileIntent:
    """Put `data` at `spot` in one step, keeping the mode; missing folders are made.

    `before` is the present content, None without a file. Nothing on disk is touched before the intent is committed.
    """
    was = "" if before is None else digest(before)
    check_unchanged(spot, was, context)
    intent = FileIntent(path=spot.path, before=was, after=digest(data))
    await context.starting(intent)
    put(root, spot, data, was=was, key=context.key)
    return intent


def put(root: Root, spot: Spot, data: bytes, *, was: str, key: str, mode: int | None = None) -> None:
    """Put `data` at `spot`, whose intent is committed, in one step; `was` is the hash that the file must still have.

    The mode is kept; a file that is new gets `mode`.
    """
    path = spot.path
    if spot.folder < 0:
        spot = root.make_folders(path)
        if spot.path != path:
            raise ToolError(f"{spot.relative}: a folder on its way was replaced meanwhile; nothing was written")
    confirm(spot, was)
    _swap(spot, data, key=key, mode=mode)


def confirm(spot: Spot, was: str) -> None:
    """The intent was committed meanwhile: the file must still be the one it speaks of."""
    present = "" if mode_of(spot) is None else digest(read_bytes(spot))
    if present != was:
        raise ToolError(
            f"{spot.relative} was changed by something else just now; nothing was written",
            hint="Read it again, then decide what to change.",
        )


def mode_of(spot: Spot) -> int | None:
    """The permissions of the file at `spot`; None without one."""
    try:
        return os.stat(spot.name, dir_fd=spot.folder, follow_symlinks=False).st_mode & 0o7777
    except FileNotFoundError:
        return None


def temporary_of(key: str) -> str:
    """The name under which the call `key` writes its content before it takes the file's place.

    It follows from the call, so that whoever settles a call that was killed in between can remove it.
    """
    return f".limpet-{digest(key.encode())[:16]}.tmp"


def discard(intent: FileIntent, key: str) -> None:
    """Remove what the killed call `key` may have left beside its files."""
    for one in intent.each:
        with suppress(OSError):
            os.unlink(os.path.join(os.path.dirname(one.path), temporary_of(key)))


def _swap(spot: Spot, data: bytes, *, key: str, mode: int | None) -> None:
    present = mode_of(spot)
    mode = mode if present is None else present
    temporary = temporary_of(key)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(temporary, flags, 0o666, dir_fd=spot.folder)
        try:
            with open(fd, "wb") as file:
                file.write(data)
                file.flush()
                if mode is not None:
                    os.fchmod(fd, mode)
                os.fsync(fd)
            os.rename(temporary, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)
        finally:  # after the rename there is nothing left to remove
            with suppress(OSError):
                os.unlink(temporary, dir_fd=spot.folder)
        sync_folder(spot.folder)
    except OSError as error:
        raise ToolError(f"{spot.relative} was not written: {error.strerror}") from None


def sync_folder(folder: int) -> None:
    """Make a rename in the open folder last. Some file systems cannot; then the rename is as durable as they are."""
    with suppress(OSError):
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def compare(intent: FileIntent) -> State:
    """What became of an intent whose outcome was not recorded: `before` when a part of its files is still to be done,
    `unknown` when one is neither as it was nor as it should be."""
    states = {_compare(one) for one in intent.each}
    return "unknown" if "unknown" in states else "before" if "before" in states else "done"


def report(intent: FileIntent) -> str:
    """What became of each file of an intent with several; empty for one."""
    words = {"done": "has its new content", "before": "is as it was", "unknown": "is neither as it was nor as intended"}
    if not intent.more:
        return ""
    return "".join(f"\n{one.path} {words[_compare(one)]}." for one in intent.each)


def _compare(intent: FileIntent) -> State:
    """The same of one file, by its hash now. Never raises `OSError`.

    Of a folder or link that was to be deleted the intent's `before` is `folder` or `link`.
    """
    if intent.before == "folder" and os.path.isdir(intent.path):
        return "before"
    if intent.before == "link" and os.path.islink(intent.path):
        return "before"
    try:
        fd = os.open(intent.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        now = ""
    except OSError:
        return "unknown"
    else:
        try:
            with open(fd, "rb") as file:
                now = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return "unknown"
    if now == intent.after:
        return "done"
    return "before" if now == intent.before else "unknown"
