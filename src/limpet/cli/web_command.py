"""`limpet web`: opens the page, logged in by a link that is good for once."""

from __future__ import annotations

import os
import sys
import webbrowser
from importlib.util import find_spec

import click

from limpet.cli.group import Invocation
from limpet.cli.moments import now_ms
from limpet.cli.terminal import say
from limpet.config import page_password
from limpet.config.channels import GatewaySettings
from limpet.config.secrets import resolve
from limpet.config.server_token import server_token
from limpet.errors import InputError, UserError
from limpet.gateway import link
from limpet.gateway.status import living

GOOD_FOR = "The link logs you in once, within five minutes."


@click.group("web", context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.option("--no-open", is_flag=True, help="Only print the link.")
@click.pass_context
def web(context: click.Context, no_open: bool) -> None:
    """Open the page in the browser, logged in. The gateway has to run."""
    if context.invoked_subcommand is not None:
        return
    invocation = context.find_object(Invocation)
    assert invocation is not None
    address = _address(invocation)
    say(address)
    say(GOOD_FOR, error=True)
    if not no_open and _has_screen():
        webbrowser.open(address)


@web.command("password")
@click.option("--remove", is_flag=True, help="Have none any more; links and the token of the server still work.")
@click.pass_obj
def password(invocation: Invocation, *, remove: bool) -> None:
    """Set a password with which you can log in to the page. Read from standard input where that is no terminal."""
    root = invocation.home().root
    if remove:
        say("There is no password any more." if page_password.forget(root) else "There was no password.")
        return
    _needs_extra()
    if sys.stdin.isatty():
        text = str(click.prompt("Password", hide_input=True, confirmation_prompt=True))
    else:
        text = sys.stdin.read().rstrip("\r\n")
    page_password.keep(root, text)
    say("The password is set; only its hash is kept.")


def _address(invocation: Invocation) -> str:
    """The address of the page, with a one-time link. Raises `UserError`."""
    home, settings = invocation.home(), invocation.settings().settings.gateway
    _needs_extra()
    if not settings.port:
        raise UserError("The gateway has no server (gateway.port = 0).", hint="limpet config set gateway.port 8790")
    if living(str(home.run)) is None:
        raise UserError("No gateway runs, and the page is a part of it.", hint="Start one: limpet gateway")
    given = resolve(settings.token, key="gateway.token", root=home.root, environ=os.environ)
    token = server_token(given, host=settings.host, root=home.root)
    return f"http://{_host(settings)}:{settings.port}/web/login/{link.make(token, now=now_ms())}"


def _needs_extra() -> None:
    if find_spec("nicegui") is None:
        raise InputError("The page is not installed.", hint="Install it: pip install 'limpet[server,web]'")


def _host(settings: GatewaySettings) -> str:
    """A name under which a browser on this machine finds the server."""
    if settings.host in ("0.0.0.0", "::", ""):
        return "127.0.0.1"
    return f"[{settings.host}]" if ":" in settings.host else settings.host


def _has_screen() -> bool:
    """Whether a browser could show itself here."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
