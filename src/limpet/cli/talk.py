"""Talking to the assistant from a terminal: one message in, everything that is to be shown out."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager

from limpet import errors
from limpet.assistant.conversation import Conversation
from limpet.assistant.services import Services
from limpet.cli.deliver import deliver
from limpet.session import keys
from limpet.store import turns
from limpet.types.content import Image
from limpet.types.envelope import Address, Inbound, InboxRow, OutboxRow
from limpet.types.ids import new_id

Show = Callable[[OutboxRow], None]


class Talk:
    """The session `name` of the agent, seen from this terminal. `show` prints a delivered part."""

    def __init__(self, services: Services, name: str, show: Show) -> None:
        self.services = services
        self.conversation = Conversation(services, keys.cli(services.agent, name))
        self._address = Address(channel="cli", chat=self.conversation.key, thread=services.owner.name)
        self._show = show

    async def catch_up(self) -> None:
        """Finish what a dead process left behind in this session, and show what was never shown."""
        await self.conversation.recover()
        await self.deliver()

    async def say(self, text: str, *, images: tuple[Image, ...] = ()) -> int:
        """Say something and show what comes back; gives the exit code. Ctrl-C stops the turn, twice leaves."""
        inbound = Inbound(address=self._address, event=new_id("cli-"), text=text, images=images)
        with self._interruptible():
            row = await self.conversation.send(inbound)
            await self.deliver()
        return self._exit_code(row)

    async def deliver(self) -> None:
        await deliver(self.services, self._address, self._show)

    def _exit_code(self, row: InboxRow) -> int:
        turn = self.services.store.read(lambda connection: turns.find(connection, row.turn)) if row.turn else None
        if turn is None or turn.state == "done":
            return 0
        if turn.state == "cancelled":
            return errors.TurnStopped.exit_code
        return errors.exit_code_of(turn.error.partition(":")[0])

    @contextmanager
    def _interruptible(self) -> Generator[None]:
        """The first Ctrl-C stops the turn, the second one ends the program; what is in the log stays."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def interrupt() -> None:
            if self.conversation.control is None or self.conversation.control.stopped:
                task.cancel()
            else:
                self.conversation.stop()

        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                loop.remove_signal_handler(signal.SIGINT)
