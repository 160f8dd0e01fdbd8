"""What all parts of the gateway stand on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from limpet.assistant.services import Services
from limpet.config.schema import Settings
from limpet.store.driver import Store
from limpet.store.nudge import Nudges
from limpet.store.owner import Owner
from limpet.types.hook import HookEvent
from limpet.types.ports import Clock

log = logging.getLogger(__name__)


class Agents(Protocol):
    """Called for the services of an agent; provided by the composition root."""

    @property
    def settings(self) -> Settings:
        """As they are now: they change while the gateway runs."""
        ...

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def has_hooks(self) -> bool:
        """Whether there may be hooks to be told of anything."""
        ...

    async def refresh(self) -> bool:
        """Look whether the settings have changed, and use them; whether they have. Raises `ConfigError`."""
        ...

    def use(self, agent: str) -> AbstractAsyncContextManager[Services]:
        """The services of `agent`, which stay until the block ends. Raises `ConfigError` for one there is not."""
        ...

    async def tell(self, event: HookEvent, agent: str = "main") -> None:
        """Tell the hooks of an agent, where there are any. Never raises."""
        ...


class Tasks:
    """Tasks that run beside each other until they end or `close` is called; their failures are logged."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[None, None, None], name: str = "") -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed", task.get_name(), exc_info=error)

    async def close(self, *, patience: float = 0.0) -> None:
        """Wait for them for `patience` seconds, then cancel them."""
        if self._tasks and patience:
            await asyncio.wait(tuple(self._tasks), timeout=patience)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class Ground:
    """The state of this process and its agents."""

    store: Store
    owner: Owner
    nudges: Nudges
    clock: Clock
    agents: Agents
    tasks: Tasks = field(default_factory=Tasks)
