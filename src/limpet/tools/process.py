"""`process`: the commands of this conversation that go on in the background."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Annotated, Literal

from msgspec import structs

from limpet.errors import PolicyError, ToolError
from limpet.store.processes import ProcessRow
from limpet.toolkit.schema import FunctionTool, exact_plan, tool
from limpet.toolkit.spill import capped
from limpet.tools.danger import danger
from limpet.tools.processes import Process, Processes, outcome
from limpet.types.approval import Wanted
from limpet.types.ports import ToolContext
from limpet.types.tool import Details, ToolResult, text_result

LONGEST_WAIT = 300
QUIET = 0.5
"""Seconds without output after which a poll that has some returns."""
_LOG_LINES = 200

_KEYS = {
    "backspace": "\x7f",
    "down": "\x1b[B",
    "end": "\x1b[F",
    "enter": "\r",
    "escape": "\x1b",
    "home": "\x1b[H",
    "left": "\x1b[D",
    "page-down": "\x1b[6~",
    "page-up": "\x1b[5~",
    "right": "\x1b[C",
    "space": " ",
    "tab": "\t",
    "up": "\x1b[A",
}
END = "eof"
"""The key that ends the input: ctrl-d on a terminal."""


def make_process(processes: Processes, *, networked: bool = False) -> FunctionTool:
    """The tool `process` over what `exec` has started."""

    @tool(
        effect="idempotent",
        whole=("text", "keys"),
        brief="Commands in the background: poll, write, kill.",
        sends=networked,
    )
    async def process(
        context: ToolContext,
        action: Literal["list", "poll", "log", "write", "kill"],
        id: Annotated[str, "such as p3"] = "",
        wait: Annotated[int, "seconds for new output"] = 5,
        text: Annotated[str, "write: a line of input"] = "",
        keys: Annotated[list[str] | None, "after text: ctrl-c, up, tab, eof; else enter"] = None,
        offset: Annotated[int, "log: first line"] = 0,
        limit: Annotated[int, "log: lines"] = _LOG_LINES,
    ) -> ToolResult:
        """Commands that exec left running: list, poll (new output), log (lines of all output), write, kill."""
        key = processes.key_of(context)
        if action == "list":
            return _list(processes.of(key))
        found = processes.find(key, id)
        if isinstance(found, ProcessRow):
            return _from_record(found, failed=action in ("write", "kill"))
        if not 0 <= wait <= LONGEST_WAIT:
            raise ToolError(f"wait is 0 to {LONGEST_WAIT} seconds")
        if action == "log":
            return _whose(await _log(found, context, offset=offset, limit=limit), found)
        if action == "kill":
            await processes.kill(found)
        elif action == "write":
            await _write(found, context, text=text, keys=keys)
        if action != "kill":
            await _settled(found, wait)
        result = await _news(found, context)
        await processes.told(found)
        return _whose(result, found)

    return process


def _whose(result: ToolResult, one: Process) -> ToolResult:
    """What a command that reaches the network prints may be strangers' words."""
    return structs.replace(result, trust="external") if one.job.networked else result


def _list(found: list[Process]) -> ToolResult:
    lines = [f"{one.name}: {_state(one)}: {one.line}" for one in found]
    return text_result("\n".join(lines) or "No command of this conversation is in the background.")


def _state(one: Process) -> str:
    """`running for 35 s`, or how it ended."""
    if one.over:
        return one.outcome()
    finished = one.finished
    if finished is None:
        where = " on the host" if one.job.place == "host" else ""
        return f"running for {one.command.seconds:.1f} s{where}"
    left = ", ".join(f"{child.pid} ({child.command[:80]})" for child in finished.background[:10])
    return f"{outcome(finished, one.job)[0]}; {one.command.seconds:.1f} s after its start these still run: {left}"


def _from_record(row: ProcessRow, *, failed: bool) -> ToolResult:
    how = row.outcome or "runs in another process of the agent"
    last = f" Its last lines:\n{row.tail}" if row.tail else ""
    return text_result(f"p{row.number} ({row.command}) {how}.{last}", is_error=failed)


async def _log(one: Process, context: ToolContext, *, offset: int, limit: int) -> ToolResult:
    lines = one.whole().strip("\n").split("\n")
    if limit < 1 or offset < 0:
        raise ToolError("offset is at least 0, limit at least 1")
    first = offset - 1 if offset else max(len(lines) - limit, 0)
    shown = lines[first : first + limit]
    text, spill, omitted = await capped("\n".join(shown), context)
    head = f"[{one.name}: {_state(one)}; lines {first + 1}-{first + len(shown)} of {len(lines)}]"
    return text_result(f"{head}\n{text}", details=Details(summary=head, spill=spill, omitted=omitted))


async def _news(one: Process, context: ToolContext) -> ToolResult:
    text, spill, omitted = await capped(one.news().strip("\n"), context)
    state = _state(one)
    details = Details(summary=f"{one.name} {state}", exit_code=_exit_code(one), spill=spill, omitted=omitted)
    return text_result(f"{text or '(no new output)'}\n[{one.name}: {state}]", details=details)


def _exit_code(one: Process) -> int | None:
    finished = one.finished
    return finished.exit_code if finished else None


async def _settled(one: Process, wait: float) -> None:
    """Until the command has ended, has been quiet after it wrote something, or `wait` seconds are over."""
    try:
        async with asyncio.timeout(wait):
            while not one.over:
                one.fresh.clear()
                async with asyncio.timeout(QUIET if one.has_news else None):
                    await one.fresh.wait()
    except TimeoutError:
        pass
    finished = one.finished
    if finished is not None and not finished.background:
        await one.gone.wait()  # a moment: its end is being recorded


async def _write(one: Process, context: ToolContext, *, text: str, keys: list[str] | None) -> None:
    if one.job.input == "none":
        raise ToolError(
            f"{one.name} takes no input", hint="Start it again with input=true, or pty=true for a terminal."
        )
    terminal = one.job.input == "terminal"
    wanted = ["enter"] if keys is None else [name.lower() for name in keys]
    data = text.encode("utf-8", "replace") + b"".join(_key(name, terminal) for name in wanted if name != END)
    await _allow(one, context, text=text, keys=wanted)
    await context.starting(None)
    try:
        await one.command.write(data + (b"\x04" if terminal and END in wanted else b""))
    except BrokenPipeError:
        raise ToolError(f"{one.name} reads no more input: {_state(one)}") from None
    except TimeoutError:
        raise ToolError(f"{one.name} does not read its input; a part of it may have been taken") from None
    if END in wanted and not terminal:
        one.command.running.close_input()


async def _allow(one: Process, context: ToolContext, *, text: str, keys: list[str]) -> None:
    """What goes to a command on the host, or would be asked for as a command, needs the owner's yes."""
    reason = danger(text)
    if not reason and one.job.place == "host":
        reason = "the command runs outside the sandbox, with the network and the whole machine"
    if not reason:
        return
    plan = exact_plan("process", {"write to": one.job.command, "text": text, "keys": keys}, whole=("write to", "text"))
    ruling = await context.approvals.ask(
        Wanted(
            call=context.key,
            tool="process",
            plan=context.redactor.redact(plan),
            hash=hashlib.sha256(f"{one.job.place} {context.workspace} {plan}".encode()).hexdigest(),
            reason=reason,
        )
    )
    if not ruling.allowed:
        raise PolicyError(f"{ruling.text or 'Not approved by the owner'}: {reason}")


def _key(name: str, terminal: bool) -> bytes:
    """The bytes of a key. Raises `ToolError`."""
    if name == "enter" and not terminal:
        return b"\n"
    if name.startswith("ctrl-") and len(name) == 6 and "a" <= name[5] <= "z":
        if not terminal:
            raise ToolError(
                f"{name} needs a terminal (pty=true)", hint="process kill ends it; the key eof ends its input."
            )
        return bytes([ord(name[5]) - 96])
    if name not in _KEYS:
        raise ToolError(f"there is no key {name!r}", hint=f"ctrl-a to ctrl-z, {END}, {', '.join(_KEYS)}")
    return _KEYS[name].encode()
