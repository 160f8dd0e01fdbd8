"""One running browser: started when first used, ended when idle and with the agent, found and ended after a crash."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from limpet.errors import ToolError
from limpet.sandbox.survivors import Trace, end_survivors
from limpet.tools.browser.chromium import ARGUMENTS, environment, find_chromium
from limpet.tools.browser.tabs import Tabs

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

log = logging.getLogger(__name__)

_START = 30.0
"""Seconds for the browser to start."""
_END = 10.0
"""Seconds for each part to end by itself."""
_VIEW = (1280, 800)


class Gate(Protocol):
    """The proxy that guards; provided by `egress.gate`."""

    @property
    def address(self) -> str: ...

    @property
    def user(self) -> str: ...

    @property
    def password(self) -> str: ...

    def refusals(self) -> tuple[str, ...]:
        """What was refused since the last call."""
        ...

    async def check(self, host: str) -> None:
        """Raises `NetworkRefusedError` for a host that would be refused."""
        ...


class BrowserSettings(Struct, frozen=True):
    """`executable` empty = found on the path; `idle` seconds until it is ended, `timeout` seconds for a page."""

    executable: str = ""
    headless: bool = True
    idle: float = 600.0
    timeout: float = 30.0


class Running(Struct, frozen=True):
    """A started browser. `ends` ends all of it."""

    context: BrowserContext
    gate: Gate
    ends: AsyncExitStack
    tabs: dict[str, Tabs]


class Browser:
    """`folder` is private: profile, lock and mark. `open_gate` makes the proxy that all connections go through."""

    def __init__(
        self, folder: Path, settings: BrowserSettings, *, open_gate: Callable[[], AbstractAsyncContextManager[Gate]]
    ) -> None:
        self.settings = settings
        self._folder = folder
        self._open_gate = open_gate
        self._starting: asyncio.Task[Running] | None = None
        self._idling: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()
        self._busy = 0
        self._closed = False

    @property
    def is_running(self) -> bool:
        return self._starting is not None

    @asynccontextmanager
    async def using(self, session: str) -> AsyncGenerator[tuple[Tabs, Gate]]:
        """The tabs of a conversation, nobody else acting in them. Raises `ToolError` when no browser can be started."""
        self._busy += 1
        try:
            running = await self._running()
            tabs = running.tabs.setdefault(session, Tabs(running.context))
            async with tabs.lock:
                yield tabs, running.gate
        finally:
            self._busy -= 1
            self._wait_idle()

    async def close(self) -> None:
        """End it, for good."""
        self._closed = True
        if self._idling is not None:
            self._idling.cancel()
            await asyncio.gather(self._idling, return_exceptions=True)
        async with self._changing:
            await self._end()

    async def _running(self) -> Running:
        async with self._changing:
            if self._starting is not None and not await self._lives(self._starting):
                await self._end()
            if self._closed:
                raise ToolError("The browser is being ended.")
            if self._starting is None:
                self._starting = asyncio.create_task(self._start(), name="browser start")
        starting = self._starting
        return await asyncio.shield(starting)

    async def _lives(self, starting: asyncio.Task[Running]) -> bool:
        from playwright.async_api import Error

        if not starting.done():
            return True
        if starting.cancelled() or starting.exception():
            return False
        try:
            async with asyncio.timeout(_END):
                await starting.result().context.cookies("http://probe.invalid")
        except (Error, TimeoutError):
            log.warning("the browser has ended by itself")
            return False
        return True

    async def _start(self) -> Running:
        """Raises `ToolError`; then nothing is left running."""
        from playwright.async_api import Error, async_playwright

        ends = AsyncExitStack()
        try:
            mark = await asyncio.to_thread(self._claim, ends)
            gate = await ends.enter_async_context(self._open_gate())
            ends.push_async_callback(asyncio.to_thread, end_survivors, Trace(0, "", mark))
            async with asyncio.timeout(2 * _START):
                playwright = await async_playwright().start()
                ends.push_async_callback(_quietly, playwright.stop)
                context = await playwright.chromium.launch_persistent_context(
                    str(self._folder / "profile"),
                    executable_path=find_chromium(self.settings.executable),
                    headless=self.settings.headless,
                    chromium_sandbox=os.geteuid() != 0,
                    args=list(ARGUMENTS),
                    env=environment(str(self._folder), mark),
                    proxy={"server": gate.address, "username": gate.user, "password": gate.password},
                    viewport={"width": _VIEW[0], "height": _VIEW[1]},
                    service_workers="block",
                    accept_downloads=False,
                    handle_sigint=False,
                    timeout=_START * 1000,
                )
            ends.push_async_callback(_quietly, context.close)
            return Running(context, gate, ends, {})
        except (Error, OSError, TimeoutError) as error:
            await ends.aclose()
            log.warning("the browser did not start: %s", error)
            why = str(error).partition("\n")[0][:300] or "it took too long"
            raise ToolError(
                f"The browser cannot be started: {why}", hint="The owner can look at it with limpet --verbose."
            ) from None
        except BaseException:
            await ends.aclose()
            raise

    def _claim(self, ends: AsyncExitStack) -> str:
        """Be the only one on the profile, and end what a killed owner left; gives the mark of the new browser."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        ends.callback(os.close, lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ToolError("Another Limpet process of this home uses the browser now; try again later.") from None
        before = os.pread(lock, 100, 0).decode("ascii", "replace").strip()
        if before and (ended := end_survivors(Trace(0, "", before))):
            log.warning("ended %d processes of a browser that outlived its agent", ended)
        mark = f"browser-{token_hex(16)}"
        os.ftruncate(lock, 0)
        os.pwrite(lock, mark.encode(), 0)
        for name in ("SingletonLock", "SingletonSocket", "SingletonCookie"):  # they name a dead process
            (self._folder / "profile" / name).unlink(missing_ok=True)
        return mark

    async def _end(self) -> None:
        starting, self._starting = self._starting, None
        if starting is None:
            return
        (found,) = await asyncio.gather(starting, return_exceptions=True)
        if isinstance(found, Running):
            await found.ends.aclose()

    def _wait_idle(self) -> None:
        if self._idling is not None:
            self._idling.cancel()
            self._idling = None
        if not self._busy and not self._closed and self._starting is not None:
            self._idling = asyncio.create_task(self._idle(), name="browser idle")

    async def _idle(self) -> None:
        await asyncio.sleep(self.settings.idle)
        async with self._changing:
            if not self._busy:
                await self._end()


async def _quietly(end: Callable[[], Awaitable[None]]) -> None:
    """End a part of the browser; that it has ended already, or will not, is only logged."""
    from playwright.async_api import Error

    try:
        async with asyncio.timeout(_END):
            await end()
    except (Error, TimeoutError) as error:
        log.info("ending the browser: %s", error)
