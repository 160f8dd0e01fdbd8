"""Hooks that are commands of the configuration: run in the sandbox, with the event as JSON on their input.

Before a tool the exit code and the output decide: 0 and nothing said lets the call run, 2 refuses it with what was said
as the reason, and a JSON object `{"decision": "allow" or "refuse", "reason": "…"}` says either. Anything else is no
answer, which the dispatch counts as no. At all other points the output does not count.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Literal

import msgspec
from msgspec import Raw, Struct

from limpet.config.hooks import HookSettings
from limpet.errors import SandboxError, ToolError
from limpet.sandbox.bubblewrap import search_path
from limpet.sandbox.limits import Limits
from limpet.sandbox.network import Network
from limpet.sandbox.run import Command, Job, Sandbox
from limpet.tools.protected import present
from limpet.types.hook import HookEvent, HookPoint, ToolFinished, ToolWanted
from limpet.types.ports import Redactor

REFUSES = 2
"""The exit code that says no."""
OUTPUT = 64_000
"""Bytes of what a hook says that are kept."""
REASON = 2_000
"""Characters of a reason that the model reads."""
_LIMITS = Limits(output=OUTPUT)


class Decision(Struct, frozen=True):
    """What a hook may say before a tool."""

    decision: Literal["allow", "refuse"]
    reason: str = ""


class Spoken(Struct, frozen=True):
    """What a hook was told, and what it said. `exit_code` is None when it was ended; `why` says for what then."""

    told: bytes
    output: str
    exit_code: int | None
    why: str = ""


class Ground(Struct, frozen=True):
    """What hooks run on: the sandbox, the workspace of their agent, and what keeps secrets out of what they read."""

    sandbox: Sandbox
    workspace: str
    redactor: Redactor


class ShellHook(Struct, frozen=True):
    """A command; implements `Hook`."""

    settings: HookSettings
    ground: Ground

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def points(self) -> frozenset[HookPoint]:
        return frozenset(self.settings.points)

    @property
    def timeout(self) -> float:
        return self.settings.timeout

    async def run(self, event: HookEvent) -> str:
        """Raises `ToolError` when it gave no answer."""
        if not self.is_about(event):
            return ""
        return judged(event, await self.ask(event))

    def is_about(self, event: HookEvent) -> bool:
        """Whether an event is of a tool that it looks at, or of none."""
        return not isinstance(event, ToolWanted | ToolFinished) or fnmatchcase(event.name, self.settings.tool)

    async def ask(self, event: HookEvent) -> Spoken:
        """Run it to its end. Raises `SandboxError` where there is no sandbox."""
        told, output = told_of(event, self.ground.redactor.redact), bytearray()

        def take(data: bytes) -> None:
            output.extend(data[: max(0, OUTPUT - len(output))])

        command = await self._started(take)
        feeding = asyncio.create_task(_feed(command, told))
        try:
            finished = await command.wait()
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
            await command.kill()
            command.running.mute()
        if finished is None:
            raise SandboxError("it was ended")
        why = f"it was ended after {self.timeout:g} s" if finished.timed_out else finished.limit
        return Spoken(told, output.decode("utf-8", "replace").strip(), finished.exit_code, why)

    async def _started(self, take: Callable[[bytes], None]) -> Command:
        """The running command. A cancelled start is waited for, so that its child is ended and not left behind."""
        starting = asyncio.create_task(self.ground.sandbox.start(self._job(), take), name=f"start of hook {self.name}")
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait({starting})
            if starting.exception() is None:
                await starting.result().kill()
            raise

    def _job(self) -> Job:
        workspace = os.path.realpath(self.ground.workspace)
        reads = tuple(os.path.realpath(os.path.expanduser(one)) for one in self.settings.reads)
        return Job(
            command=self.settings.command,
            workspace=workspace,
            folder=workspace,
            env={"PATH": search_path(), "HOME": workspace, "LANG": "C.UTF-8", "LIMPET_HOOK": self.name},
            timeout=self.timeout,
            limits=_LIMITS,
            readonly=(*present(workspace), *reads),
            input="pipe",
            network=Network(self.settings.network),
        )


async def _feed(command: Command, told: bytes) -> None:
    with suppress(BrokenPipeError, TimeoutError):  # it may not want its input; its exit code tells the rest
        await command.write(told)
    command.running.close_input()


def told_of(event: HookEvent, redact: Callable[[str], str]) -> bytes:
    """The event as a hook reads it: one JSON object in a line, without secrets; the arguments of a call as JSON."""
    fields = msgspec.convert(msgspec.to_builtins(event), dict[str, object])
    shown: dict[str, object] = {key: _redacted(value, redact) for key, value in fields.items()}
    if isinstance(event, ToolWanted):
        with suppress(msgspec.DecodeError):
            arguments = str(shown["arguments"]).encode("utf-8", "replace")
            msgspec.json.decode(arguments)
            shown["arguments"] = Raw(arguments)
    return msgspec.json.encode(shown) + b"\n"


def _redacted(value: object, redact: Callable[[str], str]) -> object:
    return redact(value).encode("utf-8", "replace").decode() if isinstance(value, str) else value


def judged(event: HookEvent, said: Spoken) -> str:
    """Why the call must not run; empty when it may. Raises `ToolError` when that was no answer."""
    if said.exit_code is None:
        raise ToolError(said.why or "it was ended")
    if not isinstance(event, ToolWanted):
        if said.exit_code:
            raise ToolError(f"exit code {said.exit_code}: {_short(said.output)}")
        return ""
    if said.exit_code == REFUSES:
        return _short(said.output) or "no"
    if said.exit_code:
        raise ToolError(f"exit code {said.exit_code}: {_short(said.output)}")
    if not said.output:
        return ""
    try:
        found = msgspec.json.decode(said.output, type=Decision)
    except msgspec.DecodeError:
        raise ToolError(f"it said neither allow nor refuse: {_short(said.output)}") from None
    return "" if found.decision == "allow" else _short(found.reason) or "no"


def _short(text: str) -> str:
    return text if len(text) <= REASON else f"{text[:REASON]}…"


def shell_hooks(settings: Iterable[HookSettings], ground: Ground) -> tuple[ShellHook, ...]:
    """The hooks of the configuration, in their order."""
    return tuple(ShellHook(one, ground) for one in settings)
