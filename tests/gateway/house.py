"""A whole gateway in a test: the real household over a real home, a strict fake model and fake channels."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from limpet.cli.group import Invocation
from limpet.config.channels import ChannelSettings
from limpet.gateway.gateway import Gateway
from limpet.household import Household, open_gateway
from limpet.testing.channel import FakeChannel
from limpet.testing.fakes import FakeOpenAI, Reply
from limpet.testing.fakes.script import Script, Seen
from limpet.types.channel import Channel

OWNER = ChannelSettings(owners=("ann",), groups=("*",))


@dataclass(frozen=True, slots=True)
class FakeDoors:
    """Implements the port `Opening` over channels of a test."""

    channels: Sequence[FakeChannel]
    settings: ChannelSettings
    broken: tuple[tuple[str, str], ...] = ()

    def configured(self) -> Mapping[tuple[str, str], ChannelSettings]:
        names = (*self.broken, *((one.name, one.account) for one in self.channels))
        return dict.fromkeys(names, self.settings)

    def open(self, kind: str, account: str) -> Channel:
        if (kind, account) in self.broken:
            raise ValueError("this adapter is broken")
        return next(one for one in self.channels if (one.name, one.account) == (kind, account))


@dataclass(slots=True)
class House:
    """`model` is the fake service; `gateway` runs."""

    home: Path
    model: FakeOpenAI
    gateway: Gateway
    agents: Household

    @property
    def asked(self) -> list[str]:
        """The newest user message of each request."""
        return [str(messages(seen.body)[-1]) for seen in self.model.requests]


def messages(body: object) -> list[object]:
    assert isinstance(body, dict)
    found: list[object] = body["messages"]
    return found


@asynccontextmanager
async def house(
    home: Path,
    *channels: FakeChannel,
    script: Script | None = None,
    settings: ChannelSettings = OWNER,
    config: str = "",
    broken: tuple[str, str] | None = None,
) -> AsyncGenerator[House]:
    """A running gateway; it is drained at the end of the block."""
    async with FakeOpenAI(script if script is not None else echo) as model:
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(
            f'agent.model = "lab/dreamer"\ngateway.port = 0\n{config}\n[providers.lab]\nbase_url = "{model.base_url}"\n'
            'api_key = "sk-test"\n'
        )
        made: list[Household] = []

        def doors(agents: Household, _: object) -> FakeDoors:
            made.append(agents)
            return FakeDoors(channels, settings, (broken,) if broken else ())

        async with open_gateway(Invocation(config=str(home / "config.toml")), doors) as gateway:
            stop = asyncio.Event()
            running = asyncio.create_task(gateway.run(stop))
            try:
                yield House(home, model, gateway, made[0])
            finally:
                stop.set()
                await running


def echo(seen: Seen) -> Reply:
    """Says what was said last."""
    last = messages(seen.body)[-1]
    content = last["content"] if isinstance(last, dict) else ""
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    *_, said = [
        one for one in re.sub(r"<runtime>.*?</runtime>", "\n", text, flags=re.DOTALL).splitlines() if one.strip()
    ]
    return Reply(text=(f"echo: {said}",))


async def told(fake: FakeChannel, count: int, chat: str = "ann") -> tuple[str, ...]:
    """The answers in a chat once there are as many."""
    await fake.until(lambda: len(fake.answers(chat)) >= count, within=30)
    return fake.answers(chat)
