"""What `limpet onboard` finds on this machine, and whether it works: one small real request to each."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Literal

from msgspec import Struct, structs

from limpet.channels.trial import greet
from limpet.config.channels import ChannelSettings
from limpet.config.vault import Vault
from limpet.errors import (
    ChannelError,
    ConfigError,
    CredentialError,
    LimpetError,
    NoModelError,
    RefusedError,
    RequestError,
)
from limpet.llm.build import build
from limpet.llm.choose import ModelSettings, choose
from limpet.llm.http import Deadlines
from limpet.llm.local import PROBE_SECONDS, models_at
from limpet.llm.profiles import services
from limpet.llm.retry import Patience
from limpet.types.clock import SystemClock
from limpet.types.content import Text
from limpet.types.event import Done
from limpet.types.message import Request, Sampling, UserMessage

TRIAL = Deadlines(connect=8.0, first_byte=20.0, idle=20.0, total=30.0)
FEW = 16
"""Tokens of the answer; OpenAI's Responses API takes no smaller limit."""
TOKENS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "telegram": {"token": ("TELEGRAM_BOT_TOKEN", "TELEGRAM_TOKEN")},
    "discord": {"token": ("DISCORD_BOT_TOKEN", "DISCORD_TOKEN")},
    "slack": {"bot_token": ("SLACK_BOT_TOKEN",), "app_token": ("SLACK_APP_TOKEN",)},
}
"""The usual variables of a channel's tokens, by kind and setting."""

State = Literal["works", "refused", "unreachable", "untested"]


class Found(Struct, frozen=True):
    """Something that can be used: `name` is a provider or a kind of channel, `where` says where it was found."""

    kind: Literal["model", "channel"]
    name: str
    where: str
    state: State = "untested"
    text: str = ""


def find_keys(vault: Vault, environ: Mapping[str, str]) -> Iterator[Found]:
    """Keys of model services in the environment and in the store of secrets."""
    try:
        stored = vault.names() if vault.exists else {}
    except ConfigError:
        stored = {}  # damaged: the doctor says it
    for name, service in services().items():
        if service.auto and service.key_env and environ.get(service.key_env, "").strip():
            yield Found("model", name, f"env:{service.key_env}")
        elif name in stored:
            yield Found("model", name, f"secret:{name}")


async def find_servers() -> list[Found]:
    """Model servers on this machine, at their usual ports; within half a second."""
    local = [(name, service.base_url) for name, service in services().items() if service.ports]
    asked = await asyncio.gather(*(_models(url) for _, url in local))
    return [Found("model", name, url) for (name, url), models in zip(local, asked, strict=True) if models]


async def _models(url: str) -> list[str]:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            return await models_at(url)
    except (TimeoutError, OSError):
        return []


def find_channels(environ: Mapping[str, str]) -> Iterator[Found]:
    """Channels whose tokens are all in the environment."""
    for kind in TOKENS:
        if references := tokens_of(kind, environ):
            yield Found("channel", kind, ", ".join(references.values()))


def tokens_of(kind: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The tokens of a kind of channel in the environment, as references by setting; empty unless all are there."""
    found: dict[str, str] = {}
    for setting, names in TOKENS.get(kind, {}).items():
        name = next((name for name in names if environ.get(name, "").strip()), "")
        if not name:
            return {}
        found[setting] = f"env:{name}"
    return found


async def try_model(found: Found, settings: ModelSettings, *, named: str) -> Found:
    """Ask the model `named` (`provider/model`) for a word. There may be no database yet to count it in; it costs next
    to nothing.
    """
    try:
        choice = await choose(settings, {**os.environ, "LIMPET_MODEL": ""}, named=named)
        model = build(choice, deadlines=TRIAL, local_factor=2.0, patience=Patience(attempts=1))
        request = Request(
            session="onboard",
            system="Answer in one word.",
            tools=(),
            messages=(UserMessage((Text("Say OK."),)),),
            sampling=Sampling(max_tokens=FEW),
            rhythm="once",
        )
        try:
            async with aclosing(model.stream(request)) as events:
                async for event in events:
                    if isinstance(event, Done):
                        return structs.replace(found, state="works", text=f"{choice.profile.reference} answers")
        finally:
            await model.close()
    except (CredentialError, ConfigError, NoModelError) as error:  # the last: no key, though one is needed
        return structs.replace(found, state="refused", text=str(error))
    except RequestError as error:
        if error.status == 404:
            return structs.replace(found, state="refused", text=str(error))
        return structs.replace(found, state="works", text=f"reached, the key is taken ({error})")
    except LimpetError as error:
        return structs.replace(found, state="unreachable", text=str(error))
    return structs.replace(found, state="unreachable", text="the answer ended too soon")


async def try_channel(found: Found, settings: ChannelSettings, *, secret: Callable[[str], str]) -> Found:
    """Ask the platform who we are. `secret` gives the value of a reference."""
    try:
        name = await greet(settings, secret=secret, clock=SystemClock())
    except (RefusedError, ConfigError) as error:
        return structs.replace(found, state="refused", text=str(error))
    except ChannelError as error:
        return structs.replace(found, state="unreachable", text=str(error))
    return structs.replace(found, state="works", text=name) if name else found
