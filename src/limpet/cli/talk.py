"""Talking to the assistant from a terminal: one message in, everything that is to be shown out."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

from limpet import errors
from limpet.assistant.conversation import Conversation
from limpet.assistant.helping import PATIENCE, Helping
from limpet.assistant.services import Services
from limpet.assistant.tidying import tidy
from limpet.cli.deliver import deliver
from limpet.session import keys
from limpet.store import turns
from limpet.types.content import Image
from limpet.types.envelope import Address, Inbound, InboxRow, OutboxRow
from limpet.types.ids import new_id

Show = Callable[[OutboxRow], None]
NOT_WAITING = "Not waiting any longer. What you said is kept and comes next in this conversation."


class Talk:
    """The session `name` of the agent, seen from this terminal. `show` prints a delivered part.

    `model` is the reference of a model to use instead of the session's, until `/model` names another.
    """

    def __init__(self, services: Services, name: str, show: Show, *, model: str = "") -> None:
        self.services = services
        self.conversation = Conversation(services, keys.cli(keys.check_agent(services.agent), name), model=model)
        self.helping = Helping(services, self.conversation.key)
        self._address = Address(channel="cli", chat=self.conversation.key, thread=services.owner.name)
        self._named = model
        self._show = show
        self._busy = self._elsewhere = False
        self._person = self._passes = False
        self._ending: BaseException | None = None
        self.turn = ""
        """The turn of what was said last; empty when there was none."""

    async def check_model(self) -> None:
        """Raises `ConfigError`, `NoModelError` when the model of the conversation cannot be had; says the way out."""
        reference = self.conversation.model_reference()
        try:
            await self.services.models.get(reference)
        except (errors.ConfigError, errors.NoModelError) as error:
            if not reference or reference == self._named:
                raise
            way = 'To give it another one: limpet agent --model provider/model -m "/model provider/model"'
            raise type(error)(f"This conversation is set to {reference}: {error}", hint=way) from error

    async def catch_up(self) -> None:
        """Finish what a dead process left behind in this session, and show what was never shown."""
        await self.conversation.recover()
        await self.deliver()

    async def say(self, text: str, *, images: tuple[Image, ...] = ()) -> int:
        """Say something and show what comes back; gives the exit code.

        Inside `interruptible` Ctrl-C stops the turn, and the second one raises `KeyboardInterrupt`. Raises
        `TurnStopped` when Ctrl-C ended the wait for another process.
        """
        inbound = Inbound(address=self._address, event=new_id("cli-"), text=text, images=images)
        self.turn = ""
        with self._busily():
            row = await self.conversation.send(inbound)
            self.turn = row.turn
            await self.deliver()
        code = self._exit_code(row)
        if code == errors.TurnStopped.exit_code:
            await self.helping.stop()
        return code

    async def hear(self) -> int:
        """Answer the results of helpers that are there, and show it; gives the exit code."""
        code = 0
        for event in self.helping.results:
            with self._busily():
                row = await self.conversation.attend(event)
                await self.deliver()
            code = max(code, self._exit_code(row))
        return code

    async def result(self) -> None:
        """Wait for the result of a helper, for as long as it takes."""
        while not self.helping.results:
            await self.services.nudges.wait(PATIENCE)

    async def finish(self) -> int:
        """See all helpers to their end, and what comes of it; gives the exit code."""
        code = 0
        while not code and await self.helping.news():
            code = await self.hear()
        return code

    @asynccontextmanager
    async def helped(self) -> AsyncGenerator[None]:
        """Inside, helpers are worked on beside the conversation; what is not done at the end the next process does."""
        task = asyncio.create_task(self.helping.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @asynccontextmanager
    async def tidying(self) -> AsyncGenerator[Callable[[], None]]:
        """Inside, calling what is given begins to tidy up beside the conversation; it is finished at the end."""
        running: list[asyncio.Task[None]] = []

        def begin() -> None:
            if not running or running[-1].done():
                running.append(asyncio.create_task(tidy(self.services, self.conversation.key)))

        try:
            begin()
            yield begin
            await asyncio.gather(*running)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def deliver(self) -> None:
        await deliver(self.services, self._address, self._show)

    def _exit_code(self, row: InboxRow) -> int:
        if row.state not in ("done", "refused"):
            return errors.UserError.exit_code  # it waits for the owner's word
        turn = self.services.store.read(lambda connection: turns.find(connection, row.turn)) if row.turn else None
        if turn is None or turn.state == "done":
            return 0
        if turn.state == "cancelled":
            return errors.TurnStopped.exit_code
        return errors.exit_code_of(turn.error.partition(":")[0])

    @contextmanager
    def interruptible(self, *, person: bool = False) -> Generator[None]:
        """While this lasts Ctrl-C stops the turn; twice, or where there is none, it ends the program (130).

        With a `person` at a prompt the first one between two turns is let pass: it was meant for a turn just over.
        The third one in a row ends it at once, whatever it does: what is in the log stays.
        """
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._passes = self._person = person
        before = signal.getsignal(signal.SIGINT)
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(signal.SIGINT, self._interrupt, task)
        try:
            yield
        except asyncio.CancelledError:
            raise self._why(task) from None
        finally:
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                loop.remove_signal_handler(signal.SIGINT)
                signal.signal(signal.SIGINT, before)

    @contextmanager
    def elsewhere(self) -> Generator[None]:
        """While this lasts Ctrl-C is for a command of the person at the terminal, not for us."""
        self._elsewhere = True
        try:
            yield
        finally:
            self._elsewhere = False

    def _interrupt(self, task: asyncio.Task[object]) -> None:
        control = self.conversation.control
        if self._elsewhere:
            return
        if control is not None and not control.stopped:
            self.conversation.stop()
        elif not self._busy and self._passes:
            self._passes = False
        elif isinstance(self._ending, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.raise_signal(signal.SIGINT)
        else:
            waiting = self._busy and control is None
            self._ending = errors.TurnStopped(NOT_WAITING) if waiting else KeyboardInterrupt()
            task.cancel()

    @contextmanager
    def _busily(self) -> Generator[None]:
        task = asyncio.current_task()
        assert task is not None
        self._busy = True
        try:
            yield
        except asyncio.CancelledError:
            raise self._why(task) from None
        finally:
            self._busy, self._passes = False, self._person

    def _why(self, task: asyncio.Task[object]) -> BaseException:
        """What the cancellation of `task` means: Ctrl-C, or what whoever cancelled it wants."""
        ending, self._ending = self._ending, None
        if ending is None:
            return asyncio.CancelledError()
        task.uncancel()
        return ending
