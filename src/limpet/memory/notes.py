"""Where notes go in a workspace: the day's file, excerpts of ended conversations, the history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from limpet.memory.daily import append_lines, append_text
from limpet.types.envelope import Trust

FOLDER = "memory"
PENDING = "memory/pending"
"""What strangers had a part in: in no prompt until the owner confirms it (DESIGN 9)."""


class WorkspaceNotes:
    """Notes below the absolute path `workspace`; `local` gives the owner's time of a moment (UTC ms)."""

    def __init__(self, workspace: str, local: Callable[[int], datetime]) -> None:
        self._workspace = workspace
        self._local = local

    def file(self, at: int, trust: Trust) -> str:
        return f"{_folder(trust)}/{self._local(at):%Y-%m-%d}.md"

    async def append(self, file: str, lines: Sequence[str]) -> int:
        return append_lines(self._workspace, file, lines, title=file.rpartition("/")[2].removesuffix(".md"))

    def excerpt_file(self, at: int, session: str, trust: Trust) -> str:
        return f"{_folder(trust)}/{self._local(at):%Y-%m-%d-%H%M}-{session}.md"

    async def keep(self, file: str, text: str) -> None:
        append_text(self._workspace, file, text)

    async def remember(self, at: int, session: str, *, text: str, trust: Trust) -> None:
        paragraph = " ".join(line.strip() for line in text.splitlines() if line.strip())
        mark = f"[{self._local(at):%Y-%m-%d %H:%M}] ({session})"
        append_text(self._workspace, f"{_folder(trust)}/HISTORY.md", f"{mark} {paragraph}", mark=mark)


def _folder(trust: Trust) -> str:
    return PENDING if trust == "external" else FOLDER
