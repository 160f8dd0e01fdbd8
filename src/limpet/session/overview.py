"""A conversation in a list: what it is about, what it cost, whether it goes on."""

from __future__ import annotations

from msgspec import Struct

from limpet.session.branch import first_words
from limpet.store import entries, turns, usage
from limpet.store.sessions import SessionRow
from limpet.store.sql import Connection


class Overview(Struct, frozen=True):
    """One conversation in the list. Times are UTC ms, `cost` micro-dollars where it is known."""

    id: str
    key: str
    agent: str
    title: str
    model: str
    parent: str
    turns: int
    cost: int | None
    created: int
    updated: int
    ended: int | None
    end_reason: str
    summary: str

    @classmethod
    def of(cls, connection: Connection, row: SessionRow) -> Overview:
        first = entries.first(connection, row.id, "user")
        return cls(
            id=row.id,
            key=row.key,
            agent=row.agent,
            title=row.title or (first_words(first) if first else ""),
            model=row.model,
            parent=row.parent,
            turns=turns.count(connection, row.id),
            cost=usage.of_session(connection, row.id).cost,
            created=row.created,
            updated=row.updated,
            ended=row.ended,
            end_reason=row.end_reason,
            summary=row.summary,
        )
