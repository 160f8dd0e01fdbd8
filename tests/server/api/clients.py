"""The official clients, as programs have them, before a served gateway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from limpet.cli.database import change
from limpet.cli.group import Invocation
from limpet.store import tokens
from limpet.store.tokens import Scope
from limpet.testing.fakes.script import Reply, Script, Seen
from tests.gateway.house import echo
from tests.server.test_server import Here

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
"""A picture (PNG, base64)."""
WEATHER = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}


@asynccontextmanager
async def openai(here: Here, token: str = "") -> AsyncGenerator[AsyncOpenAI]:
    async with AsyncOpenAI(api_key=token or here.token, base_url=f"http://127.0.0.1:{here.port}/v1", timeout=30) as one:
        yield one


@asynccontextmanager
async def anthropic(here: Here, token: str = "") -> AsyncGenerator[AsyncAnthropic]:
    async with AsyncAnthropic(api_key=token or here.token, base_url=f"http://127.0.0.1:{here.port}", timeout=30) as one:
        yield one


async def made(here: Here, name: str = "phone", scopes: Sequence[Scope] = ("chat", "read"), agent: str = "") -> str:
    """A new token."""
    home = Invocation(config=str(here.home / "config.toml")).home()
    return await asyncio.to_thread(
        change, home, lambda one: tokens.create(one, name, scopes=scopes, agent=agent, now=1)
    )


def turns(here: Here) -> int:
    """How often the model was asked for an answer to a person."""
    return sum(1 for seen in here.model.requests if seen.path.endswith("/chat/completions"))


def scripted(*replies: Reply) -> Script:
    """These replies, then echoes."""
    left = list(replies)

    def answer(seen: Seen) -> Reply:
        return left.pop(0) if left else echo(seen)

    return answer
