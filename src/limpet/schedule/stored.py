"""The jobs of one agent, for its conversations. Implements the port `Schedules`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from limpet.assistant.addresses import named
from limpet.config.schema import Settings
from limpet.errors import InputError, ToolError
from limpet.store import inbox, jobs, sessions, turns
from limpet.store.driver import Store
from limpet.store.sql import Connection
from limpet.types.envelope import InboxRow, lowest
from limpet.types.job import JobAct, JobChange, JobRow, JobWish
from limpet.types.ports import Clock

if TYPE_CHECKING:
    from limpet.schedule.desk import Maker

NO_JOBS = "A run of a job makes no jobs and changes none."


class StoredSchedules:
    """The jobs of `agent` in `store`, in the user's time zone."""

    def __init__(self, store: Store, clock: Clock, settings: Settings, *, agent: str) -> None:
        self._store = store
        self._clock = clock
        self._agent = agent
        self._zone = settings.user.timezone
        self._targets = tuple(settings.webhooks.targets)

    def add(self, wish: JobWish, *, session: str = "", order: InboxRow | None = None) -> tuple[JobChange, str]:
        from limpet.schedule import desk  # 3 ms that most turns do not need

        now = self._clock.now()

        def made(connection: Connection) -> JobChange:
            return self._made(connection, wish, self._maker(connection, session, order), now=now)

        change = self._store.read(made)
        assert change.job is not None
        return change, desk.confirmation(change.job, now=now)

    def act(self, act: JobAct, name: str, *, session: str = "", order: InboxRow | None = None) -> tuple[JobChange, str]:
        from limpet.schedule import desk  # 3 ms that most turns do not need

        now = self._clock.now()
        maker = self._store.read(lambda connection: self._maker(connection, session, order))
        row = self._store.read(lambda connection: self._one(connection, name, maker))
        change = structs.replace(desk.change(row, act, now=now), by=maker.name)
        if act == "resume":
            return change, desk.confirmation(row.job, now=now)
        done = {"remove": "is removed", "pause": "is paused", "run": "runs now"}[act]
        return change, f"The job {row.job.name} {done}."

    def listed(self, *, session: str = "") -> str:
        from limpet.schedule import desk  # 3 ms that most turns do not need

        def look(connection: Connection) -> str:
            return desk.listing(self._reach(connection, self._maker(connection, session)))

        return self._store.read(look)

    def _made(self, connection: Connection, wish: JobWish, maker: Maker, *, now: int) -> JobChange:
        from limpet.schedule import desk

        made = desk.Wish(
            text=wish.text,
            timing=desk.Timing.of(wish.when, wish.zone),
            name=wish.name,
            says=wish.says,
            address=named(connection, wish.to, targets=self._targets) if wish.to else None,
            where="main" if wish.main else "isolated",
            model=wish.model,
            grants=wish.grants,
        )
        return desk.make(connection, made, maker, now=now)

    def _maker(self, connection: Connection, session: str, order: InboxRow | None = None) -> Maker:
        """Who speaks in the running turn of a session: with others in it, it is theirs. Or who has given a command."""
        from limpet.schedule.desk import Maker
        from limpet.schedule.zones import users_zone

        zone = users_zone(self._zone)
        row = sessions.find(connection, session) if session else None
        turn = turns.live(connection, session) if row is not None else None
        events = [order] if order is not None else inbox.of_turn(connection, turn.id) if turn is not None else []
        said = [one.inbound for one in events]
        if not said:
            return Maker(self._agent, zone)
        if any(one.mandate is not None for one in said):
            raise ToolError(NO_JOBS)
        trust = lowest(one.trust for one in said)
        by = next(one for one in reversed(said) if one.trust == trust)
        return Maker(
            self._agent,
            zone,
            key=events[0].key,
            channel=by.address.channel,
            sender=by.sender,
            trust=trust,
            address=by.address,
        )

    def _reach(self, connection: Connection, maker: Maker) -> list[JobRow]:
        """All jobs for the owner; others see and change their own."""
        rows = jobs.listed(connection, agent=self._agent, over=False)
        if maker.trust == "owner":
            return rows
        return [
            one for one in rows if (one.job.mandate.channel, one.job.mandate.sender) == (maker.channel, maker.sender)
        ]

    def _one(self, connection: Connection, name: str, maker: Maker) -> JobRow:
        from limpet.schedule import desk

        row = desk.the_one(connection, name, agent=self._agent)
        if row.job.id not in {one.job.id for one in self._reach(connection, maker)} and row.state != "over":
            raise InputError(f"There is no job {name!r} of yours.")
        return row
