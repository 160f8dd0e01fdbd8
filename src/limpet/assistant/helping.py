"""Helping: the helpers of one conversation are worked on by the process that has it open, where no gateway does."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from limpet.assistant.conversation import LOOK_AGAIN, Conversation
from limpet.assistant.services import Services
from limpet.assistant.subagents import stop
from limpet.errors import LimpetError
from limpet.store import inbox, sessions, subagents, turns
from limpet.store.sql import Connection
from limpet.store.subagents import Helper
from limpet.types.event import Event, Notice, TurnEnded
from limpet.types.ports import Emit

PATIENCE = 60.0
"""Seconds until a look that nothing has asked for: whatever is new is a commit, which nudges."""


class Helping:
    """Works on the helpers under `key` while `run` runs. Any number of processes may: leases decide."""

    def __init__(self, services: Services, key: str) -> None:
        self._services = services
        self._key = key
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._given_up: set[str] = set()

    @property
    def open(self) -> list[Helper]:
        """Those that are not over, without those that cannot be worked on here."""
        found = self._services.store.read(lambda connection: subagents.open_under(connection, self._key))
        return [one for one in found if one.key not in self._given_up]

    @property
    def results(self) -> list[int]:
        """The events by which the conversation is to hear of those that are over."""
        rows = self._services.store.read(lambda connection: inbox.queued(connection, self._key))
        return [row.id for row in rows if subagents.is_about(row)]

    async def run(self) -> None:
        """Until cancelled; what is not done then is left to the next process."""
        try:
            while True:
                for one in self.open:
                    if one.state == "working" and one.key not in self._tasks:
                        self._tasks[one.key] = asyncio.create_task(self._work(one))
                await self._services.nudges.wait(PATIENCE)
        finally:
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def news(self) -> bool:
        """Wait until a helper's result is there to be heard; False when none will come."""
        while not self.results:
            if not self.open:
                return bool(self.results)
            await self._services.nudges.wait(LOOK_AGAIN)
        return True

    async def stop(self) -> None:
        """Stop all of them."""
        await stop(self._services, self.open)

    async def _work(self, helper: Helper) -> None:
        services, key = replace(self._services, emit=self._quietly(helper)), helper.key
        conversation = Conversation(services, key)
        try:
            while services.store.read(lambda connection: _is_open(connection, key)):
                if not await conversation.work_once():
                    await services.nudges.wait(LOOK_AGAIN)
        except LimpetError as error:
            self._given_up.add(key)
            self._services.emit(Notice(f"[The helper {helper.id} waits: {error.present()}]", level="warning"))
        except asyncio.CancelledError:
            await park(services, key)
            raise
        finally:
            del self._tasks[key]
            services.nudges.wake()

    def _quietly(self, helper: Helper) -> Emit:
        """What a person hears of a helper while it works: that it has ended."""

        def emit(event: Event) -> None:
            if isinstance(event, TurnEnded):
                self._services.emit(Notice(f"[The helper {helper.id} ({helper.title}): {event.state}]"))

        return emit


def _is_open(connection: Connection, key: str) -> bool:
    found = subagents.of_key(connection, key)
    return found is not None and found.ended is None


async def park(services: Services, key: str) -> None:
    """The process ends in good order: whoever goes on with the turn under `key` does not count this as a crash."""

    def work(connection: Connection) -> None:
        live = sessions.live(connection, key)
        turn = turns.live(connection, live.id) if live else None
        if live is not None and turn is not None and live.owner == services.owner.name:
            turns.park(connection, turn.id)

    await services.store.write(work)
