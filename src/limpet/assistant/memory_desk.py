"""The memory of one conversation as its tools have it. Implements the port `Memory`."""

from __future__ import annotations

from limpet.assistant.remembering import Remembering
from limpet.assistant.services import Services
from limpet.errors import ToolError, WorkspaceError
from limpet.memory.guard import judged
from limpet.session.log import Log


class MemoryDesk:
    """What the tools of the conversation under `key` write; `log` tells whether strangers' words are in it."""

    def __init__(self, services: Services, key: str, log: Log) -> None:
        self._services = services
        self._memory = Remembering(services, key)
        self._log = log

    async def write(self, text: str, *, lasting: bool, call: str) -> str:
        trust = "external" if self._log.tainted else "owner"
        try:
            added = await self._memory.add(text, "lasting" if lasting else "today", trust=trust, key=call)
        except WorkspaceError as error:
            raise ToolError(error.present()) from None
        if added.file.startswith(f"{self._memory.scope.pending}/"):
            state = "Noted" if added.fresh else "Noted before"
            return (
                f"{state} in {added.file} ({added.id}). Strangers' words are in this conversation, so it counts only "
                f"once the owner says /memory confirm {added.id}; tell them."
            )
        if not added.fresh:
            return f"That is remembered already, in {added.file} ({added.id})."
        return f"Remembered in {added.file} ({added.id}).{self._could_go() if lasting else ''}"

    def _could_go(self) -> str:
        limit = self._services.memory.cap
        size, entries = self._memory.book.could_go(limit)
        if not entries:
            return ""
        lines = "\n".join(f"- {one.id} {' '.join(one.text.split())[:80]}" for one in entries)
        file = self._memory.scope.lasting[0]
        return (
            f"\n{file} has {size:,} characters; over {limit:,} it gets long for every conversation. These could go "
            f"(ask the owner, /memory forget ID):\n{lines}"
        )

    def judged(self, file: str, before: bytes, after: bytes | None) -> bytes | None:
        return judged(self._memory.book, file, before=before, after=after)
