"""`limpet hooks`: what looks in while turns run, and what one of them says to a sample event."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import get_args

import click

from limpet.agent.shell_hooks import Ground, ShellHook, judged, shell_hooks
from limpet.cli.group import WORDS, Invocation
from limpet.cli.terminal import pairs, say
from limpet.config.hooks import HookSettings
from limpet.config.load import Loaded
from limpet.config.paths import Home, find_workspace, prepare_home, prepare_workspace
from limpet.config.schema import PluginsSettings
from limpet.config.secrets import SecretRedactor, known_secrets
from limpet.errors import InputError, LimpetError
from limpet.plugins.installed import HOOKS, installed
from limpet.plugins.loading import load, why_not
from limpet.sandbox.run import Sandbox
from limpet.toolkit.hooks import FunctionHook
from limpet.types.hook import (
    Compacted,
    GatewayBegan,
    GatewayEnded,
    HookEvent,
    HookPoint,
    MessageReceived,
    MessageSending,
    RequestReady,
    SessionBegan,
    SessionEnded,
    ToolFinished,
    ToolWanted,
    TurnBegan,
    TurnFinished,
)

KEY, SESSION, TURN = "agent:main:main", "s-sample", "t-sample"
SAMPLES: Mapping[str, HookEvent] = MappingProxyType(
    {
        "message_received": MessageReceived(KEY, "telegram", "42", "What is new?"),
        "turn_started": TurnBegan(SESSION, TURN),
        "before_request": RequestReady(SESSION, TURN, "provider/model", messages=3, tools=20),
        "before_tool": ToolWanted(SESSION, TURN, "e1.0", "exec", '{"command": "ls -l"}'),
        "after_tool": ToolFinished(SESSION, TURN, "e1.0", "exec", "total 0", is_error=False, duration=12),
        "turn_ended": TurnFinished(SESSION, TURN, "done", "Nothing is new."),
        "message_sending": MessageSending(SESSION, "telegram", "42", "Nothing is new."),
        "session_started": SessionBegan(SESSION, KEY),
        "session_ended": SessionEnded(SESSION, KEY, "new"),
        "compacted": Compacted(SESSION, KEY, before=90_000, after=20_000),
        "gateway_started": GatewayBegan(("telegram",)),
        "gateway_stopped": GatewayEnded(),
    }
)
"""An event for each point, as a hook may be told it."""


@click.group("hooks", context_settings={"help_option_names": ["-h", "--help"]})
def hooks() -> None:
    """Commands of the configuration and functions of plug-ins that look in while turns run."""


@hooks.command("list")
@click.pass_obj
def list_hooks(invocation: Invocation) -> None:
    """Every hook, where it comes from, its points, and whether it is trusted."""
    settings = invocation.settings().settings
    rows = [(one.name, _described(one)) for one in settings.hooks]
    rows += [(one.name, f"plug-in, trusted; {_points(one.points)}") for one in _functions(settings.plugins)]
    for plugin in installed():
        trusted = settings.plugins.trusted.get(plugin.name)
        why = "not trusted, never imported" if trusted is None else why_not(plugin, trusted)
        if why:
            rows += [(f"{plugin.name}: {entry.name}", f"plug-in, {why}") for entry in plugin.of(HOOKS)]
    say(pairs(rows) if rows else "There are no hooks. docs/hooks.md shows how to make one.")


@hooks.command("test")
@click.argument("name", type=WORDS)
@click.option("--point", type=click.Choice(get_args(HookPoint)), help="At which point; its first one where not given.")
@click.option("--tool", type=WORDS, default="", help="The tool that the sample is about.")
@click.pass_obj
def test(invocation: Invocation, name: str, *, point: str | None, tool: str) -> int:
    """Run the hook NAME with a sample event, and show what it is told and says. Exit code 1 when that is no answer."""
    loaded, home = invocation.settings(), invocation.home()
    found: list[HookSettings | FunctionHook] = [one for one in loaded.settings.hooks if one.name == name]
    found += [one for one in _functions(loaded.settings.plugins) if one.name == name]
    if not found:
        raise InputError(f"There is no hook {name!r}.", hint="`limpet hooks list` shows those there are.")
    one = found[0]
    points = [each for each in get_args(HookPoint) if each in one.points]
    if point is not None and point not in points:
        raise InputError(f"{name} is not asked at {point}.", hint=f"It is at {', '.join(points)}.")
    event = _sample(point or points[0], tool)
    if isinstance(one, FunctionHook):
        return asyncio.run(_test_function(one, event, seconds=loaded.settings.plugins.hook_timeout))
    return asyncio.run(_test_command(one, event, loaded=loaded, home=home))


def _sample(point: str, tool: str) -> HookEvent:
    event = SAMPLES[point]
    match event:
        case ToolWanted() if tool:
            return ToolWanted(event.session, event.turn, event.call, tool, "{}")
        case ToolFinished() if tool:
            return ToolFinished(event.session, event.turn, event.call, tool, event.text, event.is_error)
        case _:
            return event


async def _test_function(hook: FunctionHook, event: HookEvent, *, seconds: float) -> int:
    try:
        async with asyncio.timeout(hook.timeout or seconds):
            said = await hook.run(event)
    except (TimeoutError, TypeError, ValueError, LimpetError) as error:
        return _no_answer(event, f"{type(error).__name__}: {error}")
    say(pairs([("told", repr(event)), ("said", said or "(nothing)"), ("means", _meaning(event, said))]))
    return 0


async def _test_command(settings: HookSettings, event: HookEvent, *, loaded: Loaded, home: Home) -> int:
    prepare_home(home)
    workspace = find_workspace(loaded.settings.agent.workspace, home)
    prepare_workspace(workspace)
    redactor = SecretRedactor(known_secrets(loaded.table, root=home.root, environ=os.environ))
    enabled = loaded.settings.tools.sandbox.mode == "auto"
    async with Sandbox(hidden=(str(home.root),), enabled=enabled) as sandbox:
        (hook,) = shell_hooks([settings], Ground(sandbox, str(workspace), redactor))
        try:
            return await _show(hook, event)
        except LimpetError as error:
            return _no_answer(event, str(error))


async def _show(hook: ShellHook, event: HookEvent) -> int:
    """Raises `ToolError` when it gave no answer."""
    if not hook.is_about(event):
        say(f"{hook.name} is about the tools {hook.settings.tool}, so it is not asked. --tool NAME names another.")
        return 0
    said = await hook.ask(event)
    code = "none" if said.exit_code is None else str(said.exit_code)
    say(pairs([("told", said.told.decode().strip()), ("said", said.output or "(nothing)"), ("exit code", code)]))
    say(pairs([("means", _meaning(event, judged(event, said)))]))
    return 0


def _meaning(event: HookEvent, said: str) -> str:
    if not isinstance(event, ToolWanted):
        return "it was told; what it says does not count at this point"
    return f"the call is refused: {said}" if said else "the call may run, as far as this hook goes"


def _no_answer(event: HookEvent, why: str) -> int:
    closed = isinstance(event, ToolWanted)
    counts = (
        "which counts as no: the call is refused" if closed else "which is logged and told once, and changes nothing"
    )
    say(pairs([("means", f"no answer, {counts}. {why}")]))
    return 1


def _described(one: HookSettings) -> str:
    about = f", tools {one.tool}" if one.tool != "*" else ""
    network = ", with the network" if one.network == "open" else ""
    return f"configuration, in the sandbox{network}; {_points(one.points)}{about}; {one.timeout:g} s; {one.command}"


def _points(points: tuple[HookPoint, ...] | frozenset[HookPoint]) -> str:
    return ", ".join(each for each in get_args(HookPoint) if each in points)


def _functions(settings: PluginsSettings) -> tuple[FunctionHook, ...]:
    """The hooks of plug-ins that are trusted; only those are imported."""
    if not settings.trusted:
        return ()
    return load(settings, is_taken=lambda name: False, warn=lambda text: say(f"warning: {text}", error=True)).hooks
