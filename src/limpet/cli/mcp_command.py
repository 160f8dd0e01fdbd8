"""`limpet mcp`: servers of further tools."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import click
import msgspec

from limpet.cli.database import note
from limpet.cli.group import WORDS, Invocation
from limpet.cli.terminal import pairs, say
from limpet.config.load import load_settings
from limpet.config.paths import find_workspace
from limpet.config.schema import ServerSettings, Settings
from limpet.config.table import Key
from limpet.config.write import set_values, unset_value
from limpet.errors import InputError, UserError
from limpet.mcp.foreign import read_servers
from limpet.mcp.health import health
from limpet.mcp.kept import Record, Records
from limpet.mcp.names import server_parts, tool_name
from limpet.mcp.oauth import Logins
from limpet.mcp.server import Server
from limpet.mcp.spec import ServerSpec, spec_of
from limpet.types.clock import SystemClock
from limpet.types.ports import Clock

_TAIL = 20_000
"""Bytes of a log that are shown."""


@click.group("mcp", context_settings={"help_option_names": ["-h", "--help"]})
def mcp() -> None:
    """Servers of further tools (Model Context Protocol)."""


@mcp.command("list")
@click.argument("name", type=WORDS, default="")
@click.pass_obj
def list_servers(invocation: Invocation, name: str) -> None:
    """The servers and how they are; with NAME, the tools of that one. Nothing is started."""
    settings = invocation.settings().settings
    records = Records(invocation.home().mcp)
    if name:
        spec = _spec(invocation, settings, name)
        _show_tools(settings, spec, records.read(name))
        return
    if not settings.mcp.servers:
        say("No servers. `limpet mcp add NAME COMMAND …` adds one, `limpet mcp import FILE` takes over others'.")
        return
    for_all = ((one, _spec(invocation, settings, one)) for one in sorted(settings.mcp.servers))
    say(pairs((one, health(spec, records, enabled=settings.mcp.servers[one].enabled)) for one, spec in for_all))


@mcp.command("add", context_settings={"allow_interspersed_args": False})
@click.argument("name", type=WORDS)
@click.argument("command", type=WORDS, nargs=-1)
@click.option("--url", type=WORDS, default="", help="Of a server that runs elsewhere, instead of COMMAND.")
@click.option("--env", type=WORDS, multiple=True, metavar="NAME=VALUE", help="A variable it gets, such as KEY=env:KEY.")
@click.option("--header", type=WORDS, multiple=True, metavar="NAME=VALUE", help="Sent with each request to the URL.")
@click.pass_obj
def add(
    invocation: Invocation,
    name: str,
    *,
    command: tuple[str, ...],
    url: str,
    env: tuple[str, ...],
    header: tuple[str, ...],
) -> None:
    """Add the server NAME, started by COMMAND or found at a URL, and try it. Options of ours stand before NAME."""
    if bool(command) == bool(url):
        raise InputError("Give either a command or --url.")
    if name in load_settings(invocation.home().config, os.environ).settings.mcp.servers:
        raise InputError(f"There is a server {name} already.", hint=f"`limpet mcp remove {name}` takes it out.")
    server = ServerSettings(
        command=command[0] if command else "",
        args=command[1:],
        url=url,
        env=_named(env, "--env"),
        headers=_named(header, "--header"),
    )
    _store(invocation, {name: server})
    say(f"Added {name}.")
    asyncio.run(_test(invocation, name))


@mcp.command("import")
@click.argument("file", type=click.Path(dir_okay=False))
@click.pass_obj
def import_servers(invocation: Invocation, file: str) -> None:
    """Take over the servers of FILE, a configuration of Claude Desktop, OpenClaw, nanobot or the like."""
    try:
        text = Path(file).expanduser().read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}.") from None
    found, faults = read_servers(text)
    there = load_settings(invocation.home().config, os.environ).settings.mcp.servers
    taken = {name: server for name, server in found.items() if name not in there}
    _store(invocation, taken)
    for name in found:
        say(f"{name}: {'taken over' if name in taken else 'there is one of that name already, left as it is'}")
    for fault in faults:
        say(f"not taken over: {fault}", error=True)
    if taken:
        say("`limpet mcp test NAME` tries one. Keys that stood in the file now stand in your config.toml.")


@mcp.command("test")
@click.argument("name", type=WORDS)
@click.pass_obj
def test_server(invocation: Invocation, name: str) -> None:
    """Start the server NAME now, and say what tools it has or why it fails."""
    asyncio.run(_test(invocation, name))


@mcp.command("login")
@click.argument("name", type=WORDS)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.pass_obj
def login_command(invocation: Invocation, name: str, *, no_browser: bool) -> None:
    """Log in to the server NAME (OAuth); the tokens go into the store of secrets."""
    from limpet.cli.mcp_login import login  # with it comes a browser

    spec, home = _spec(invocation, invocation.settings().settings, name), invocation.home()
    asyncio.run(login(spec, Logins(home.root), Records(home.mcp), browser=not no_browser))
    note(home, "mcp.changed", name, detail="logged in")


@mcp.command("logout")
@click.argument("name", type=WORDS)
@click.pass_obj
def logout_command(invocation: Invocation, name: str) -> None:
    """Forget the login of the server NAME."""
    from limpet.cli.mcp_login import logout

    logout(_spec(invocation, invocation.settings().settings, name), Logins(invocation.home().root))
    note(invocation.home(), "mcp.changed", name, detail="logged out")


@mcp.command("remove")
@click.argument("name", type=WORDS)
@click.pass_obj
def remove(invocation: Invocation, name: str) -> None:
    """Take the server NAME out of the configuration, and forget what is known of it."""
    if not unset_value(invocation.home().config, ("mcp", "servers", name)):
        raise _unknown(name, load_settings(invocation.home().config, os.environ).settings)
    Records(invocation.home().mcp).remove(name)
    Logins(invocation.home().root).forget(name)
    note(invocation.home(), "mcp.changed", name, detail="removed")
    say(f"Removed {name}.")


@mcp.command("log")
@click.argument("name", type=WORDS)
@click.pass_obj
def show_log(invocation: Invocation, name: str) -> None:
    """The end of what the server NAME has said on its standard error."""
    path = Records(invocation.home().mcp).log(name)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{name} has no log: it was never started here.") from None
    say(data[-_TAIL:].decode("utf-8", "replace").rstrip("\n") or f"{name} has said nothing.")


async def _test(invocation: Invocation, name: str) -> None:
    settings = load_settings(invocation.home().config, os.environ).settings
    spec = _spec(invocation, settings, name)
    records = Records(invocation.home().mcp)
    clock: Clock = SystemClock()
    server = Server(spec, records, clock=clock)
    began = time.monotonic()
    try:
        await server.learn()
    finally:
        await server.close()
    say(f"{name} is ready after {time.monotonic() - began:.1f} s.")
    _show_tools(settings, spec, server.record)


def _show_tools(settings: Settings, spec: ServerSpec, record: Record) -> None:
    part = server_parts(settings.mcp.servers)[spec.name]
    shown = [tool for tool in record.tools if not spec.tools or tool.name in spec.tools]
    say(pairs((tool_name(part, spec.name, tool.name), tool.description.partition("\n")[0][:100]) for tool in shown))
    for prompt in record.prompts:
        say(f"prompt: /mcp {spec.name}.{prompt.name}  {prompt.description.partition(chr(10))[0][:100]}".rstrip())
    for one in record.dropped:
        say(f"left out: {one}")


def _spec(invocation: Invocation, settings: Settings, name: str) -> ServerSpec:
    if name not in settings.mcp.servers:
        raise _unknown(name, settings)
    home = invocation.home()
    workspace = str(find_workspace(settings.agent.workspace, home))
    return spec_of(name, settings.mcp.servers[name], root=home.root, environ=os.environ, workspace=workspace)


def _unknown(name: str, settings: Settings) -> UserError:
    return InputError(f"There is no server {name}. There are: {', '.join(sorted(settings.mcp.servers)) or 'none'}.")


def _store(invocation: Invocation, servers: dict[str, ServerSettings]) -> None:
    """Write what is not as it would be anyway."""
    usual = msgspec.to_builtins(ServerSettings())
    values: dict[Key, object] = {
        ("mcp", "servers", name, key): value
        for name, server in servers.items()
        for key, value in msgspec.to_builtins(server).items()
        if value != usual[key]
    }
    set_values(invocation.home().config, values)
    for name in servers:
        note(invocation.home(), "mcp.changed", name, detail="added")


def _named(pairs_given: tuple[str, ...], option: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs_given:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise InputError(f"{option} takes NAME=VALUE, not {pair!r}.")
        found[name] = value
    return found
