"""Peers: who may speak over which channel, and the codes with which others ask to. All times are UTC milliseconds."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import Literal

from msgspec import Struct, convert

from limpet.store import audit
from limpet.store.sql import Connection
from limpet.types.envelope import Address

Role = Literal["owner", "peer"]
ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Of pairing codes: nothing that is read as something else (FEATURES I5: no 0, O, 1, I)."""
CODE_LENGTH = 8
CODE_LASTS = 3_600_000
CONFIGURED = "the settings"
"""Who has approved an owner whom the settings name."""
MOST_CODES = 3
"""Open codes of one account: further strangers are not answered."""


class Peer(Struct, frozen=True, array_like=True):
    """`id` is the platform's stable one. `chat` is the last chat of theirs with the agent alone."""

    channel: str
    account: str
    id: str
    role: Role
    name: str
    approved: int
    by: str
    chat: str
    seen: int


class PairingCode(Struct, frozen=True, array_like=True):
    code: str
    channel: str
    account: str
    peer: str
    name: str
    chat: str
    created: int
    expires: int


_PEER = "channel, account, id, role, name, approved, by, chat, seen"
_CODE = "code, channel, account, peer, name, chat, created, expires"


def find(connection: Connection, address: Address, peer: str) -> Peer | None:
    """Who `peer` is on this channel and account; None: a stranger."""
    row = connection.execute(
        f"SELECT {_PEER} FROM peers WHERE channel = ? AND account = ? AND id = ?",
        (address.channel, address.account, peer),
    ).fetchone()
    return None if row is None else convert(row, Peer)


def listed(connection: Connection) -> list[Peer]:
    return [convert(row, Peer) for row in connection.execute(f"SELECT {_PEER} FROM peers ORDER BY approved")]


def owners(connection: Connection) -> list[Peer]:
    """The owner's accounts, the one that spoke last first."""
    rows = connection.execute(f"SELECT {_PEER} FROM peers WHERE role = 'owner' ORDER BY seen DESC, approved DESC")
    return [convert(row, Peer) for row in rows]


def owner_home(connection: Connection) -> Address | None:
    """The chat in which the owner spoke last with an agent alone."""
    found = next((peer for peer in owners(connection) if peer.chat), None)
    return None if found is None else Address(channel=found.channel, account=found.account, chat=found.chat)


def put(connection: Connection, peer: Peer) -> None:
    """Let somebody speak, or change who they are."""
    connection.execute(
        f"INSERT INTO peers ({_PEER}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT"
        " DO UPDATE SET role = excluded.role, name = excluded.name, by = excluded.by, chat = max(excluded.chat, chat)",
        (
            peer.channel, peer.account, peer.id, peer.role, peer.name, peer.approved, peer.by, peer.chat, peer.seen,
        ),
    )  # fmt: skip
    audit.append(
        connection, "peer.approved", f"{peer.channel}:{peer.account}:{peer.id}", detail=peer.role, now=peer.approved
    )


def spoke(connection: Connection, address: Address, peer: str, *, now: int) -> None:
    """Somebody who may speak has done so, in a chat with the agent alone."""
    connection.execute(
        "UPDATE peers SET chat = ?, seen = ? WHERE channel = ? AND account = ? AND id = ?",
        (address.chat, now, address.channel, address.account, peer),
    )


def note_configured(connection: Connection, peer: Peer) -> None:
    """Remember where an owner speaks whom the settings name; they alone say who that is."""
    connection.execute(
        f"INSERT INTO peers ({_PEER}) VALUES (?, ?, ?, 'owner', ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (peer.channel, peer.account, peer.id, peer.name, peer.approved, CONFIGURED, peer.chat, peer.seen),
    )


def keep_configured(connection: Connection, known: Collection[tuple[str, str, str]]) -> None:
    """Forget the owners whom the settings name no more. `known` are (channel, account, id)."""
    for peer in owners(connection):
        if peer.by == CONFIGURED and (peer.channel, peer.account, peer.id) not in known:
            connection.execute(
                "DELETE FROM peers WHERE channel = ? AND account = ? AND id = ?", (peer.channel, peer.account, peer.id)
            )


def revoke(connection: Connection, peer: Peer, *, now: int) -> None:
    connection.execute(
        "DELETE FROM peers WHERE channel = ? AND account = ? AND id = ?", (peer.channel, peer.account, peer.id)
    )
    audit.append(connection, "peer.revoked", f"{peer.channel}:{peer.account}:{peer.id}", now=now)


def ask(connection: Connection, address: Address, peer: str, *, name: str, now: int) -> str:
    """A code for a stranger who has none open; empty when he has, or too many others do."""
    connection.execute("DELETE FROM pairing_codes WHERE expires <= ?", (now,))
    where = (address.channel, address.account)
    if not may_ask(connection, address, peer, now=now):
        return ""
    code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))
    connection.execute(
        f"INSERT INTO pairing_codes ({_CODE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (code, *where, peer, name, address.chat, now, now + CODE_LASTS),
    )
    return code


def may_ask(connection: Connection, address: Address, peer: str, *, now: int) -> bool:
    """Whether a stranger gets a code."""
    waiting = [
        one for one in codes(connection, now=now) if (one.channel, one.account) == (address.channel, address.account)
    ]
    return len(waiting) < MOST_CODES and not any(one.peer == peer for one in waiting)


def codes(connection: Connection, *, now: int) -> list[PairingCode]:
    """Those that are open, oldest first."""
    rows = connection.execute(f"SELECT {_CODE} FROM pairing_codes WHERE expires > ? ORDER BY created", (now,))
    return [convert(row, PairingCode) for row in rows]


def approve(connection: Connection, code: str, *, role: Role | None, by: str, now: int) -> Peer | None:
    """Let the one who was given `code` speak; None when there is no such open code.

    Without a `role` the first one ever is the owner.
    """
    found = next((one for one in codes(connection, now=now) if one.code == code.strip().upper()), None)
    if found is None:
        return None
    made = Peer(
        channel=found.channel,
        account=found.account,
        id=found.peer,
        role=role or ("peer" if owners(connection) else "owner"),
        name=found.name,
        approved=now,
        by=by,
        chat=found.chat,
        seen=0,
    )
    put(connection, made)
    connection.execute("DELETE FROM pairing_codes WHERE code = ?", (found.code,))
    return made


def dismiss(connection: Connection, code: str) -> bool:
    """Forget an open code; whether there was one."""
    connection.execute("DELETE FROM pairing_codes WHERE code = ?", (code.strip().upper(),))
    return connection.changes() > 0
