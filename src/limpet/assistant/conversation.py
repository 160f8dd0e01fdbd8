"""A conversation: one session key, its events in order, one turn at a time.

Any number of processes may have a conversation open under the same key. Who gets the lease works; the others have
left their event in the inbox and wait for its outcome, ready to take over when the holder dies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from limpet.agent.queue import Control
from limpet.assistant import asking, commands, commands_mcp, recover, turn, unattended
from limpet.assistant.claim import Claim, StaleLogError, claim, is_waiting
from limpet.assistant.journal import TurnJournal
from limpet.assistant.receiving import arrived, queueing_of, receive
from limpet.assistant.services import Services
from limpet.errors import LeaseHeldError, LeaseLostError
from limpet.session.aims import Aims
from limpet.session.log import Log
from limpet.store import approvals, entries, inbox, sessions, subagents, turns
from limpet.store.commits import TurnWriter
from limpet.store.sessions import Lease
from limpet.store.sql import Connection
from limpet.store.turns import TurnRow
from limpet.types.content import Text
from limpet.types.entry import UserEntry
from limpet.types.envelope import Inbound, InboxRow, Mandate
from limpet.types.event import Notice, TurnEnded
from limpet.types.message import UserMessage
from limpet.types.ports import Model
from limpet.types.profile import Profile

LOOK_AGAIN = 1.0
"""Seconds between two looks at a session that another process holds."""
WAITING = "[Another Limpet process works on this conversation: waiting for it.]"


class Conversation:
    """The session that is live under `key`, as this process sees it."""

    def __init__(self, services: Services, key: str, *, model: str = "") -> None:
        """`model` is the reference of a model to use instead of the session's own."""
        self.services = services
        self.key = key
        self.control: Control | None = None
        self._named = model
        self._state = ("", 0)
        self._log: Log | None = None
        self._recalled: dict[int, Sequence[str]] = {}

    async def send(self, inbound: Inbound) -> InboxRow:
        """Store an event and see it to its end, by our own work or another process's. Raises as `receive` does."""
        row, new = await receive(self, inbound)
        if new and await arrived(self, row):
            await self.recover()
        attended = await self.attend(row.id)
        if not commands.find(inbound.text):
            return attended
        said = self.services.store.read(lambda connection: commands_mcp.said(connection, row))
        return await self.attend(said.id) if said else attended

    async def attend(self, row: int) -> InboxRow:
        """Work, or wait for who works, until the event `row` is done or refused.

        Given back as it is when nothing can be done before the owner decides something, and nobody does that here.
        """
        told = False
        while True:
            found = self.services.store.read(lambda connection: inbox.find(connection, row))
            assert found is not None
            if found.state in ("done", "refused"):
                return found
            if not await self.work_once():
                if self._is_waiting():
                    if not await asking.ask_next(self.services, self.key):
                        return found
                    continue
                if not told:
                    self.services.emit(Notice(WAITING))
                told = True
                await self.services.nudges.wait(LOOK_AGAIN)

    async def work_once(self) -> bool:
        """Do the next thing there is to do under this key; False when there is nothing, or another process does it."""
        if self._is_waiting():
            return False
        model = await self.services.models.get(self.model_reference())
        log = self.log()
        await self._recall(model.profile, log)
        try:
            claimed = await claim(self.services, self.key, model, log=log, writer=self._writer)
        except LeaseHeldError:
            self.services.nudges.send()
            return False
        except StaleLogError:
            return True
        try:
            await self._do(claimed, model)
        finally:
            self.services.owner.held.discard(claimed.lease.session)
            self.services.nudges.wake()
        return not claimed.idle

    async def _recall(self, profile: Profile, log: Log) -> None:
        """Look up what memory holds on the messages that wait, before they are stored with it."""
        recall = self.services.recall
        if recall is None:
            return
        waiting = self.services.store.read(lambda connection: inbox.queued(connection, self.key))
        self._recalled = {row.id: self._recalled[row.id] for row in waiting if row.id in self._recalled}
        if not (recall.is_on if log.recalls is None else log.recalls):
            return
        for row in waiting:
            inbound = row.inbound
            if row.id in self._recalled or commands.find(inbound.text) or subagents.is_about(row):
                continue
            channel = inbound.mandate.purpose if inbound.mandate is not None else inbound.address.channel
            if recall.serves(self.key, channel):
                prompted = partial(self.services.prompting.memory, profile, key=self.key)
                self._recalled[row.id] = await recall.facts(inbound.text, key=self.key, log=log, prompted=prompted)

    async def _do(self, claimed: Claim, model: Model) -> None:
        if claimed.found is not None:
            await self._resume(claimed.lease, claimed.found, model)
        elif claimed.row is not None:
            await commands.run_queued(self, claimed.row, claimed.lease)
        elif claimed.made:
            await self.run_begun(claimed.lease, claimed.made, model=model)

    async def recover(self) -> None:
        """Finish what a dead process left running under this key, before anything new."""
        live = self.services.store.read(self._live_turn)
        while live is not None and (
            await self.work_once() or (self._is_waiting() and await asking.ask_next(self.services, self.key))
        ):
            live = self.services.store.read(self._live_turn)

    def stop(self) -> None:
        """Stop the turn that runs here, if one does."""
        if self.control is not None:
            self.control.stop()

    def log(self) -> Log:
        """The log of the live session as it stands on disk."""
        store = self.services.store
        live = store.read(lambda connection: sessions.live(connection, self.key))
        session = live.id if live else ""
        state = (session, live.erasures if live else 0)
        if self._log is None or state != self._state:
            self._state, self._log = state, Log(cache_key=live.cache_key if live else "")
        log = self._log
        log.extend(store.read(lambda connection: entries.load(connection, session, after=log.last_seq)))
        return log

    def name_model(self, reference: str) -> None:
        """From here on use this model instead of the session's; empty: the session's own."""
        self._named = reference

    def forget(self) -> None:
        """Read the log anew next time: another session is live now, or a commit may have failed half-way."""
        self._log = None

    def model_reference(self) -> str:
        if self._named:
            return self._named

        def look(connection: Connection) -> tuple[str, Mandate | None]:
            live = sessions.live(connection, self.key)
            return live.model if live else "", unattended.mandate_under(connection, self.key, live)

        own, mandate = self.services.store.read(look)
        if mandate is None:
            return own
        return mandate.model or unattended.purpose(self.services, mandate).model or own

    def _is_waiting(self) -> bool:
        """Whether the turn under this key can only go on after its owner has decided something."""
        now = self.services.clock.now()

        def look(connection: Connection) -> bool:
            live = self._live_turn(connection)
            return live is not None and is_waiting(connection, live, now=now)

        return self.services.store.read(look)

    def _live_turn(self, connection: Connection) -> TurnRow | None:
        live = sessions.live(connection, self.key)
        return turns.live(connection, live.id) if live else None

    def _writer(self, connection: Connection, lease: Lease, name: str) -> TurnWriter:
        return TurnWriter(
            lease=lease,
            turn=name,
            key=self.key,
            render=partial(self._render, session=lease.session),
            queueing=queueing_of(self.services, connection, key=self.key, session=lease.session),
            crowd=self.services.rules.helpers.crowd,
        )

    def _writer_now(self, lease: Lease, name: str) -> TurnWriter:
        return self.services.store.read(lambda connection: self._writer(connection, lease, name))

    def _render(self, row: InboxRow, *, session: str) -> UserEntry | None:
        """The user entry of an event; None for a command, which is not for the model."""
        if commands.find(row.inbound.text):
            return None
        aims = self._log.aims if self._log is not None and self._state[0] == session else Aims()
        message = UserMessage(
            content=(Text(row.inbound.text), *row.inbound.images),
            runtime=self.services.prompting.runtime(row, (*aims.facts(), *self._recalled.get(row.id, ()))),
        )
        return UserEntry(message=message, sender=row.inbound.sender, inbox=row.id)

    async def _resume(self, lease: Lease, found: TurnRow, model: Model) -> None:
        decided = self.services.store.read(lambda connection: approvals.last_decided(connection, found.id))
        unasked = self.services.store.read(
            lambda connection: unattended.mandate_under(connection, self.key, sessions.live(connection, self.key))
        )
        most = recover.MAX_ATTEMPTS if unasked is None else recover.MAX_UNASKED
        notice = recover.verdict(found, now=self.services.clock.now(), decided=decided, most=most)
        if not notice:
            attempt = found.attempts + (found.state == "running")
            await self.run_begun(lease, found.id, model=model, attempt=attempt)
            return
        journal = TurnJournal(self.services, self._writer_now(lease, found.id), self.log())
        given_up = found.attempts >= recover.MAX_ATTEMPTS
        await journal.fail(notice, kind="Interrupted", interrupted=unasked is not None or not given_up)

    async def run_begun(
        self, lease: Lease, name: str, *, model: Model | None = None, attempt: int = 1
    ) -> TurnEnded | None:
        """Run a turn whose row says `running` under our lease, while watching for a stop from another process."""
        model = model or await self.services.models.get(self.model_reference())
        run = turn.Run(self.services, self._writer_now(lease, name), self.log(), model, attempt)
        self.control = control = Control()
        watcher = asyncio.create_task(self._watch(name, control))
        try:
            return await turn.run(run, control)
        except LeaseLostError:
            self.forget()
            return None
        except BaseException:
            self.forget()
            raise
        finally:
            self.control = None
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)

    async def _watch(self, name: str, control: Control) -> None:
        while not self.services.store.read(lambda connection: turns.stop_requested(connection, name)):
            await self.services.nudges.wait(LOOK_AGAIN)
        control.stop()
