"""Where notes go in a workspace: the day's file, excerpts of ended conversations, the history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from limpet.memory.daily import append_lines, append_text
from limpet.memory.scope import OWNERS, MemoryScope
from limpet.types.envelope import Trust


class WorkspaceNotes:
    """Notes below the absolute path `workspace`; `local` gives the owner's time of a moment (UTC ms), `scope` whose
    memory the conversations under a session key have."""

    def __init__(
        self,
        workspace: str,
        local: Callable[[int], datetime],
        *,
        scope: Callable[[str], MemoryScope] = lambda key: OWNERS,
    ) -> None:
        self._workspace = workspace
        self._local = local
        self._scope = scope

    def file(self, at: int, trust: Trust, *, key: str = "") -> str:
        return f"{self._folder(key, trust)}/{self._local(at):%Y-%m-%d}.md"

    async def append(self, file: str, lines: Sequence[str]) -> int:
        return append_lines(self._workspace, file, lines, title=file.rpartition("/")[2].removesuffix(".md"))

    def excerpt_file(self, at: int, session: str, trust: Trust, *, key: str = "") -> str:
        return f"{self._folder(key, trust)}/{self._local(at):%Y-%m-%d-%H%M}-{session}.md"

    async def keep(self, file: str, text: str) -> None:
        append_text(self._workspace, file, text)

    async def remember(self, at: int, session: str, *, text: str, trust: Trust, key: str = "") -> None:
        paragraph = " ".join(line.strip() for line in text.splitlines() if line.strip())
        mark = f"[{self._local(at):%Y-%m-%d %H:%M}] ({session})"
        append_text(self._workspace, f"{self._folder(key, trust)}/HISTORY.md", f"{mark} {paragraph}", mark=mark)

    def _folder(self, key: str, trust: Trust) -> str:
        scope = self._scope(key)
        return scope.pending if trust == "external" else scope.folder
