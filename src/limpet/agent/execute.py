"""Tool execution: one batch of calls, each to exactly one result.

Preflight in order (known? readable? allowed?), then all calls of the batch run together, except `exclusive` ones and
those that write to the same path. The intent of a call with side effects is committed before it acts. An unknown tool,
bad arguments, a refusal and an exception are error results for the model, never exceptions here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import NamedTuple

from msgspec import structs

from limpet.agent.guard import LoopGuard
from limpet.agent.plans import wanted
from limpet.errors import LeaseError, LimpetError, PolicyError, StoreError, ToolError, TurnWaits
from limpet.session.project import UNKNOWN_OUTCOME
from limpet.tools.deferred import SEARCH, unwrapped
from limpet.tools.disk import compare, discard, report
from limpet.types.content import ResultBlock, Text
from limpet.types.entry import Payload
from limpet.types.event import ToolBegan, ToolEnded, ToolProgress
from limpet.types.hook import ToolFinished, ToolWanted
from limpet.types.job import Outward
from limpet.types.ports import BoundCall, Clock, Emit, Hooks, Journal, PendingCall, Policy, Tool, ToolContext
from limpet.types.tool import FileIntent, ToolResult, text_result

log = logging.getLogger(__name__)

_MOST_NAMED = 60
"""Tools that the error for an unknown one names."""


class PathLocks:
    """One lock per path, shared by all turns of a process."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._users: dict[str, int] = {}

    @asynccontextmanager
    async def holding(self, paths: Sequence[str]) -> AsyncGenerator[None]:
        """Hold the locks of `paths`, always taken in the same order."""
        async with AsyncExitStack() as held:
            for path in sorted(set(paths)):
                self._users[path] = self._users.get(path, 0) + 1
                held.callback(self._leave, path)
                await held.enter_async_context(self._locks.setdefault(path, asyncio.Lock()))
            yield

    def _leave(self, path: str) -> None:
        self._users[path] -= 1
        if not self._users[path]:
            del self._users[path], self._locks[path]


class Beside(NamedTuple):
    """What a call has committed together with its result: entries of this log, messages for other conversations."""

    records: list[Payload]
    posts: list[Outward]


class Execution:
    """Runs the calls of one turn. `context` is the template of what each call is given."""

    def __init__(
        self,
        tools: Sequence[Tool],
        *,
        policy: Policy,
        context: ToolContext,
        journal: Journal,
        locks: PathLocks,
        clock: Clock,
        emit: Emit,
        hooks: Hooks | None = None,
    ) -> None:
        self._all = tools
        self._tools = {tool.spec.name: tool for tool in tools}
        self._policy = policy
        self._context = context
        self._journal = journal
        self._locks = locks
        self._clock = clock
        self._emit = emit
        self._hooks = hooks
        self._waiting: list[str] = []
        self.guard = LoopGuard()

    async def batch(self, calls: Sequence[PendingCall]) -> bool:
        """Give every call its one result; whether one of them ends the turn.

        Raises `TurnWaits` when all that can be done is done and calls are left that the owner has to decide on.
        """
        self._waiting.clear()
        ends = False
        for wave in self._waves(calls):
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(self.one(call)) for call in wave]
            except* LimpetError as failures:
                raise _first(failures) from None
            if self._waiting:
                raise TurnWaits(tuple(self._waiting))
            ends = ends or any(task.result() for task in tasks)
        return ends

    def _waves(self, calls: Sequence[PendingCall]) -> list[list[PendingCall]]:
        """The batch in parts that run one after the other; an exclusive call is a part of its own."""
        waves: list[list[PendingCall]] = [[]]
        for call in calls:
            tool = self._tool(unwrapped(call.call).name)
            if tool is not None and tool.exclusive:
                waves += [[call], []]
            else:
                waves[-1].append(call)
        return [wave for wave in waves if wave]

    async def one(self, call: PendingCall) -> bool:
        """Give one call its result, unless it has to wait for the owner; whether it ends the turn.

        A call of another tool through `call_tool` is that tool's, for everybody who judges, sees or logs it.
        """
        call = structs.replace(call, call=unwrapped(call.call))
        began = self._clock.monotonic()
        self._emit(ToolBegan(call=call.name, name=call.call.name, arguments=call.call.arguments))
        beside = Beside([], [])
        try:
            result = self._redacted(self.guard.seen(call.call, await self._outcome(call, beside)))
        except TurnWaits as waits:
            self._waiting += waits.approvals
            return False
        duration = round((self._clock.monotonic() - began) * 1000)
        result = structs.replace(result, details=structs.replace(result.details, duration=duration))
        await self._journal.result(call, result, records=beside.records, posts=beside.posts)
        self._emit(
            ToolEnded(
                call=call.name, name=call.call.name, text=result.text, is_error=result.is_error, duration=duration
            )
        )
        await self._tell(call, result)
        return result.ends_turn

    async def _outcome(self, call: PendingCall, beside: Beside) -> ToolResult:
        """The result of a call, whatever happens, except that the session or the disk is lost."""
        try:
            tool, bound = self._bind(call)
            known = self._known_outcome(call, tool)
            if known is not None:
                return known
            await self._allow(call, tool, bound)
            async with self._locks.holding(bound.writes):
                return await self._run(call, tool, bound, beside=beside)
        except ToolError as error:
            told = text_result(error.present(), is_error=True)
            return structs.replace(told, trust="external") if error.external else told
        except (LeaseError, StoreError, TurnWaits):
            raise
        except Exception as error:
            log.exception("tool %s failed", call.call.name)
            return text_result(f"The tool failed: {type(error).__name__}: {error}", is_error=True)

    def _bind(self, call: PendingCall) -> tuple[Tool, BoundCall]:
        """The tool and its checked arguments. Raises `ToolError`."""
        if call.call.fault:
            raise ToolError(call.call.fault)
        tool = self._tool(call.call.name)
        if tool is None:
            raise ToolError(UNKNOWN_OUTCOME if call.started else self._no_tool(call.call.name))
        if refusal := self.guard.refusal(call.call):
            raise ToolError(refusal)
        return tool, tool.bind(call.call.arguments, workspace=self._context.workspace)

    def _tool(self, name: str) -> Tool | None:
        """The tool `name`, also one that has appeared since the turn began."""
        if name not in self._tools:
            self._tools = {tool.spec.name: tool for tool in self._all} | self._tools
        return self._tools.get(name)

    def _no_tool(self, name: str) -> str:
        if len(self._tools) > _MOST_NAMED and SEARCH in self._tools:
            return f"There is no tool {name!r}, or not any more. {SEARCH} finds those there are."
        return f"There is no tool {name!r}. The tools are: {', '.join(self._tools)}."

    def _known_outcome(self, call: PendingCall, tool: Tool) -> ToolResult | None:
        """The result of a call that was begun before a crash; None when it may run (again)."""
        if not call.started or tool.effect in ("pure", "idempotent", "row"):
            return None
        if tool.effect == "file" and call.intent is not None:
            discard(call.intent, call.name)
            state = compare(call.intent)
            if state == "before":
                return None
            if state == "done":
                paths = ", ".join(one.path for one in call.intent.each)
                return text_result(f"Done before an interruption: {paths} has the new content.")
            return text_result(UNKNOWN_OUTCOME + report(call.intent), is_error=True)
        return text_result(UNKNOWN_OUTCOME, is_error=True)

    async def _allow(self, call: PendingCall, tool: Tool, bound: BoundCall) -> None:
        """Ask hooks and policy, and the owner where policy says so.

        Raises `PolicyError` on no, `TurnWaits` before any word.
        """
        await self._ask_hooks(call)
        verdict = self._policy.decide(tool, bound)
        if verdict.decision == "deny":
            raise PolicyError(f"Not allowed: {verdict.reason}")
        if verdict.decision == "ask":
            ruling = await self._context.approvals.ask(
                wanted(call.name, tool, bound, verdict=verdict, context=self._context)
            )
            if not ruling.allowed:
                raise PolicyError(f"{ruling.text or 'Not approved by the owner'}: {verdict.reason}")

    async def _ask_hooks(self, call: PendingCall) -> None:
        """Raises `PolicyError` when one objects."""
        if self._hooks is None or not self._hooks.watches("before_tool"):
            return
        session, turn = self._context.session, self._context.turn
        wanted_call = ToolWanted(session, turn, call.name, call.call.name, call.call.arguments)
        if refusal := await self._hooks.refusal(wanted_call):
            raise PolicyError(f"Not allowed: {refusal}")

    async def _tell(self, call: PendingCall, result: ToolResult) -> None:
        if self._hooks is None or not self._hooks.watches("after_tool"):
            return
        await self._hooks.tell(
            ToolFinished(
                session=self._context.session,
                turn=self._context.turn,
                call=call.name,
                name=call.call.name,
                text=result.text,
                is_error=result.is_error,
                duration=result.details.duration,
            )
        )

    async def _run(self, call: PendingCall, tool: Tool, bound: BoundCall, *, beside: Beside) -> ToolResult:
        async def starting(intent: FileIntent | None) -> None:
            await self._journal.started(call, effect=tool.effect, intent=intent)

        def progress(line: str) -> None:
            self._emit(ToolProgress(call=call.name, text=self._context.redactor.redact(line)))

        if tool.effect == "unsafe":
            await self._journal.started(call, effect=tool.effect, intent=None)
        mine = Beside([], [])
        context = replace(
            self._context,
            key=call.name,
            starting=starting,
            progress=progress,
            record=mine.records.append,
            post=mine.posts.append,
            intent=call.intent,
        )
        result = await bound.run(context)
        if not result.is_error:
            beside.records.extend(mine.records)
            beside.posts.extend(mine.posts)
        return result

    def _redacted(self, result: ToolResult) -> ToolResult:
        redact = self._context.redactor.redact
        content: tuple[ResultBlock, ...] = tuple(
            Text(redact(block.text)) if isinstance(block, Text) else block for block in result.content
        )
        said = result.details
        details = structs.replace(said, summary=redact(said.summary), diff=redact(said.diff))
        return structs.replace(result, content=content, details=details)


def _first(failures: BaseExceptionGroup[LimpetError]) -> LimpetError:
    """One of the failures, a lost lease before all others."""
    leaves: list[LimpetError] = []
    for failure in failures.exceptions:
        leaves.append(_first(failure) if isinstance(failure, BaseExceptionGroup) else failure)
    return next((failure for failure in leaves if isinstance(failure, LeaseError)), leaves[0])
