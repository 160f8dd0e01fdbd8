"""`limpet mcp login` and `logout`: OAuth at a server over HTTP, with a browser here or anywhere."""

from __future__ import annotations

import asyncio
import os
import sys
import webbrowser
from collections.abc import Generator
from contextlib import contextmanager

from limpet.cli.terminal import say
from limpet.errors import InputError, UserError
from limpet.mcp.callback import Callback, listening
from limpet.mcp.kept import Records
from limpet.mcp.oauth import Logins, new_login
from limpet.mcp.sdk import connect, reason
from limpet.mcp.spec import ServerSpec

PATIENCE = 300.0
"""Seconds for a person to log in."""


async def login(spec: ServerSpec, logins: Logins, records: Records, *, browser: bool) -> None:
    """Log in to the server of `spec` and keep what that gives. Raises `UserError`."""
    if not spec.url:
        raise InputError(f"{spec.name} is a program, not an address: there is nowhere to log in.")
    refusals: list[str] = []
    asked: list[str] = []

    def show(address: str) -> None:
        asked.append(address)
        say(f"Open this address and log in:\n\n{address}\n\nWhere the browser runs on another machine, its last page")
        say("cannot be shown: paste its address here.")
        if browser and (sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            webbrowser.open(address)

    records.open_log(spec.name)
    async with listening(patience=PATIENCE) as callback:
        with _pasting(callback):
            signed = new_login(logins, spec.name, spec.url, callback=callback, show=show)
            try:
                async with connect(spec, records.log(spec.name), refusals=refusals, login=signed) as connection:
                    await connection.list_tools()
            except UserError:
                raise
            except Exception as error:  # the SDK raises errors of any kind
                raise InputError(f"Logging in to {spec.name} failed: {reason(error, refusals)}.") from error
    say(f"Logged in to {spec.name}." if asked else f"{spec.name} answers without a login.")


@contextmanager
def _pasting(callback: Callback) -> Generator[None]:
    """Meanwhile lines of the standard input are taken as the address to which the browser was sent."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        line = sys.stdin.readline()
        if not line:
            loop.remove_reader(sys.stdin)
        elif line.strip() and not callback.take(line):
            say("That address holds no answer. It begins with http://127.0.0.1: and has code= in it.", error=True)

    try:
        loop.add_reader(sys.stdin, read)
    except (OSError, ValueError):  # nothing that can be waited for, such as a file
        yield
        return
    try:
        yield
    finally:
        loop.remove_reader(sys.stdin)


def logout(spec: ServerSpec, logins: Logins) -> None:
    """Forget the login of the server of `spec`. Raises `UserError`."""
    if not logins.forget(spec.name):
        raise InputError(f"There is no login for {spec.name}.")
    say(f"Logged out of {spec.name} here. What it was allowed there is taken back on its own pages.")
