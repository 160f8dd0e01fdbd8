"""Forgetting for good what erased turns have kept of the workspace."""

# apsw's stubs name a type that Python 3.11 has not:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import apsw
from msgspec import convert

from limpet.errors import StoreError
from limpet.undo.copies import Copies, needed


async def forget(copies: Copies, turns: Sequence[str]) -> int:
    """Forget what these turns, and rollbacks of them, have kept, but for what a workspace holds now or another turn
    needs: they cannot be taken back any more. How many had kept something. Raises `StoreError`.
    """
    if not turns or not copies.exist:
        return 0
    try:
        return await asyncio.to_thread(_forget, copies, turns)
    except apsw.Error as error:
        raise StoreError(f"{copies.path} cannot be changed: {error}.", hint="Delete that file.") from None


def _forget(copies: Copies, turns: Sequence[str]) -> int:
    with copies.writing() as connection:
        connection.execute("PRAGMA secure_delete = ON").fetchall()
        before = connection.total_changes()
        pairs = [(turn, turn) for turn in turns]
        connection.executemany("DELETE FROM points WHERE turn = ? OR undoes = ?", pairs)
        count = connection.total_changes() - before
        if count:
            keep = needed(copies, connection)
            kept = [convert(row, tuple[bytes])[0] for row in connection.execute("SELECT hash FROM copies")]
            connection.executemany("DELETE FROM copies WHERE hash = ?", [(one,) for one in kept if one not in keep])
            connection.execute("PRAGMA incremental_vacuum").fetchall()
    copies.close()  # the last one that closes it empties the write-ahead log
    return count
