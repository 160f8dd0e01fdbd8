"""Dispatch of hooks: each in its order, each with a deadline, and none able to harm the turn.

Before a tool they fail closed: a hook that raises, hangs or answers with nonsense refuses the call, and says why. At
all other points they only watch and fail open: the failure is logged, and people are told once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from limpet.types.event import Notice
from limpet.types.hook import Hook, HookEvent, HookPoint, RequestReady, ToolWanted
from limpet.types.message import Request, ToolChoice
from limpet.types.ports import Emit, Hooks, PendingCall, View

log = logging.getLogger(__name__)

GRACE = 1.0
"""Seconds that a hook gets to end after it was cancelled."""


class _FailedError(Exception):
    """A hook gave no answer; the text says why."""


class Dispatch:
    """Implements the port `Hooks` over `hooks`, in their order; each may take `seconds`, or its own `timeout`."""

    def __init__(self, hooks: Sequence[Hook], *, seconds: float, emit: Emit, grace: float = GRACE) -> None:
        self._hooks = tuple(hooks)
        self._points = frozenset(point for hook in hooks for point in hook.points)
        self._seconds = seconds
        self._grace = grace
        self._emit = emit
        self._told: set[tuple[str, str]] = set()
        self._stuck: set[asyncio.Task[str]] = set()

    def watches(self, point: HookPoint) -> bool:
        return point in self._points

    async def refusal(self, event: ToolWanted) -> str:
        for hook in self._at("before_tool"):
            try:
                said = await self._ask(hook, event)
            except _FailedError as error:
                return f"{hook.name} could not be asked, which counts as no: {error}"
            if said:
                return f"{hook.name} says: {said}"
        return ""

    async def tell(self, event: HookEvent) -> None:
        point = event.__struct_config__.tag
        for hook in self._hooks:
            if point not in hook.points:
                continue
            try:
                await self._ask(hook, event)
            except _FailedError as error:
                if (hook.name, str(point)) not in self._told:
                    self._told.add((hook.name, str(point)))
                    self._emit(Notice(f"The hook {hook.name} failed at {point}: {error}", level="warning"))

    async def close(self) -> None:
        """End hooks that would not end when they were told to."""
        for task in self._stuck:
            task.cancel()
        if self._stuck:
            await asyncio.wait(self._stuck, timeout=self._grace)

    def _at(self, point: HookPoint) -> list[Hook]:
        return [hook for hook in self._hooks if point in hook.points]

    async def _ask(self, hook: Hook, event: HookEvent) -> str:
        """What a hook says, from a task of its own: one that will not be cancelled is left behind."""
        task, seconds = asyncio.create_task(_run(hook, event), name=f"hook {hook.name}"), hook.timeout or self._seconds
        try:
            done, _ = await asyncio.wait({task}, timeout=seconds)
        except asyncio.CancelledError:
            await self._end(task)
            raise
        if not done:
            await self._end(task)
            log.warning("hook %s did not answer within %g s", hook.name, seconds)
            raise _FailedError(f"it did not answer within {seconds:g} s")
        try:
            return task.result()
        except asyncio.CancelledError:
            raise _FailedError("it gave up by itself") from None

    async def _end(self, task: asyncio.Task[str]) -> None:
        task.cancel()
        self._stuck.add(task)
        task.add_done_callback(self._ended)
        await asyncio.wait({task}, timeout=self._grace)

    def _ended(self, task: asyncio.Task[str]) -> None:
        self._stuck.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.warning("a hook failed while it was ended: %r", error)


async def _run(hook: Hook, event: HookEvent) -> str:
    """A boundary: any code may run here. Raises `_FailedError`."""
    try:
        return await hook.run(event)
    except (Exception, SystemExit) as error:
        log.exception("hook %s failed", hook.name)
        raise _FailedError(f"{type(error).__name__}: {error}") from None


class WatchedView:
    """Implements the port `View`: tells hooks of each request that `view` has made, and changes nothing of it."""

    def __init__(self, view: View, hooks: Hooks, *, session: str, turn: str, model: str) -> None:
        self._view = view
        self._hooks = hooks
        self._session = session
        self._turn = turn
        self._model = model

    async def request(self, *, tool_choice: ToolChoice = "auto") -> Request:
        request = await self._view.request(tool_choice=tool_choice)
        messages, tools = len(request.messages), len(request.tools)
        await self._hooks.tell(RequestReady(self._session, self._turn, self._model, messages, tools))
        return request

    async def overflowed(self, limit: int) -> bool:
        return await self._view.overflowed(limit)

    def pending(self) -> tuple[PendingCall, ...]:
        return self._view.pending()
