"""Commands that outlast their call: recorded while they run, so that their end is told once, whatever happens to us.

A row without a `number` is a command in the foreground that has to be found should we be killed; with one it is in the
background, known to its conversation (the session key) by that number.
"""

from __future__ import annotations

from msgspec import Struct, convert

from limpet.store import entries, wakes
from limpet.store.driver import Store
from limpet.store.owner import Owner
from limpet.store.sql import Connection
from limpet.types.envelope import Trust
from limpet.types.ports import Clock

SOURCE = "a command in the background"
"""Where wakes come from that tell of the end of one."""
BEATS = "a command of the heartbeat"
"""The same where it was started by one: left to the next beat on the grid, for beats must not beget beats."""
_BEAT = "cron:heartbeat-"
TOLD_AT_ONCE = 10
"""Ends that one note tells of; the others come with the next one."""


class Begun(Struct, frozen=True):
    """A command that was started: in which session, and what tells its processes from others (`sandbox.survivors`).

    `id` is the caller's choice: so it is known however the commit ends.
    """

    id: str
    session: str
    command: str
    pid: int
    birth: str
    mark: str


class ProcessRow(Struct, frozen=True):
    """A record. Times are UTC ms; `ended` is 0 while it runs. `tail` is the end of its output."""

    id: str
    key: str
    number: int
    owner: str
    command: str
    pid: int
    birth: str
    mark: str
    ended: int
    outcome: str
    tail: str


_COLUMNS = "id, key, number, owner, command, pid, birth, mark, ended, outcome, tail"


class StoredProcesses:
    """The records of this process's commands."""

    def __init__(self, store: Store, owner: Owner, clock: Clock) -> None:
        self._store = store
        self._owner = owner
        self._clock = clock

    def key_of(self, session: str) -> str:
        """The session key of a session."""
        return self._store.read(lambda connection: _key_of(connection, session))

    async def begin(self, begun: Begun) -> None:
        """Record a command that runs."""
        now = self._clock.now()
        await self._store.write(lambda connection: _insert(connection, begun, self._owner.name, now=now))

    async def to_background(self, begun: Begun) -> int:
        """It goes on in the background, recorded before or not: its number in the conversation."""
        now = self._clock.now()

        def work(connection: Connection) -> int:
            _insert(connection, begun, self._owner.name, now=now)
            found = connection.execute(
                "UPDATE processes SET number = 1 + (SELECT MAX(number) FROM processes AS other"
                " WHERE other.key = processes.key) WHERE id = ? RETURNING number",
                (begun.id,),
            ).fetchone()
            return convert(found, tuple[int])[0]

        return await self._store.write(work)

    async def end(self, row: str, *, outcome: str, tail: str, wanted: bool = False) -> None:
        """It has ended: its conversation is told with the next message, unless it knows by then; and unless somebody
        `wanted` it to end, the heartbeat is."""
        now = self._clock.now()

        def work(connection: Connection) -> None:
            connection.execute(
                "UPDATE processes SET ended = ?, outcome = ?, tail = ? WHERE id = ?", (now, outcome, tail, row)
            )
            if not wanted:
                _wake(connection, row, now=now)

        await self._store.write(work)

    async def drop(self, row: str) -> None:
        """Its call has told all there is to tell."""
        await self._store.write(lambda connection: connection.execute("DELETE FROM processes WHERE id = ?", (row,)))

    async def told(self, row: str) -> None:
        """Its end was told in the result of a call."""
        now = self._clock.now()
        await self._store.write(lambda connection: _told(connection, row, now=now))

    def find(self, key: str, number: int) -> ProcessRow | None:
        """The newest record of that number in a conversation."""

        def work(connection: Connection) -> ProcessRow | None:
            found = connection.execute(
                f"SELECT {_COLUMNS} FROM processes WHERE key = ? AND number = ? AND number > 0", (key, number)
            ).fetchone()
            return _row(found) if found else None

        return self._store.read(work)

    def left_by_dead(self) -> list[ProcessRow]:
        """What ran when its process died."""

        def work(connection: Connection) -> list[ProcessRow]:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM processes WHERE ended = 0").fetchall()
            return [_row(one) for one in rows]

        dead: dict[str, bool] = {}
        rows = self._store.read(work)
        for row in rows:
            if row.owner not in dead:
                dead[row.owner] = not self._owner.alive(row.owner)
        return [row for row in rows if dead[row.owner]]


def tell(connection: Connection, key: str, *, now: int) -> str:
    """What a conversation has not heard yet of commands that have ended; from now on it has. Empty for nothing."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM processes WHERE key = ? AND number > 0 AND ended AND NOT told ORDER BY ended LIMIT ?",
        (key, TOLD_AT_ONCE),
    ).fetchall()
    found = [_row(one) for one in rows]
    for row in found:
        _told(connection, row.id, now=now)
    return "\n".join(map(_said, found))


def _told(connection: Connection, row: str, *, now: int) -> None:
    connection.execute("UPDATE processes SET told = 1 WHERE id = ?", (row,))
    wakes.withdraw(connection, _event(row), now=now)


def _event(row: str) -> str:
    return f"process:{row}"


def _wake(connection: Connection, row: str, *, now: int) -> None:
    """The heartbeat of its agent is to look at the end of a command in the background, unless its conversation hears of
    it first."""
    found = connection.execute(
        "SELECT processes.key, processes.number, command, outcome, processes.session, sessions.agent FROM processes"
        " JOIN sessions ON sessions.id = processes.session WHERE processes.id = ? AND processes.number > 0",
        (row,),
    ).fetchone()
    if found is None:
        return
    key, number, command, outcome, session, agent = convert(found, tuple[str, int, str, str, str, str])
    tainted = "external" in entries.trusts(connection, session)
    text = f"p{number} ({command}) of the conversation {key} {outcome}"
    trust: Trust = "external" if tainted else "owner"
    source = BEATS if key.startswith(_BEAT) else SOURCE
    wakes.add(connection, _event(row), agent=agent, source=source, text=text, trust=trust, soon=False, now=now)


def _said(row: ProcessRow) -> str:
    last = f" Its last lines:\n{row.tail}" if row.tail else ""
    return f"[The background command p{row.number} ({row.command}) {row.outcome}.{last}]"


def _insert(connection: Connection, begun: Begun, owner: str, *, now: int) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO processes (id, key, session, owner, command, pid, birth, mark, started)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            begun.id, _key_of(connection, begun.session), begun.session, owner, begun.command, begun.pid, begun.birth,
            begun.mark, now,
        ),
    )  # fmt: skip


def _key_of(connection: Connection, session: str) -> str:
    found = connection.execute("SELECT key FROM sessions WHERE id = ?", (session,)).fetchone()
    return convert(found, tuple[str])[0] if found else session


def _row(values: object) -> ProcessRow:
    return ProcessRow(*convert(values, tuple[str, str, int, str, str, int, str, str, int, str, str]))
