"""One server and the task that owns its connection.

It is started by the first call that needs it, or to learn its tools; a start that fails is not tried again for a while;
what dies in the middle of a call is an error of that call, and the next one starts it anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import TypeVar

from msgspec import structs

from limpet.errors import ConfigError, ToolError
from limpet.mcp.kept import Listed, ListedPrompt, Record, Records
from limpet.mcp.sdk import Answer, Connection, Progress, connect, reason
from limpet.mcp.spec import ServerSpec
from limpet.types.ports import Clock

T = TypeVar("T")
log = logging.getLogger(__name__)

_LONGEST_REST = 300.0
_CLOSING = 5.0
"""Seconds for a server to end, which takes a program one second at the most and a farewell over HTTP a while."""


class Server:
    """One server of this process. `changed` is called when its tools are others than before."""

    def __init__(
        self, spec: ServerSpec, records: Records, *, clock: Clock, changed: Callable[[], None] = lambda: None
    ) -> None:
        self.spec = spec
        self._records = records
        self._clock = clock
        self._changed = changed
        found = records.read(spec.name)
        self._record = found if found.fingerprint == spec.fingerprint else Record(fingerprint=spec.fingerprint)
        self._owner: asyncio.Task[None] | None = None
        self._started: asyncio.Future[Connection] | None = None
        self._stop = asyncio.Event()
        self._said = 0
        self._refusals: list[str] = []
        self._failures = 0
        self._rests_until = 0.0

    @property
    def known(self) -> bool:
        """Whether its tools are known, from now or an earlier start."""
        return bool(self._record.started_at)

    @property
    def record(self) -> Record:
        return self._record

    @property
    def tools(self) -> tuple[Listed, ...]:
        """Those that are known and offered."""
        if not self.known:
            return ()
        wanted = self.spec.tools
        return tuple(tool for tool in self._record.tools if not wanted or tool.name in wanted)

    @property
    def has_resources(self) -> bool:
        """Whether it has anything to read, as far as is known."""
        return self.known and self._record.resources

    @property
    def prompts(self) -> tuple[ListedPrompt, ...]:
        """Those that are known."""
        return self._record.prompts if self.known else ()

    async def learn(self) -> None:
        """Start it, so that its tools are known. Raises `ToolError`."""
        await self._connection()

    async def call(self, tool: str, arguments: Mapping[str, object], *, progress: Progress) -> Answer:
        """Raises `ToolError` with the server's name and the cause; within the server's `timeout`."""
        return await self.within(tool, lambda connection: connection.call(tool, arguments, show=progress))

    async def within(self, what: str, ask: Callable[[Connection], Awaitable[T]]) -> T:
        """What `ask` gives, called `what` in errors, which are those of `call`."""
        try:
            async with asyncio.timeout(self.spec.timeout):
                return await self._ask(what, ask)
        except TimeoutError:
            raise ToolError(
                f"The MCP server {self.spec.name} did not answer {what} within {self.spec.timeout:g} s.",
                hint="Whether it was done is not known.",
            ) from None

    async def _ask(self, what: str, ask: Callable[[Connection], Awaitable[T]]) -> T:
        connection = await self._connection()
        try:
            answer = await ask(connection)
        except Exception as error:  # the SDK raises errors of any kind
            log.warning("MCP server %s: %s failed", self.spec.name, what, exc_info=True)
            if connection.ended.is_set():
                raise ToolError(
                    f"The MCP server {self.spec.name} ended in the middle of {what}.",
                    hint="Whether it was done is not known. The next call starts the server again.",
                ) from None
            failed = ToolError(f"The MCP server {self.spec.name} could not do {what}: {reason(error, self._refusals)}.")
            failed.external = self.spec.trust == "external"
            raise failed from None
        self._failures = 0
        return answer

    async def _connection(self) -> Connection:
        """The one there is, or a new one. Raises `ToolError`."""
        if self._owner is not None and self._started is not None and self._started.done():
            ended = self._started.exception() is not None or self._started.result().ended.is_set()
            if ended and not self._owner.done():
                await asyncio.wait([self._owner])
        if self._owner is None or self._owner.done():
            self._begin()
        assert self._started is not None
        return await asyncio.shield(self._started)

    def _begin(self) -> None:
        """Start the owner task. Raises `ToolError` while the server rests after failures."""
        name = self.spec.name
        if self.spec.fault:
            raise ToolError(f"The MCP server {name} cannot be started: {self.spec.fault}.")
        left = self._rests_until - self._clock.monotonic()
        if left > 0:
            why = self._record.failure or "it ended"
            raise ToolError(f"The MCP server {name} failed: {why}. It is tried again in {left:.0f} s at the earliest.")
        self._stop = asyncio.Event()
        self._started = asyncio.get_running_loop().create_future()
        self._started.add_done_callback(_seen)
        self._owner = asyncio.create_task(self._own(self._started), name=f"mcp {name}")

    async def _own(self, started: asyncio.Future[Connection]) -> None:
        """Hold the connection from its start to its end. A boundary: the SDK raises errors of any kind."""
        log_file = self._records.log(self.spec.name)
        self._refusals.clear()
        try:
            self._said = self._records.open_log(self.spec.name)
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self.spec.start):
                    connection = await stack.enter_async_context(connect(self.spec, log_file, refusals=self._refusals))
                    await self._list(connection)
                started.set_result(connection)
                await self._hold(connection)
            if not self._stop.is_set():
                self._failed("it ended by itself")
        except Exception as error:
            log.warning("MCP server %s failed", self.spec.name, exc_info=True)
            last = self._last_words() if self.spec.command else ""
            self._failed(f"{reason(error, self._refusals)}{f' (it said: {last})' if last else ''}")
        finally:
            if not started.done():
                why = self._record.failure or "it was stopped"
                started.set_exception(ToolError(f"The MCP server {self.spec.name} could not be started: {why}."))

    def _last_words(self) -> str:
        """The last line of its log that this start has written."""
        try:
            lines = self._records.log(self.spec.name).read_bytes()[self._said :].decode("utf-8", "replace").split("\n")
        except OSError:
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")[:300]

    async def _hold(self, connection: Connection) -> None:
        """Wait for the end, of the connection or of us; list the tools again whenever they change."""
        waits = {asyncio.create_task(event.wait()) for event in (self._stop, connection.ended)}
        try:
            while not self._stop.is_set() and not connection.ended.is_set():
                change = asyncio.create_task(connection.changed.wait())
                waits.add(change)
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                if change.done():
                    waits.discard(change)
                    connection.changed.clear()
                    async with asyncio.timeout(self.spec.start):
                        await self._list(connection)
        finally:
            for wait in waits:
                wait.cancel()

    async def _list(self, connection: Connection) -> None:
        tools, dropped = await connection.list_tools()
        before = (self.tools, self.has_resources)
        self._keep(
            Record(
                fingerprint=self.spec.fingerprint,
                tools=tools,
                prompts=await connection.list_prompts(),
                resources=connection.has_resources,
                dropped=dropped,
                started_at=self._clock.now(),
                failure="",
            )
        )
        for one in dropped:
            log.warning("MCP server %s: the tool %s is left out", self.spec.name, one)
        if (self.tools, self.has_resources) != before:
            self._changed()

    def _failed(self, why: str) -> None:
        """Rest before the next start: not after the first failure, then 4, 8, 16 … s: five tries in a minute."""
        self._failures += 1
        rest = 0.0 if self._failures == 1 else min(2.0**self._failures, _LONGEST_REST)
        self._rests_until = self._clock.monotonic() + rest
        self._keep(structs.replace(self._record, failure=why, failed_at=self._clock.now()))

    def _keep(self, record: Record) -> None:
        self._record = record
        try:
            self._records.write(self.spec.name, record)
        except ConfigError as error:
            log.warning("what is known of the MCP server %s cannot be kept: %s", self.spec.name, error)

    async def close(self) -> None:
        """End it, and wait until it has ended."""
        self._stop.set()
        if self._owner is None or self._owner.done():
            return
        if self._started is not None and not self._started.done():
            self._owner.cancel()
        _, late = await asyncio.wait([self._owner], timeout=_CLOSING)
        for task in late:
            task.cancel()
            await asyncio.wait([task], timeout=_CLOSING)


def _seen(future: asyncio.Future[Connection]) -> None:
    """Look at the outcome, so that asyncio does not complain of one that nobody waited for."""
    if not future.cancelled():
        future.exception()
