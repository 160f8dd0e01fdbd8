"""Traces of failed model requests: the newest few, compressed, no secret in them."""

from __future__ import annotations

import zlib

import msgspec
from msgspec import Struct, structs

from limpet.store.driver import Store
from limpet.store.sql import Connection
from limpet.types.ports import Clock, Redactor
from limpet.types.trace import ANSWER_KEPT, REQUEST_KEPT, Extract, Trace

MOST = 50
"""Failures that are kept, and `MOST_BYTES` of them at the most; the oldest go first."""
MOST_BYTES = 8 << 20


class Failure(Struct, frozen=True, array_like=True):
    """A kept trace in a list. `at`: UTC ms."""

    number: int
    at: int
    session: str
    provider: str
    model: str
    status: int
    reason: str


class StoredTraces:
    """Implements the `Traces` port. Known secrets are replaced before anything is written."""

    def __init__(self, store: Store, clock: Clock, redactor: Redactor) -> None:
        self._store = store
        self._clock = clock
        self._redact = redactor.redact

    async def keep(self, trace: Trace) -> None:
        trace = self._clean(trace)
        data = zlib.compress(msgspec.json.encode(trace), 6)
        values = (
            *(self._clock.now(), trace.session, trace.provider, trace.model, trace.status),
            *(trace.reason, len(data), data),
        )

        def work(connection: Connection) -> None:
            connection.execute(
                "INSERT INTO traces (at, session, provider, model, status, reason, size, payload)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )
            connection.execute(
                "DELETE FROM traces WHERE id NOT IN (SELECT id FROM (SELECT id, SUM(size) OVER (ORDER BY id DESC)"
                " AS kept FROM traces ORDER BY id DESC LIMIT ?) WHERE kept <= ?)",
                (MOST, MOST_BYTES),
            )

        await self._store.write(work)

    def _clean(self, trace: Trace) -> Trace:
        redact = self._redact
        return structs.replace(
            trace,
            reason=redact(trace.reason),
            url=redact(trace.url),
            headers={name: redact(value) for name, value in trace.headers.items()},
            answer_headers={name: redact(value) for name, value in trace.answer_headers.items()},
            request=self._extract(trace.request, REQUEST_KEPT // 2),
            answer=self._extract(trace.answer, ANSWER_KEPT // 2),
        )

    def _extract(self, extract: Extract, most: int) -> Extract:
        """Redacted first, then cut: what was cut before might hold half of a secret at its edge."""
        head, tail = self._redact(extract.head), self._redact(extract.tail)
        if not extract.omitted:
            return Extract(head)
        return Extract(head[:most], extract.omitted, tail[-most:])


def recent(connection: Connection, *, limit: int = MOST) -> list[Failure]:
    """The newest failures first."""
    rows = connection.execute(
        "SELECT id, at, session, provider, model, status, reason FROM traces ORDER BY id DESC LIMIT ?", (limit,)
    )
    return msgspec.convert(rows.fetchall(), list[Failure])


def load(connection: Connection, number: int) -> Trace | None:
    row = connection.execute("SELECT payload FROM traces WHERE id = ?", (number,)).fetchone()
    if row is None:
        return None
    (data,) = msgspec.convert(row, tuple[bytes])
    return msgspec.json.decode(zlib.decompress(data), type=Trace)


def clear(connection: Connection) -> int:
    """Drop all traces; how many there were."""
    connection.execute("DELETE FROM traces")
    return connection.changes()
