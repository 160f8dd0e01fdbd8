"""A gateway with three fake platforms that live in a folder, to be killed. Arguments: config, that folder."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from limpet.cli.group import Invocation
from limpet.config.channels import ChannelSettings
from limpet.household import open_gateway
from limpet.testing.channel import FakeChannel
from limpet.testing.platform import FakePlatform
from limpet.types.channel import Traits
from tests.gateway.house import FakeDoors

TRAITS = {
    "alpha": Traits(edit_every=0.05, typing=1.0, reactions=True),
    "beta": Traits(limit=400),
    "gamma": Traits(repeatable=True, needs_link=False),
}
"""One that can change its messages, one with a small limit, one that drops what it has already got."""
SETTINGS = ChannelSettings(direct="open", groups=("*",), per_minute=100_000)


def channels(folder: Path) -> list[FakeChannel]:
    return [
        FakeChannel(name=name, traits=traits, platform=FakePlatform(folder / name)) for name, traits in TRAITS.items()
    ]


async def main(config: str, folder: Path) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    doors = FakeDoors(channels(folder), SETTINGS)
    async with open_gateway(Invocation(config=config), lambda agents, home: doors) as gateway:
        print("ready", flush=True)
        await gateway.run(stop)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
