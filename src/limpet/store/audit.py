"""Audit: what changed who may do what, or took something away for good, as a chain of hashes for each process.

Each row holds the hash of the one before it in its chain; the first of a chain that of the newest row there was. So
nobody can change, move or take out a row unnoticed, save the newest ones: for those, keep the head (`limpet audit
verify` prints it). Rows name things and never hold what was said, a value or a secret.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct, ValidationError, convert

from limpet.store.sql import Connection, Value

Act = Literal[
    "approval.decided",
    "approval.revoked",
    "config.changed",
    "content.removed",
    "job.changed",
    "mcp.changed",
    "memory.forgotten",
    "peer.approved",
    "peer.revoked",
    "plugin.changed",
    "secret.changed",
    "skill.changed",
    "token.created",
    "token.revoked",
    "trust.once",
]
START = ""
"""The hash before the first row of all."""
_COLUMNS = "id, chain, seq, at, act, subject, detail, before, hash"


class Row(Struct, frozen=True, array_like=True):
    """One thing that happened: `act` on `subject`, as row `seq` (from 1) of `chain`. `at` is UTC milliseconds."""

    id: int
    chain: str
    seq: int
    at: int
    act: str
    subject: str
    detail: str
    before: str
    hash: str


def append(connection: Connection, act: Act, subject: str, *, detail: str = "", now: int) -> None:
    """Add a row to the chain of this process, in the transaction of what it tells of."""
    (chain,) = convert(connection.execute("SELECT process FROM temp.writer").fetchone(), tuple[str])
    last = _newest(connection, "WHERE chain = ?", chain)
    seq = last.seq + 1 if last else 1
    before = last or _newest(connection)
    row = Row(0, chain, seq, now, act, subject, detail, before.hash if before else START, "")
    connection.execute(
        "INSERT INTO audit (chain, seq, at, act, subject, detail, before, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (chain, seq, now, act, subject, detail, row.before, _hash(row)),
    )


def config_seen(connection: Connection) -> str:
    """The SHA-256 of the settings when the audit was last told of them as a whole; empty before that."""
    row = _newest(connection, "WHERE act = 'config.changed' AND detail != ''")
    return row.detail if row else ""


def rows(connection: Connection, *, last: int = 0) -> Iterator[Row]:
    """All rows, or the `last` ones, oldest first."""
    inner = f"SELECT {_COLUMNS} FROM audit ORDER BY id DESC LIMIT ?"
    for row in connection.execute(f"SELECT * FROM ({inner}) ORDER BY id", (last or -1,)):
        try:
            yield convert(row, Row)
        except ValidationError:  # somebody has put another kind of value there: its hash tells
            yield _foreign(row)


def faults(connection: Connection) -> list[str]:
    """What is wrong with the chains, in words; empty when nothing is."""
    found: list[str] = []
    known: set[str] = set()
    heads: dict[str, Row] = {}
    for row in rows(connection):
        head = heads.get(row.chain)
        name = f"row {row.id} ({row.act} {row.subject})"
        if _hash(row) != row.hash:
            found.append(f"{name} was changed")
        if row.seq != (head.seq + 1 if head else 1):
            found.append(f"before {name} rows of the same process are missing")
        elif head and row.before != head.hash:
            found.append(f"the row before {name} was changed or replaced")
        elif not head and row.before not in known and (known or row.before != START):
            found.append(f"before {name} rows are missing")
        heads[row.chain] = row
        known.add(row.hash)
    return found


def head(connection: Connection) -> Row | None:
    """The newest row."""
    return _newest(connection)


def _newest(connection: Connection, condition: str = "", *values: str) -> Row | None:
    row = connection.execute(f"SELECT {_COLUMNS} FROM audit {condition} ORDER BY id DESC LIMIT 1", values).fetchone()
    return convert(row, Row) if row else None


def _foreign(values: Sequence[Value]) -> Row:
    number, chain, seq, at, *texts = values
    act, subject, detail, before, digest = map(str, texts)
    return Row(_number(number), str(chain), _number(seq), _number(at), act, subject, detail, before, digest)


def _number(value: Value) -> int:
    return value if isinstance(value, int) else -1


def _hash(row: Row) -> str:
    told = [row.chain, row.seq, row.at, row.act, row.subject, row.detail, row.before]
    return hashlib.sha256(json.dumps(told, ensure_ascii=True).encode()).hexdigest()
