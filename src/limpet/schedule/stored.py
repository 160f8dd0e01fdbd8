"""The jobs of one agent, for its conversations. Implements the port `Schedules`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limpet.assistant.addresses import named
from limpet.config.schema import Settings
from limpet.errors import InputError, ToolError
from limpet.store import inbox, jobs, sessions, turns
from limpet.store.driver import Store
from limpet.store.sql import Connection
from limpet.types.envelope import lowest
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

    def add(self, wish: JobWish, *, session: str) -> tuple[JobChange, str]:
        from limpet.schedule import desk  # 3 ms that most turns do not need

        now = self._clock.now()
        change = self._store.read(lambda connection: self._made(connection, wish, session, now=now))
        assert change.job is not None
        return change, desk.confirmation(change.job, now=now)

    def act(self, act: JobAct, name: str, *, session: str = "") -> tuple[JobChange, str]:
        from limpet.schedule import desk  # 3 ms that most turns do not need

        now = self._clock.now()
        row = self._store.read(lambda connection: self._one(connection, name, session))
        change = desk.change(row, act, now=now)
        if act == "resume":
            return change, desk.confirmation(row.job, now=now)
        done = {"remove": "is removed", "pause": "is paused", "run": "runs now"}[act]
        return change, f"The job {row.job.name} {done}."

    def listed(self, *, session: str = "") -> str:
        from limpet.schedule import desk  # 3 ms that most turns do not need

        return self._store.read(lambda connection: desk.listing(self._reach(connection, session)))

    def _made(self, connection: Connection, wish: JobWish, session: str, *, now: int) -> JobChange:
        from limpet.schedule import desk

        made = desk.Wish(
            text=wish.text,
            timing=desk.Timing.of(wish.when, wish.zone),
            name=wish.name,
            says=wish.says,
            address=named(connection, wish.to, targets=self._targets) if wish.to else None,
        )
        return desk.make(connection, made, self._maker(connection, session), now=now)

    def _maker(self, connection: Connection, session: str) -> Maker:
        """Who speaks in the running turn of a session: with others in it, it is theirs."""
        from limpet.schedule.desk import Maker
        from limpet.schedule.zones import users_zone

        zone = users_zone(self._zone)
        row = sessions.find(connection, session) if session else None
        turn = turns.live(connection, session) if row is not None else None
        said = [one.inbound for one in inbox.of_turn(connection, turn.id)] if turn is not None else []
        if row is None or not said:
            return Maker(self._agent, zone)
        if any(one.mandate is not None for one in said):
            raise ToolError(NO_JOBS)
        trust = lowest(one.trust for one in said)
        by = next(one for one in reversed(said) if one.trust == trust)
        return Maker(
            self._agent,
            zone,
            key=row.key,
            channel=by.address.channel,
            sender=by.sender,
            trust=trust,
            address=by.address,
        )

    def _reach(self, connection: Connection, session: str) -> list[JobRow]:
        """All jobs for the owner; others see and change their own."""
        maker = self._maker(connection, session)
        rows = jobs.listed(connection, agent=self._agent, over=False)
        if maker.trust == "owner":
            return rows
        return [
            one for one in rows if (one.job.mandate.channel, one.job.mandate.sender) == (maker.channel, maker.sender)
        ]

    def _one(self, connection: Connection, name: str, session: str) -> JobRow:
        from limpet.schedule import desk

        row = desk.the_one(connection, name, agent=self._agent)
        if row.job.id not in {one.job.id for one in self._reach(connection, session)} and row.state != "over":
            raise InputError(f"There is no job {name!r} of yours.")
        return row
