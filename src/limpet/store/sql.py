"""The little of a database connection that the named functions of this unit use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

Value = str | bytes | int | float | None


class Rows(Protocol):
    def __iter__(self) -> Iterator[tuple[Value, ...]]: ...
    def fetchone(self) -> tuple[Value, ...] | None: ...
    def fetchall(self) -> list[tuple[Value, ...]]: ...


class Connection(Protocol):
    """What a function handed to `Store.write` or `Store.read` works with."""

    def execute(self, statements: str, bindings: Sequence[Value] | None = None, /) -> Rows: ...

    def changes(self) -> int:
        """Rows changed by the newest statement."""
        ...
