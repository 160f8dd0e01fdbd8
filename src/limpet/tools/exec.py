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
from limpet.tools.output import Collector, to_text
from limpet.tools.paths import STATE, Root, missing
from limpet.tools.protected import present
from limpet.types.ports import ToolContext
from limpet.types.tool import Details, ToolResult, text_result

LONGEST = 3_600
"""Seconds, the most a call may ask for."""

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

    `network` is what they see of it in the sandbox.
    """

    limits: Limits = Limits()
    encoding: str = ""
    env: tuple[tuple[str, str], ...] = ()
    network: Network = NO_NETWORK


def environment(workspace: str, settings: ExecSettings) -> dict[str, str]:
    """The whole environment of a command: nothing of the agent's own, so no secret can be in it."""
    return {"PATH": search_path(), "HOME": workspace, "USER": "limpet", **_NON_INTERACTIVE, **dict(settings.env)}


def make_exec(sandbox: Sandbox, settings: ExecSettings) -> FunctionTool:
    """The tool `exec` on `sandbox`. With a network, commands can carry words out, and bring strangers' in."""
    networked = settings.network.kind != "none"

    @tool(effect="unsafe", whole=("command",), brief="Run a shell command.", sends=networked)
    async def exec(
        context: ToolContext,
        command: str,
        timeout: Annotated[int, "seconds"] = 120,
        workdir: Annotated[str, "folder in the workspace"] = ".",
        place: Annotated[Literal["sandbox", "host"], "host: network and whole machine, asks the owner"] = "sandbox",
    ) -> ToolResult:
        """Run a shell command (sh) in the workspace; no input, no network in the sandbox but to hosts the owner
        allowed; long output is cut in the middle and kept whole in a file."""
        job = _job(context, sandbox, settings, command=command, timeout=timeout, workdir=workdir, place=place)
        collected = Collector(settings.limits.output)
        progress = _Progress(context)

        def take(data: bytes) -> None:
            collected.add(data)
            progress.add(data)

        finished = await sandbox.run(job, take)
        text = collected.take_text(fallback=settings.encoding)
        result = await _result(text, finished, context=context, job=job)
        return structs.replace(result, trust="external") if networked else result

    return exec


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
    with Root(context.workspace) as root:
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
        hidden=(os.path.join(workspace, STATE),),
        readonly=present(workspace),
        network=settings.network,
    )


async def _result(text: str, finished: Finished, *, context: ToolContext, job: Job) -> ToolResult:
    text, spill, omitted = await capped(text.strip("\n"), context)
    lines = [text or "(no output)"]
    outcome, failed = _outcome(finished, job)
    lines.append(f"[{outcome}]")
    if finished.background:
        shown = ", ".join(f"{child.pid} ({child.command[:80]})" for child in finished.background[:10])
        lines.append(
            f"[Still running in the background: {shown}. Their further output is not kept; "
            "they run until they end by themselves or the agent ends.]"
        )
    details = Details(
        summary=outcome,
        exit_code=finished.exit_code,
        spill=spill,
        omitted=omitted,
        duration=finished.duration,
    )
    return text_result("\n".join(lines), details=details, is_error=failed)


def _outcome(finished: Finished, job: Job) -> tuple[str, bool]:
    if finished.timed_out:
        return f"timed out after {job.timeout:g} s; it and its children were killed", True
    code = finished.exit_code
    by_signal = f" (signal {code - 128})" if code and 128 < code < 128 + 65 else ""
    how = "killed" if code is None else f"exit code {code}{by_signal}"
    if finished.limit == "memory":
        return f"{how}: it used over {job.limits.memory // 1024**2:,} MB of memory", True
    if finished.limit == "processes":
        return f"{how}: it had over {job.limits.processes} processes", True
    return how, code != 0
