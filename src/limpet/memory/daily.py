"""Markdown files that only grow: the day's notes and their like.

Nothing here rewrites a line: the file is opened for appending, what is there already is not added twice, and the
owner's own edits stay as they are.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from limpet.errors import WorkspaceError

READ_LIMIT = 4_000_000
"""Bytes of a file that are looked at for what is there already."""
_MARKS = re.compile(r"^\s*(?:[-*+]\s+)?(?:\d\d:\d\d\s+)?")


def append_lines(workspace: str, name: str, lines: Sequence[str], *, title: str) -> int:
    """Append the `lines` that the file `name` (below `workspace`) does not hold yet; how many those were.

    A new file begins with the heading `title`. Sameness is of words: case, blanks, list marks and times do not count.
    Raises `WorkspaceError` when it cannot be written; links are not followed.
    """
    with _opened(workspace, name) as file:
        known = _read(file)
        seen = {_normal(line) for line in known.splitlines()}
        fresh = [line for line in dict.fromkeys(lines) if _normal(line) and _normal(line) not in seen]
        if fresh:
            head = f"# {title}\n\n" if not known else "" if known.endswith("\n") else "\n"
            _write(file, head + "".join(f"{line}\n" for line in fresh))
        return len(fresh)


def append_text(workspace: str, name: str, text: str, *, mark: str = "") -> bool:
    """Append a paragraph, unless the file holds it (or its `mark`) already; whether it was added.

    Raises `WorkspaceError` when it cannot be written; links are not followed.
    """
    with _opened(workspace, name) as file:
        known = _read(file)
        if (mark or text.strip()) in known:
            return False
        gap = "" if not known or known.endswith("\n\n") else "\n" if known.endswith("\n") else "\n\n"
        _write(file, gap + text.rstrip("\n") + "\n")
        return True


def _normal(line: str) -> str:
    return " ".join(_MARKS.sub("", line).casefold().split())


@contextmanager
def _opened(workspace: str, name: str) -> Generator[int]:
    """The file for appending, alone; its folders are made. No part of the path may be a link."""
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(_handle(workspace, os.O_RDONLY | os.O_DIRECTORY))
            *folders, last = name.split("/")
            for part in folders:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=folder)
                folder = stack.enter_context(_handle(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, within=folder))
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
            file = stack.enter_context(_handle(last, flags, within=folder))
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise OSError(errno.EINVAL, "it is not a file")
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        except OSError as error:
            raise WorkspaceError(
                f"{os.path.join(workspace, name)} cannot be written: {error.strerror}.",
                hint="Make room there, or make it an ordinary file again.",
            ) from None


@contextmanager
def _handle(path: str, flags: int, *, within: int | None = None) -> Generator[int]:
    handle = os.open(path, flags | os.O_CLOEXEC, 0o644, dir_fd=within)
    try:
        yield handle
    finally:
        os.close(handle)


def _read(file: int) -> str:
    return os.pread(file, READ_LIMIT, 0).decode("utf-8", "replace")


def _write(file: int, text: str) -> None:
    data = text.encode("utf-8", "replace")
    while data:
        data = data[os.write(file, data) :]
    os.fsync(file)
