"""Whose memory: the owner's, or that of another person or group who talks to a shared agent (DESIGN 13)."""

from __future__ import annotations

from msgspec import Struct

from limpet.types.tool import Veil

LASTING = ("MEMORY.md", "memory/MEMORY.md", "memory.md")
OTHERS = ("memory/people", "memory/groups")
_OWNERS = ("MEMORY.md", "memory.md", "USER.md", "memory", ".limpet/trash")


def is_pending(path: str) -> bool:
    """Whether what stands in the file waits for the owner's word."""
    folders = path.split("/")
    own = 3 if len(folders) > 3 and "/".join(folders[:2]) in OTHERS else 1
    return folders[own : own + 1] == ["pending"] and folders[0] == "memory"


class MemoryScope(Struct, frozen=True):
    """`name` is empty for the owner, else `people/ID` or `groups/ID`. Paths are below the workspace."""

    name: str = ""

    @property
    def folder(self) -> str:
        return f"memory/{self.name}" if self.name else "memory"

    @property
    def pending(self) -> str:
        """The folder for what strangers had a part in: in no prompt until the owner confirms it (DESIGN 9)."""
        return f"{self.folder}/pending"

    @property
    def lasting(self) -> tuple[str, ...]:
        """The files for what lasts; the first is written, all are read."""
        return (f"{self.folder}/MEMORY.md",) if self.name else LASTING

    @property
    def history(self) -> str:
        return f"{self.folder}/HISTORY.md"

    @property
    def veil(self) -> Veil:
        """What file tools and commands of its conversations must not see."""
        return Veil(hidden=_OWNERS, shown=(self.folder,)) if self.name else Veil(hidden=OTHERS)


OWNERS = MemoryScope()
