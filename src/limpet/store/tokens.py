"""Tokens of the API: what other programs show. Only their hashes are kept. All times are UTC milliseconds."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, convert

from limpet.store import audit
from limpet.store.sql import Connection

Scope = Literal["chat", "read", "admin"]
"""`chat`: have the agent answer. `read`: see what there is. `admin`: both, as the owner himself."""
SCOPES: tuple[Scope, ...] = ("chat", "read", "admin")
PREFIX = "lpt"
_COLUMNS = "name, id, hash, scopes, agent, created, expires, used"


class Token(Struct, frozen=True):
    """`id` is the part of a token that is no secret. `agent` empty: all of them; `expires` and `used` 0: never."""

    name: str
    id: str
    hash: bytes
    scopes: tuple[Scope, ...]
    agent: str
    created: int
    expires: int
    used: int


class _Stored(Struct, array_like=True):
    name: str
    id: str
    hash: bytes
    scopes: str
    agent: str
    created: int
    expires: int
    used: int


def create(
    connection: Connection, name: str, *, scopes: Sequence[Scope], agent: str = "", expires: int = 0, now: int
) -> str:
    """Make a token, which is given here and never again; empty when the name is taken."""
    if any(one.name == name for one in listed(connection)):
        return ""
    id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    connection.execute(
        f"INSERT INTO api_tokens ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, 0)",
        (name, id, _hash(secret), ",".join(scopes), agent, now, expires),
    )
    audit.append(connection, "token.created", name, detail=",".join(scopes), now=now)
    return f"{PREFIX}_{id}_{secret}"


def listed(connection: Connection) -> list[Token]:
    """All of them by name, also those that have expired."""
    rows = convert(connection.execute(f"SELECT {_COLUMNS} FROM api_tokens ORDER BY name").fetchall(), list[_Stored])
    return list(map(_token, rows))


def find(connection: Connection, shown: str, *, now: int) -> Token | None:
    """The token that somebody shows; None for one that there is not, or not any more."""
    prefix, _, rest = shown.partition("_")
    id, _, secret = rest.partition("_")
    row = connection.execute(f"SELECT {_COLUMNS} FROM api_tokens WHERE id = ?", (id,)).fetchone()
    found = None if row is None else _token(convert(row, _Stored))
    genuine = hmac.compare_digest(_hash(secret), found.hash if found else bytes(32))
    if found is None or not genuine or prefix != PREFIX or 0 < found.expires <= now:
        return None
    return found


def note_use(connection: Connection, token: Token, *, now: int) -> None:
    connection.execute("UPDATE api_tokens SET used = ? WHERE id = ?", (now, token.id))


def revoke(connection: Connection, name: str, *, now: int) -> bool:
    """Make a token worthless; whether there was one."""
    connection.execute("DELETE FROM api_tokens WHERE name = ?", (name,))
    gone = connection.changes() > 0
    if gone:
        audit.append(connection, "token.revoked", name, now=now)
    return gone


def _token(row: _Stored) -> Token:
    scopes = convert(row.scopes.split(","), tuple[Scope, ...])
    return Token(row.name, row.id, row.hash, scopes, row.agent, row.created, row.expires, row.used)


def _hash(secret: str) -> bytes:
    """SHA-256 is enough: the secret is 32 random bytes, not a password that somebody could guess."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
