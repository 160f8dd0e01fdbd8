"""`exec`: a shell command in the sandbox, or on the host once that was approved."""

from __future__ import annotations

import os
import time
from typing import Annotated, Literal

from msgspec import Struct, structs

from limpet.errors import ToolError
from limpet.sandbox.bubblewrap import search_path
from limpet.sandbox.limits import Limits
from limpet.sandbox.network import NO_NETWORK, Network
from limpet.sandbox.run import Finished, Job, Sandbox
from limpet.toolkit.schema import FunctionTool, tool
from limpet.toolkit.spill import capped
from limpet.tools.beside import Folders, none_beside
from limpet.tools.newcomers import told
from limpet.tools.output import to_text
from limpet.tools.paths import STATE, Root, missing
from limpet.tools.processes import Process, Processes, outcome
from limpet.tools.protected import present
from limpet.types.ports import ToolContext
from limpet.types.tool import Details, ToolResult, text_result

LONGEST = 86_400
"""Seconds, the most that a command may be given."""
LONGEST_WAIT = 3_600
"""Seconds, the most that its call may wait for it."""

_NON_INTERACTIVE = {
    "CI": "1",
    "DEBIAN_FRONTEND": "noninteractive",
    "EDITOR": "false",
    "GCM_INTERACTIVE": "never",
    "GIT_ASKPASS": "false",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oConnectTimeout=10",
    "GIT_TERMINAL_PROMPT": "0",
    "LANG": "C.UTF-8",
    "MANPAGER": "cat",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "PIP_NO_INPUT": "1",
    "PYTHONIOENCODING": "utf-8",
    "PYTHONUNBUFFERED": "1",
    "SSH_ASKPASS": "false",
    "SSH_ASKPASS_REQUIRE": "force",
    "SUDO_ASKPASS": "false",
    "SYSTEMD_PAGER": "",
    "TERM": "dumb",
    "VISUAL": "false",
}
"""Programs that would open an editor, a pager or a prompt fail at once instead (case C50)."""


class ExecSettings(Struct, frozen=True):
    """How commands run. `encoding` decodes output that is not UTF-8 (such as `cp936`); `env` is added as it is.

    `network` is what they see of it in the sandbox, `shown` which folders beside the workspace, read-only.
    """

    limits: Limits = Limits()
    encoding: str = ""
    env: tuple[tuple[str, str], ...] = ()
    network: Network = NO_NETWORK
    shown: Folders = none_beside


def environment(workspace: str, settings: ExecSettings) -> dict[str, str]:
    """The whole environment of a command: nothing of the agent's own, so no secret can be in it."""
    return {"PATH": search_path(), "HOME": workspace, "USER": "limpet", **_NON_INTERACTIVE, **dict(settings.env)}


def make_exec(sandbox: Sandbox, settings: ExecSettings, *, processes: Processes | None = None) -> FunctionTool:
    """The tool `exec` on `sandbox`; what goes on in the background is kept in `processes`.

    With a network, commands can carry words out, and bring strangers' in.
    """
    keeper = processes or Processes(sandbox)
    networked = settings.network.kind != "none"

    @tool(effect="unsafe", whole=("command",), brief="Run a shell command.", sends=networked)
    async def exec(
        context: ToolContext,
        command: str,
        timeout: Annotated[int, "seconds, 120"] = 120,
        workdir: Annotated[str, "folder in the workspace"] = ".",
        place: Annotated[Literal["sandbox", "host"], "host: network and whole machine, asks the owner"] = "sandbox",
        wait: Annotated[int, "seconds (10), then it goes on in the background"] = 10,
        input: Annotated[bool, "takes input from the tool process"] = False,
        pty: Annotated[bool, "in a terminal"] = False,
    ) -> ToolResult:
        """Run a shell command (sh) in the workspace, in the sandbox without network but to hosts the owner allowed;
        long output is kept whole in a file."""
        job = _job(context, sandbox, settings, command=command, timeout=timeout, workdir=workdir, place=place)
        job = structs.replace(job, input="terminal" if pty else "pipe" if input else "none")
        patience = _patience(keeper, context, job, wait=wait)
        process = await keeper.start(job, context, fallback=settings.encoding)
        process.listener = _Progress(context).add
        settled = False
        try:
            finished = await process.command.wait(patience)
            await _settle(keeper, process, finished, context=context)
            settled = True
        finally:
            if not settled:
                await keeper.give_up(process)
        result = await _result(process, finished, context=context)
        return structs.replace(result, trust="external") if job.networked else result

    return exec


async def _settle(keeper: Processes, process: Process, finished: Finished | None, *, context: ToolContext) -> None:
    """The call is over: what still runs goes on in the background."""
    left = finished is None or bool(finished.background)
    if left and (finished is None or _has_room(keeper, context)):
        await keeper.to_background(process)
    elif left:
        process.command.running.mute()
    else:
        await keeper.settle(process)


def _has_room(keeper: Processes, context: ToolContext) -> bool:
    return context.background and keeper.has_room(keeper.key_of(context))


def _patience(keeper: Processes, context: ToolContext, job: Job, *, wait: int) -> float | None:
    """Seconds after which the command goes on in the background; None when it has to end within its call."""
    if not 0 <= wait <= LONGEST_WAIT:
        raise ToolError(f"wait is 0 to {LONGEST_WAIT} seconds")
    if _has_room(keeper, context):
        return wait
    if wait and job.input == "none":
        return None
    raise ToolError("no more commands can run in the background here", hint="End one with process kill.")


class _Progress:
    """Shows people the last line of the output, at most twice a second."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._next = 0.0

    def add(self, data: bytes) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        line = to_text(data[-2_000:]).strip().rpartition("\n")[2]
        if line:
            self._next = now + 0.5
            self._context.progress(self._context.redactor.redact(line)[:200])


def _job(
    context: ToolContext,
    sandbox: Sandbox,
    settings: ExecSettings,
    *,
    command: str,
    timeout: int,
    workdir: str,
    place: Literal["sandbox", "host"],
) -> Job:
    if not command.strip():
        raise ToolError("the command is empty")
    if "\x00" in command:
        raise ToolError("a command cannot hold a NUL byte")
    if not 1 <= timeout <= LONGEST:
        raise ToolError(f"timeout is 1 to {LONGEST} seconds")
    with Root(context.workspace, veil=context.veil) as root:
        spot = root.find(workdir)
        if spot.kind == "missing":
            raise missing(workdir)
        if spot.kind != "folder":
            raise ToolError(f"workdir {workdir!r} is a file")
        workspace, folder = root.path, spot.path
    return Job(
        command=command.encode("utf-8", "replace").decode("utf-8"),
        workspace=workspace,
        folder=folder,
        env=environment(workspace, settings),
        timeout=timeout,
        limits=settings.limits,
        place="host" if sandbox.report.kind == "none" else place,
        hidden=tuple(os.path.join(workspace, one) for one in (STATE, *context.veil.hidden)),
        readonly=(*present(workspace), *settings.shown()),
        network=settings.network,
    )


async def _result(process: Process, finished: Finished | None, *, context: ToolContext) -> ToolResult:
    text = process.news() if process.number else process.output.take_text(fallback=process.fallback)
    text, spill, omitted = await capped(text.strip("\n"), context)
    if finished is None:
        lines = [text or "(no output yet)"]
        did, failed = f"still running in the background as {process.name}", False
        lines.append(f"[{did.capitalize()}, at most {process.job.timeout:g} s. See the tool process; its end is told.]")
    else:
        lines = [text or "(no output)"]
        did, failed = outcome(finished, process.job)
        lines.append(f"[{did}]")
        if process.moved:
            lines.append(told(process.moved))
        if finished.background:
            lines.append(_left(process, finished))
    details = Details(
        summary=did,
        exit_code=finished.exit_code if finished else None,
        spill=spill,
        omitted=omitted,
        duration=finished.duration if finished else round(process.command.seconds * 1000),
    )
    return text_result("\n".join(lines), details=details, is_error=failed)


def _left(process: Process, finished: Finished) -> str:
    shown = ", ".join(f"{child.pid} ({child.command[:80]})" for child in finished.background[:10])
    if process.number:
        return f"[Still running in the background: {shown}. Together they are {process.name} for the tool process.]"
    return f"[Still running in the background: {shown}. Their further output is not kept.]"
