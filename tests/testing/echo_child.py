"""A program that answers what is said on the platform of a folder, until it is killed: `echo_child.py FOLDER`."""

from __future__ import annotations

import asyncio
import sys

from limpet.errors import ChannelError
from limpet.testing.channel import FakeChannel
from limpet.testing.platform import FakePlatform
from limpet.types.channel import Arrival, Body, Piece


class Echo:
    def __init__(self, channel: FakeChannel) -> None:
        self._channel = channel

    async def receive(self, arrival: Arrival) -> None:
        await self._channel.send(Piece(arrival.address, Body(arrival.text, arrival.text), arrival.event))

    def up(self) -> None:
        pass

    def down(self, reason: str) -> None:
        print(reason, file=sys.stderr)


async def main(folder: str) -> None:
    channel = FakeChannel(platform=FakePlatform(folder))
    while True:
        try:
            await channel.run(Echo(channel))
        except ChannelError as error:
            print(error, file=sys.stderr)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
