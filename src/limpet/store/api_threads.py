"""Threads of the API: under which names a program goes on with what it began. All times are UTC milliseconds."""

from __future__ import annotations

from msgspec import Struct, convert

from limpet.store.sql import Connection

LASTS = 400 * 86_400_000
"""How long a name holds after it was noted last."""


class Thread(Struct, frozen=True, array_like=True):
    """`session` is the conversation that `name` leads to; `payload` what was said, where no conversation has it."""

    session: str
    payload: bytes


def note(
    connection: Connection,
    token: str,
    name: str,
    *,
    session: str = "",
    payload: bytes = b"",
    lasts: int = LASTS,
    now: int,
) -> None:
    """From now on `name` of the token `token` leads there. Names that are over are forgotten with it."""
    connection.execute("DELETE FROM api_threads WHERE expires <= ?", (now,))
    connection.execute(
        "INSERT INTO api_threads (token, name, session, payload, expires) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (token, name) DO UPDATE SET session = excluded.session, payload = excluded.payload,"
        " expires = excluded.expires",
        (token, name, session, payload, now + lasts),
    )


def find(connection: Connection, token: str, name: str, *, now: int) -> Thread | None:
    row = connection.execute(
        "SELECT session, payload FROM api_threads WHERE token = ? AND name = ? AND expires > ?", (token, name, now)
    ).fetchone()
    return None if row is None else convert(row, Thread)
