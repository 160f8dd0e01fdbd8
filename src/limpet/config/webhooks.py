"""Settings of webhooks: what other programs may send (`[webhooks]`), and where answers of jobs may be posted."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from limpet.errors import ConfigError

Count = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(ge=0)]
Signature = Literal["", "github", "gitlab", "stripe", "slack"]
OWN = ("wake", "agent")
"""Names that stand for themselves below `/hooks/`."""
DOCS = "docs/webhooks.md"
FIELD = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
PATH = re.compile(r"(payload|header)((?:\.[\w-]+)*)")
"""What stands in a template for something of an event, and what can."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class WebhookSettings(Struct, frozen=True):
    """What becomes of a POST to `/hooks/NAME`.

    `action`: a run of `agent`, or a wake of its heartbeat. `session`: each event by itself, all in one conversation of
    the hook's own, or in the main one. `template` is what the agent is told, with `{{payload.a.b}}` and
    `{{header.x-name}}` in it; empty: the whole payload. Its answer goes to the owner's newest chat, nowhere, or `to` a
    chat (`channel:chat`). `signature` says whose signature with `secret` an event has to have; without one it has to
    show `secret`, else `webhooks.token`. Of `events` alone, where there are any, something is made. `tools` are
    patterns, `profile` is which tools there are (empty: as for others than the owner); `dollars` and `minutes` bound a
    run, 0 = as any turn.
    """

    action: Literal["agent", "wake"] = "agent"
    agent: str = "main"
    session: Literal["isolated", "kept", "main"] = "isolated"
    template: str = ""
    deliver: Literal["last", "none"] = "last"
    to: str = ""
    signature: Signature = ""
    secret: str = ""
    events: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    profile: Literal["", "minimal", "messaging", "coding", "full"] = ""
    model: str = ""
    dollars: Amount = 0.0
    minutes: Amount = 0.0


class TargetSettings(Struct, frozen=True):
    """An address that answers of jobs are posted to, signed with `secret` (a reference)."""

    url: Annotated[
        str, Meta(pattern=r"^$|^(?i:https?)://[^\s/]", description="an address that begins with http:// or https://")
    ] = ""
    secret: str = ""


class WebhooksSettings(Struct, frozen=True):
    """`token` is what a program has to show that has no signature; never that of the server. `size` is the bytes of an
    event, `hooks` are those with a name of their own, `targets` where answers of jobs may be posted."""

    token: str = ""
    size: Count = 262_144
    hooks: dict[str, WebhookSettings] = field(default_factory=dict[str, WebhookSettings])
    targets: dict[str, TargetSettings] = field(default_factory=dict[str, TargetSettings])


def check(settings: WebhooksSettings, *, agents: tuple[str, ...], server: str) -> None:
    """Raises `ConfigError` for what could never do what it says. `server` is the setting of the server's token."""
    if settings.token and settings.token == server:
        raise ConfigError(
            "webhooks.token is that of the server, with which everything may be done.",
            hint="Make another: limpet secrets set webhooks, then limpet config set webhooks.token secret:webhooks.",
        )
    for name in (*settings.hooks, *settings.targets):
        if not _NAME.fullmatch(name):
            raise ConfigError(f"webhooks: {name!r} is no name.", hint="Use a-z, 0-9, _ and -, up to 64.")
    for name, one in settings.hooks.items():
        where = f"webhooks.hooks.{name}"
        if name in OWN:
            raise ConfigError(f"{where}: /hooks/{name} is there already.", hint="Give it another name.")
        if one.agent not in agents:
            raise ConfigError(f"{where}.agent: there is no agent {one.agent}.", hint=f"There are: {', '.join(agents)}.")
        if one.signature and not one.secret:
            raise ConfigError(f"{where}.secret is empty, and nothing can be signed with it.", hint=f"See {DOCS}.")
        for path in FIELD.findall(one.template):
            if PATH.fullmatch(path) is None:
                hint = "Write {{payload.a.b}} or {{header.x-name}}."
                raise ConfigError(f"{where}.template: {path!r} can never be filled in.", hint=hint)
    for name, target in settings.targets.items():
        if not target.url:
            raise ConfigError(f"webhooks.targets.{name}.url is empty.", hint=f"See {DOCS}.")
