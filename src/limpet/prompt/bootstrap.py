"""Files of the workspace as they go into the prompt: whole or cut at a line, always as clean text."""

from __future__ import annotations

import hashlib
import os
import stat

from msgspec import Struct

READ_LIMIT = 4_000_000
"""Bytes of one file that are looked at; what is behind them is cut off anyway."""


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


def cut(text: str, cap: int, name: str) -> str:
    """`text` in at most `cap` characters, cut at a line where there is one, with a marker that names the file."""
    if len(text) <= cap:
        return text
    marker = f"[{name} is cut here: {len(text):,} characters in all; read the file for the rest]"
    room = max(0, cap - len(marker) - 1)
    line_end = text.rfind("\n", room // 2, room + 1)
    head = text[: line_end if line_end > 0 else room].rstrip()
    return f"{head}\n{marker}" if head else marker


def estimate(text: str) -> int:
    """Tokens, roughly, and rather too many: a byte of UTF-8 is 0.3 of one, a CJK character 0.9."""
    return (len(text.encode("utf-8", "replace")) * 3 + 9) // 10


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
