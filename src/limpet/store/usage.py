"""Usage: one row per model request, reserved before it and settled with its outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct, convert

from limpet.store import turns
from limpet.store.budgets import NO_BUDGETS, Budgets, Gauge
from limpet.store.driver import Store
from limpet.store.owner import Owner
from limpet.store.sql import Connection
from limpet.types.ids import new_id
from limpet.types.message import Request
from limpet.types.ports import Clock
from limpet.types.profile import Profile
from limpet.types.usage import NO_USAGE, Usage


class Reservation(Struct, frozen=True):
    """A request about to be made. `reserved` is what it may cost at the most, in micro-dollars.

    `expected` is the estimate that stands in its row until it is settled, and for good when it is killed.
    """

    id: str
    session: str
    turn: str
    provider: str
    model: str
    reserved: int = 0
    expected: Usage = NO_USAGE


class UsageMeter:
    """Implements the `Meter` port: each reservation belongs to the turn that runs in the request's session.

    `day_start` gives the beginning of the owner's day that holds a moment (both UTC ms).
    """

    def __init__(
        self,
        store: Store,
        owner: Owner,
        clock: Clock,
        *,
        budgets: Budgets = NO_BUDGETS,
        day_start: Callable[[int], int] = lambda now: now - now % 86_400_000,
    ) -> None:
        self._store = store
        self._owner = owner
        self._clock = clock
        self._gauge = Gauge(budgets)
        self._day_start = day_start

    async def reserve(
        self, request: Request, profile: Profile, *, at_most: int, expected: Usage = NO_USAGE
    ) -> tuple[str, str]:
        name, now = new_id("q"), self._clock.now()
        warnings: list[str] = []

        def work(connection: Connection) -> None:
            if at_most or (profile.price is None and not profile.local):
                found = self._gauge.check(connection, request.session, at_most=at_most, today=self._day_start(now))
                warnings.extend(found)
            turn = turns.live(connection, request.session)
            reservation = Reservation(
                id=name,
                session=request.session,
                turn=turn.id if turn else "",
                provider=profile.provider,
                model=profile.model,
                reserved=at_most,
                expected=expected,
            )
            reserve(connection, reservation, owner=self._owner, now=now)

        await self._store.write(work)
        return name, " ".join(warnings)

    async def settle(
        self, reservation: str, usage: Usage, *, state: Literal["done", "failed"], estimated: bool = False
    ) -> None:
        await self._store.write(
            lambda connection: settle(connection, reservation, usage, state=state, estimated=estimated)
        )


def reserve(connection: Connection, reservation: Reservation, *, owner: Owner, now: int) -> None:
    """Insert an open row: a request that is killed is counted too."""
    expected = reservation.expected
    connection.execute(
        "INSERT INTO usage"
        " (id, session, turn, process, provider, model, state, at, reserved, input, output, cost, estimated)"
        " VALUES (?, ?, ?, ?, ?, ?, 'open', ?, ?, ?, ?, ?, ?)",
        (
            reservation.id, reservation.session, reservation.turn, owner.name,
            reservation.provider, reservation.model, now, reservation.reserved,
            expected.input, expected.output, expected.cost, bool(expected.total),
        ),
    )  # fmt: skip


def settle(
    connection: Connection,
    reservation: str,
    usage: Usage,
    *,
    state: Literal["done", "failed"],
    estimated: bool = False,
) -> None:
    """Close a reservation with what was used."""
    connection.execute(
        "UPDATE usage SET state = ?, input = ?, output = ?, cache_read = ?, cache_write = ?, reasoning = ?, cost = ?,"
        " estimated = ? WHERE id = ?",
        (
            state, usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning, usage.cost,
            estimated, reservation,
        ),
    )  # fmt: skip


def of_turn(connection: Connection, turn: str) -> Usage:
    """The sum over all requests of a turn."""
    return _sum(connection, "turn", turn)


def of_session(connection: Connection, session: str) -> Usage:
    """The sum over all requests of a session."""
    return _sum(connection, "session", session)


def is_estimated(connection: Connection, session: str) -> bool:
    """Whether a part of what the session used was estimated: requests cut off, stopped or killed."""
    found = connection.execute("SELECT EXISTS (SELECT 1 FROM usage WHERE session = ? AND estimated)", (session,))
    return convert(found.fetchone(), tuple[bool], strict=False)[0]


def _sum(connection: Connection, column: Literal["turn", "session"], value: str) -> Usage:
    row = connection.execute(
        "SELECT COALESCE(SUM(input), 0), COALESCE(SUM(output), 0), COALESCE(SUM(cache_read), 0),"
        f" COALESCE(SUM(cache_write), 0), COALESCE(SUM(reasoning), 0), SUM(cost) FROM usage WHERE {column} = ?",
        (value,),
    ).fetchone()
    a, b, c, d, e, f = convert(row, tuple[int, int, int, int, int, int | None])
    return Usage(input=a, output=b, cache_read=c, cache_write=d, reasoning=e, cost=f)


def orphans(connection: Connection, owner: Owner) -> list[str]:
    """Processes that died with open reservations."""
    rows = connection.execute("SELECT DISTINCT process FROM usage WHERE state = 'open'")
    return [name for (name,) in convert(rows.fetchall(), list[tuple[str]]) if not owner.alive(name)]


def close_orphans(connection: Connection, process: str) -> None:
    """What a dead process had open was spent: of how much, only the estimate made before it is known."""
    connection.execute("UPDATE usage SET state = 'orphaned' WHERE process = ? AND state = 'open'", (process,))
    connection.execute("DELETE FROM groups WHERE process = ?", (process,))
