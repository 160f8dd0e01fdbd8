"""Writing memory files: appending what is not there yet, and changing lines under a lock.

What appends rewrites no line: the file is opened for appending, and the owner's own edits stay as they are. What
changes lines reads the file as it is at that moment and puts the new one in its place in one step.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from limpet.errors import WorkspaceError
from limpet.memory.entries import eol_of, lines_of, normal

_DRAFT = re.compile(r"\..+\.md\.(\d{1,9})\.tmp")
READ_LIMIT = 4_000_000
"""Bytes of a file that are looked at for what is there already."""


def append_lines(workspace: str, name: str, lines: Sequence[str], *, title: str) -> int:
    """Append the `lines` that the file `name` (below `workspace`) does not hold yet; how many those were.

    A new file begins with the heading `title`. Sameness is of words: case, blanks, list marks and times do not count.
    Raises `WorkspaceError` when it cannot be written; links are not followed.
    """
    with _opened(workspace, name) as (file, _):
        known = _read(file)
        seen = {normal(line) for line in lines_of(known)}
        fresh = [line for line in dict.fromkeys(lines) if normal(line) and normal(line) not in seen]
        if fresh:
            head = f"# {title}\n\n" if not known else "" if known.endswith("\n") else "\n"
            _append(file, head + "".join(f"{line}\n" for line in fresh), eol=eol_of(known))
        return len(fresh)


def append_text(workspace: str, name: str, text: str, *, mark: str = "") -> bool:
    """Append a paragraph, unless the file holds it (or its `mark`) already; whether it was added.

    Raises `WorkspaceError` when it cannot be written; links are not followed.
    """
    with _opened(workspace, name) as (file, _):
        known = _read(file)
        if (mark or text.strip()) in known.replace("\r\n", "\n"):
            return False
        end = known.replace("\r\n", "\n")[-2:]
        gap = "" if not known or end == "\n\n" else "\n" if end.endswith("\n") else "\n\n"
        _append(file, f"{gap}{text.rstrip()}\n", eol=eol_of(known))
        return True


def rewrite(workspace: str, name: str, edit: Callable[[str], str]) -> bool:
    """Put what `edit` makes of the file's text as it is now in its place; whether that changed anything.

    A missing file is an empty text, and made only when there is something to write. Bytes that are no UTF-8 stay.
    Raises `WorkspaceError` when it cannot be written; links are not followed.
    """
    with _opened(workspace, name, create=False) as (file, folder):
        before = b"" if file < 0 else os.pread(file, READ_LIMIT + 1, 0)
        if len(before) > READ_LIMIT:
            raise WorkspaceError(f"{name} has over {READ_LIMIT:,} bytes.", hint="Move a part of it to another file.")
        after = edit(before.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if after == before:
            return False
        last = name.rpartition("/")[2]
        temporary = f".{last}.{os.getpid()}.tmp"
        _sweep(folder, own=temporary)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with _handle(temporary, flags, within=folder) as fresh:
                _write(fresh, after)
                if file >= 0:
                    os.fchmod(fresh, os.fstat(file).st_mode & 0o7777)
            os.rename(temporary, last, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
        finally:  # after the rename there is nothing left to remove
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
        return True


def sweep(workspace: str, folder: str) -> None:
    """Remove what a process that was killed in `rewrite` left in a folder below the workspace. Never raises."""
    with suppress(OSError), _handle(os.path.join(workspace, folder), os.O_RDONLY | os.O_DIRECTORY) as handle:
        _sweep(handle)


def _sweep(folder: int, *, own: str = "") -> None:
    """Remove drafts of processes that are no more, and the draft `own`, which only an earlier one can have left."""
    for name in os.listdir(folder):
        match = _DRAFT.fullmatch(name)
        if match and (name == own or not _is_alive(int(match[1]))):
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def _opened(workspace: str, name: str, *, create: bool = True) -> Generator[tuple[int, int]]:
    """The locked file for appending (without `create` -1 when it is missing) and the folder it is in, which is made.

    No part of the path may be a link.
    """
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(_handle(workspace, os.O_RDONLY | os.O_DIRECTORY))
            *folders, last = name.split("/")
            for part in folders:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=folder)
                folder = stack.enter_context(_handle(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, within=folder))
            yield _locked(stack, last, folder, create=create), folder
        except OSError as error:
            raise WorkspaceError(
                f"{os.path.join(workspace, name)} cannot be written: {error.strerror}.",
                hint="Make room there, or make it an ordinary file again.",
            ) from None


def _locked(stack: ExitStack, name: str, folder: int, *, create: bool) -> int:
    """The open file, of which nobody else who asks for its lock has it; again when another took its place meanwhile."""
    flags = os.O_RDWR | (os.O_CREAT if create else 0) | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    while True:
        try:
            file = stack.enter_context(_handle(name, flags, within=folder))
        except FileNotFoundError:
            if create:
                raise
            return -1
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "it is not a file")
        fcntl.flock(file, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), os.stat(name, dir_fd=folder, follow_symlinks=False)):
                return file


@contextmanager
def _handle(path: str, flags: int, *, within: int | None = None) -> Generator[int]:
    handle = os.open(path, flags | os.O_CLOEXEC, 0o644, dir_fd=within)
    try:
        yield handle
    finally:
        os.close(handle)


def _read(file: int) -> str:
    return os.pread(file, READ_LIMIT, 0).decode("utf-8", "replace")


def _append(file: int, text: str, *, eol: str) -> None:
    _write(file, text.replace("\r\n", "\n").replace("\n", eol).encode("utf-8", "replace"))


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
    os.fsync(file)
