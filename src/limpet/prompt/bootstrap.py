"""Files of the workspace as they go into the prompt: whole or cut at a line, always as clean text."""

from __future__ import annotations

import hashlib
import os
import stat
import time

from msgspec import Struct

from limpet.llm.tokens import estimate

READ_LIMIT = 4_000_000
"""Bytes of one file that are looked at; what is behind them is cut off anyway."""

SETTLED = 2_000_000_000
"""Nanoseconds after which a file's times tell its next change from the last one."""


class FileText(Struct, frozen=True):
    """A file of the workspace as it is now. `sha256` is empty when there is none, `warning` says what is odd."""

    name: str
    text: str = ""
    sha256: str = ""
    warning: str = ""


def read_workspace_file(workspace: str, name: str) -> FileText:
    """The file `name` below `workspace`. Never raises: what cannot be read is as good as missing, with a warning.

    A link that leads out of the workspace is not followed: a sandboxed command could have made it.
    """
    path = os.path.join(workspace, name)
    try:
        real, root = os.path.realpath(path), os.path.realpath(workspace)
        if os.path.commonpath((real, root)) != root:
            return FileText(name, warning=f"{name} is a link out of the workspace and was left out.")
        handle = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not make us wait
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return FileText(name, warning=f"{name} is not a file and was left out.")
            with open(handle, "rb", closefd=False) as file:
                data = file.read(READ_LIMIT)
        finally:
            os.close(handle)
    except FileNotFoundError:
        return FileText(name)
    except OSError as error:
        return FileText(name, warning=f"{name} cannot be read ({error.strerror}) and was left out.")
    text = data.decode("utf-8-sig", "replace").replace("\0", "\ufffd")
    odd = "\ufffd" in text and f"{name} is not clean UTF-8; the odd bytes were replaced."
    return FileText(name, text=text.strip(), sha256=hashlib.sha256(data).hexdigest(), warning=odd or "")


class WorkspaceFiles:
    """The files of one workspace for somebody who asks again and again: one is only read when it may have changed.

    A file that was written less than two seconds before it was read is read again: file systems count in ticks, up to
    two seconds long, so its next change may bear the same time.
    """

    def __init__(self, workspace: str, *, settled: int = SETTLED) -> None:
        self._workspace = workspace
        self._settled = settled
        self._known: dict[str, tuple[tuple[int, ...], FileText]] = {}

    def read(self, name: str) -> FileText:
        """What `read_workspace_file` gives."""
        state = self._state(name)
        known = self._known.get(name)
        if known is not None and known[0] == state:
            return known[1]
        file = read_workspace_file(self._workspace, name)
        if state and max(state[-2:]) > time.time_ns() - self._settled:
            self._known.pop(name, None)
        else:
            self._known[name] = state, file
        return file

    def _state(self, name: str) -> tuple[int, ...]:
        """What changes whenever the file does, its times last; empty when there is none."""
        try:
            found = os.stat(os.path.join(self._workspace, name))
        except OSError:
            return ()
        return found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def cut(text: str, cap: int, name: str) -> str:
    """`text` in at most `cap` characters, cut at a line where there is one, with a marker that names the file."""
    if len(text) <= cap:
        return text
    marker = f"[{name} is cut here: {len(text):,} characters in all; read the file for the rest]"
    room = max(0, cap - len(marker) - 1)
    line_end = text.rfind("\n", room // 2, room + 1)
    head = text[: line_end if line_end > 0 else room].rstrip()
    return f"{head}\n{marker}" if head else marker


def cut_head(text: str, cap: int, name: str) -> str:
    """The end of `text` in at most `cap` characters, from a line on, with a marker that names the file."""
    if len(text) <= cap:
        return text
    marker = f"[the beginning of {name} is left out: {len(text):,} characters in all]"
    start = len(text) - max(0, cap - len(marker) - 1)
    line = text.find("\n", start)
    return f"{marker}\n{text[line + 1 if line >= 0 else start :]}"


class Allowance:
    """What may still go into the prompt: characters of one file, characters and tokens of all of them."""

    def __init__(self, *, file_cap: int, total_cap: int, tokens: int) -> None:
        self._file_cap = file_cap
        self._left = total_cap
        self._tokens = tokens

    def take(self, text: str, name: str) -> str:
        """As much of `text` as is allowed."""
        needed = estimate(text)
        by_tokens = len(text) if needed <= self._tokens else len(text) * self._tokens // needed
        text = cut(text, min(self._file_cap, self._left, by_tokens), name)
        self._left = max(0, self._left - len(text))
        self._tokens = max(0, self._tokens - estimate(text))
        return text
