"""What services have taught, kept by (provider, address, model): fields they refuse, the window they truly have."""

from __future__ import annotations

from msgspec import Struct, convert

from limpet.store.driver import Store
from limpet.store.sql import Connection
from limpet.types.ports import Clock, Known, Redactor
from limpet.types.profile import Profile


class Lesson(Struct, frozen=True, array_like=True):
    """One fact: `refused` is the field left out from now on (or empty), `window` tokens (or 0). `at`: UTC ms."""

    provider: str
    base_url: str
    model: str
    refused: str
    window: int
    reason: str
    at: int


class StoredLessons:
    """Implements the `Lessons` port. Known secrets are replaced in the reasons: services quote what they were sent."""

    def __init__(self, store: Store, clock: Clock, redactor: Redactor) -> None:
        self._store = store
        self._clock = clock
        self._redact = redactor.redact

    def known(self, profile: Profile) -> Known:
        def work(connection: Connection) -> list[tuple[str, int]]:
            rows = connection.execute(
                "SELECT refused, window FROM learned WHERE provider = ? AND base_url = ? AND model = ? ORDER BY at",
                (profile.provider, profile.base_url, profile.model),
            )
            return convert(rows.fetchall(), list[tuple[str, int]])

        rows = self._store.read(work)
        return Known(tuple(name for name, _ in rows if name), min((window for _, window in rows if window), default=0))

    async def refuses(self, profile: Profile, field: str, *, reason: str) -> None:
        await self._learn(profile, refused=field, window=0, reason=reason)

    async def has_window(self, profile: Profile, tokens: int, *, reason: str) -> None:
        await self._learn(profile, refused="", window=tokens, reason=reason)

    async def _learn(self, profile: Profile, *, refused: str, window: int, reason: str) -> None:
        values = (
            *(profile.provider, profile.base_url, profile.model),
            *(refused, window, self._redact(reason)[:500], self._clock.now()),
        )

        def work(connection: Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO learned VALUES (?, ?, ?, ?, ?, ?, ?)", values)

        await self._store.write(work)


def lessons(connection: Connection) -> list[Lesson]:
    """All facts, by model."""
    rows = connection.execute(
        "SELECT provider, base_url, model, refused, window, reason, at FROM learned ORDER BY provider, model, at"
    )
    return convert(rows.fetchall(), list[Lesson])


def forget(connection: Connection, provider: str, model: str) -> int:
    """Drop all facts of a model, at every address; how many there were. The next request finds out anew."""
    connection.execute("DELETE FROM learned WHERE provider = ? AND model = ?", (provider, model))
    return connection.changes()
