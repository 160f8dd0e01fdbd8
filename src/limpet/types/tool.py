"""Tools: how one is described, what it does to the world, what it gives back."""

from __future__ import annotations

from typing import Literal

from msgspec import Raw, Struct

from limpet.types.content import ResultBlock, Text
from limpet.types.veil import hides

Effect = Literal["pure", "idempotent", "row", "file", "unsafe"]
"""What happens to a call that was interrupted (DESIGN 4): `pure` may run again, `idempotent` runs again with the
same key, `row` commits its effect together with its result, `file` is compared by hash, `unsafe` is never repeated."""


class Veil(Struct, frozen=True):
    """Paths below the workspace that a conversation must not see, but for those `shown` beneath them."""

    hidden: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()

    def hides(self, relative: str) -> bool:
        """Whether the longest one that a path lies in is hidden."""
        return hides(relative, hidden=self.hidden, shown=self.shown)


NO_VEIL = Veil()


class ToolSpec(Struct, frozen=True):
    """What a model is told of a tool. `parameters` is a JSON Schema of type object, as compact JSON."""

    name: str
    description: str
    parameters: Raw


class FileIntent(Struct, frozen=True, omit_defaults=True):
    """A file about to be changed. Hashes are SHA-256 (hex) of the whole file, empty when it does not exist.

    `path` is absolute. Recovery compares: content equals `after` = done, `before` = run again, else unknown.
    `more` are the other files of a call that changes several, in the order in which they are changed.
    """

    path: str
    before: str
    after: str
    more: tuple[FileIntent, ...] = ()

    @property
    def each(self) -> tuple[FileIntent, ...]:
        """This file and the others."""
        return (self, *self.more)


class Details(Struct, frozen=True, omit_defaults=True):
    """What people (not the model) are shown of a result, and what the log needs of it.

    `path` and `sha256`: the file read or written and its content then; `files`: the others that a call has written,
    each with its hash. `spill`: blob that holds the whole
    output when it was cut. `omitted`: characters left out. Durations are milliseconds.
    """

    summary: str = ""
    path: str = ""
    sha256: str = ""
    diff: str = ""
    exit_code: int | None = None
    spill: str = ""
    omitted: int = 0
    duration: int = 0
    files: tuple[tuple[str, str], ...] = ()


class ToolResult(Struct, frozen=True, omit_defaults=True):
    """What a tool gives back: `content` for the model, `details` for people.

    `trust` is that of the content: `external` for what strangers wrote.
    """

    content: tuple[ResultBlock, ...]
    details: Details = Details()
    is_error: bool = False
    ends_turn: bool = False
    trust: Literal["tool", "external"] = "tool"

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.content if isinstance(block, Text))


def text_result(text: str, *, details: Details = Details(), is_error: bool = False) -> ToolResult:  # noqa: B008 (frozen)
    """A result of one text block."""
    return ToolResult(content=(Text(text),), details=details, is_error=is_error)
