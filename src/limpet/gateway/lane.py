"""Lanes: one turn at a time under each session key, so many at once in all. People come before what runs by itself.

A lane is a task that lives while there is something to do under its key. What there is stands in the database, so a
lane can end at any moment, and any process may go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from limpet.assistant import asking
from limpet.assistant.conversation import Conversation
from limpet.assistant.helping import park
from limpet.assistant.services import Services
from limpet.assistant.tidying import tidy
from limpet.errors import LimpetError, StoreError
from limpet.gateway.ground import Ground
from limpet.gateway.home import Notices
from limpet.gateway.live import Lives
from limpet.gateway.watch import within
from limpet.session import keys
from limpet.store import approvals, inbox, sessions, turns
from limpet.store.sql import Connection
from limpet.store.turns import LiveTurn

log = logging.getLogger(__name__)

KEPT = 64
"""Idle conversations whose log stays in memory."""
RESTS = (5.0, 30.0, 120.0, 600.0)
"""Seconds a lane rests after each failure that is not its turn's own (no model, disk full)."""
KEPT_WAITING = "Your message is kept; I try again later."
STUCK = "What waits under {key} cannot begin: {reason}\nIt is kept; I try again later."
HELD = 1.0
"""Seconds until a lane looks again at what another process is doing."""
BACKGROUND = ("cron", "hook", "subagent")
RESERVED = 2
"""Turns at once that only people's conversations may have."""
TIDY_EVERY = 60.0
TERMINAL = "cli"


@dataclass(slots=True)
class Lane:
    """The work under one key. `poked`: look once more before it ends; `rests` counts failures, until `rested`;
    `alarm` ends the rest.
    """

    key: str
    task: asyncio.Task[None] | None = None
    alarm: asyncio.Task[None] | None = None
    poked: bool = False
    rests: int = 0
    rested: float = 0.0


class Lanes:
    """All lanes of this process. `most` gives how many turns may run at once."""

    def __init__(self, ground: Ground, lives: Lives, notices: Notices, *, most: Callable[[], int]) -> None:
        self._ground = ground
        self._lives = lives
        self._notices = notices
        self._most = most
        self._lanes: dict[str, Lane] = {}
        self._idle: OrderedDict[str, Conversation] = OrderedDict()
        self._slots = _Slots(most)
        self._untidy: set[str] = set()
        self._closing = False

    @property
    def running(self) -> tuple[str, ...]:
        """The keys whose lanes work or wait for their turn."""
        return tuple(key for key, lane in self._lanes.items() if lane.task is not None)

    @property
    def known(self) -> int:
        """How many lanes there are, those included that rest."""
        return len(self._lanes)

    def take_untidy(self) -> set[str]:
        """The keys that were worked on since this was asked last."""
        found, self._untidy = self._untidy, set()
        return found

    def poke(self, key: str, *, after: float = 0.0) -> None:
        """There is something to do under `key`, or will be `after` seconds: parts of one message may follow."""
        if self._closing:
            return
        lane = self._lanes.setdefault(key, Lane(key))
        lane.poked = True
        lane.rested = 0.0
        if lane.task is None:
            lane.task = self._ground.tasks.start(self._run(lane, after), f"lane {key}")

    def sweep(self) -> None:
        """Find all there is to do: messages that wait, turns of dead processes, turns whose owner has decided."""
        for key in self._ground.store.read(self._stirring):
            lane = self._lanes.get(key)
            if lane is None or lane.task is not None or lane.rested <= self._ground.clock.monotonic():
                self.poke(key)

    def _stirring(self, connection: Connection) -> list[str]:
        found = dict.fromkeys(key for key in inbox.keys_waiting(connection) if self._is_ours(connection, key))
        for turn in turns.all_live(connection):
            if self._can_go_on(connection, turn):
                found[turn.key] = None
            elif turn.state == "waiting":
                found.pop(turn.key, None)
        return list(found)

    def _can_go_on(self, connection: Connection, turn: LiveTurn) -> bool:
        """Whether a turn waits for nobody any more, or nobody runs it."""
        owner, now = self._ground.owner, self._ground.clock.now()
        if turn.state == "waiting":
            return bool(turn.stop_requested) or approvals.is_ready(connection, turn.id, now=now)
        if turn.owner == owner.name:  # ours, and yet nobody works on it: the disk was full, say
            return turn.session not in owner.held
        return not turn.owner or not owner.alive(turn.owner)

    def _stirs(self, connection: Connection, key: str) -> bool:
        """Whether there is more to do under a key, after something was done."""
        live = turns.of_key(connection, key)
        if live is not None:
            return self._can_go_on(connection, live)
        return inbox.waits(connection, key)

    def _is_ours(self, connection: Connection, key: str) -> bool:
        """Whether what waits under `key` is not only what a living terminal is about to do itself."""
        rows = [row.inbound.address for row in inbox.queued(connection, key)]
        return any(one.channel != TERMINAL or not self._ground.owner.alive(one.thread) for one in rows)

    async def _run(self, lane: Lane, after: float) -> None:
        try:
            if after:
                await asyncio.sleep(after)
            async with self._slots.taken(background=keys.kind_of(lane.key) in BACKGROUND):
                while lane.poked:
                    lane.poked = False
                    await self._work(lane)
        finally:
            lane.task = None
            if not lane.rested:
                self._forget(lane)
            if lane.poked:  # while it gave back its slot
                self.poke(lane.key)

    async def _work(self, lane: Lane) -> None:
        """Do all there is to do under the key of a lane now."""
        key = lane.key
        try:
            async with self._ground.agents.use(agent_of(self._ground, key)) as services:
                conversation = self._conversation(services, key)
                try:
                    with within(key):
                        worked = await conversation.work_once()
                        while worked and self._ground.store.read(lambda connection: self._stirs(connection, key)):
                            self._lives.over(key)
                            worked = await conversation.work_once()
                        await self._ask_owner(services, key)
                except asyncio.CancelledError:
                    await park(services, key)
                    raise
                finally:
                    self._lives.over(key)
                self._keep(conversation)
                self._untidy.add(key)
        except LimpetError as error:
            await self._failed(lane, error)
            return
        except Exception as error:  # a fault of ours: logged, told, tried again later
            log.exception("lane %s", key)
            await self._failed(
                lane, LimpetError(f"Something of mine is broken ({type(error).__name__}); the log says more.")
            )
            return
        lane.rests, lane.rested = 0, 0.0
        if not worked and self._ground.store.read(lambda connection: _has_more(connection, key)):
            self._rest(lane, HELD)  # another process works on it, or the owner has not decided

    def _conversation(self, services: Services, key: str) -> Conversation:
        """The conversation as it was left, unless the agent was set up anew since."""
        kept = self._idle.pop(key, None)
        return kept if kept is not None and kept.services is services else Conversation(services, key)

    def _keep(self, conversation: Conversation) -> None:
        self._idle[conversation.key] = conversation
        while len(self._idle) > KEPT:
            self._idle.popitem(last=False)

    async def _ask_owner(self, services: Services, key: str) -> None:
        """Ask for the words that a turn waits for, each once."""
        for one in asking.open_under(services, key):
            await self._notices.ask(one)

    async def _failed(self, lane: Lane, error: LimpetError) -> None:
        """What waits is kept and tried again later; who waits for it is told, once."""
        log.warning("lane %s: %s", lane.key, error)
        pause = RESTS[min(lane.rests, len(RESTS) - 1)]
        self._rest(lane, pause)
        lane.rests += 1
        if lane.rests == 1:
            with contextlib.suppress(StoreError):  # a disk so full that not even this can be stored
                await self._notices.tell_waiting(lane.key, f"{error.present()}\n{KEPT_WAITING}")
                if keys.kind_of(lane.key) in keys.UNASKED:
                    await self._notices.tell_owner(STUCK.format(key=lane.key, reason=error.present()))

    def _rest(self, lane: Lane, pause: float) -> None:
        """Leave a lane alone for a while, unless something new comes."""
        lane.rested = self._ground.clock.monotonic() + pause
        if lane.alarm is None:
            lane.alarm = self._ground.tasks.start(self._look_again(lane), f"rest of {lane.key}")

    async def _look_again(self, lane: Lane) -> None:
        """After a rest: go on, or forget a lane that has nothing to do any more."""
        while (left := lane.rested - self._ground.clock.monotonic()) > 0:
            await asyncio.sleep(left)
        lane.alarm = None
        self.sweep()
        if lane.task is None and lane.rested <= self._ground.clock.monotonic():
            self._forget(lane)

    def _forget(self, lane: Lane) -> None:
        if self._lanes.get(lane.key) is lane:  # else a new one stands there, which may be at work
            del self._lanes[lane.key]

    async def drain(self, patience: float) -> None:
        """Begin nothing more, and let what runs finish for `patience` seconds; then it is parked."""
        self._closing = True
        tasks = [lane.task for lane in self._lanes.values() if lane.task is not None]
        if not tasks:
            return
        await asyncio.wait(tasks, timeout=patience)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _has_more(connection: Connection, key: str) -> bool:
    """Whether anything is left under a key, though it may not be for us, or not yet."""
    return turns.of_key(connection, key) is not None or inbox.waits(connection, key)


class Tidying:
    """Writes, from time to time, what ended conversations owe, and consolidates; nobody waits for it."""

    def __init__(self, ground: Ground, lanes: Lanes) -> None:
        self._ground = ground
        self._lanes = lanes

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(TIDY_EVERY)
            found = self._lanes.take_untidy()
            found.update(self._ground.store.read(sessions.keys_closing))
            for key in found:
                await self._tidy(key)

    async def _tidy(self, key: str) -> None:
        if key in self._lanes.running:
            return
        try:
            async with self._ground.agents.use(agent_of(self._ground, key)) as services:
                await tidy(services, key)
        except LimpetError as error:
            log.warning("tidying up after %s: %s", key, error)


def agent_of(ground: Ground, key: str) -> str:
    """Whose conversation a key is for."""
    live = ground.store.read(lambda connection: sessions.live(connection, key))
    return live.agent if live is not None else keys.agent_of(key)


class _Slots:
    """How many turns run at once. Background ones leave some for people."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._taken = 0
        self._background = 0
        self._changed = asyncio.Condition()

    def taken(self, *, background: bool) -> _Slot:
        return _Slot(self, background)

    def _is_free(self, background: bool) -> bool:
        most = self._most()
        return self._taken < most and (not background or self._background < max(1, most - RESERVED))

    async def take(self, background: bool) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._is_free(background))
            self._taken += 1
            self._background += background

    async def give(self, background: bool) -> None:
        async with self._changed:
            self._taken -= 1
            self._background -= background
            self._changed.notify_all()


class _Slot:
    def __init__(self, slots: _Slots, background: bool) -> None:
        self._slots = slots
        self._background = background

    async def __aenter__(self) -> None:
        await self._slots.take(self._background)

    async def __aexit__(self, *_: object) -> None:
        await self._slots.give(self._background)
