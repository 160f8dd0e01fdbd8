"""A channel of your own: a gateway in your program, with all its promises, for people on a platform that you know.

Here it is a mailbox in memory. What comes in is stored before `receive` returns; what goes out arrives in order.
"""

import asyncio
from dataclasses import dataclass, field

from limpet import Agent
from limpet.channels.fixed import Fixed
from limpet.testing.scripted import ScriptedModel
from limpet.types.channel import Arrival, Desk, Piece, Traits
from limpet.types.envelope import Address


@dataclass
class Mailbox(Fixed):
    """Implements the port `Channel`."""

    name: str = "mailbox"
    account: str = "main"
    traits: Traits = field(default_factory=Traits)
    arrived: asyncio.Queue[tuple[str, str]] = field(default_factory=asyncio.Queue[tuple[str, str]])
    answered: asyncio.Queue[str] = field(default_factory=asyncio.Queue[str])

    async def run(self, desk: Desk) -> None:
        desk.up()
        number = 0
        while True:
            sender, text = await self.arrived.get()
            number += 1
            await desk.receive(Arrival(Address(self.name, self.account, sender), f"mail-{number}", sender, text))

    async def send(self, piece: Piece) -> str:
        await self.answered.put(f"to {piece.address.chat}: {piece.body.plain}")
        return piece.key

    async def close(self) -> None:
        """Nothing is open."""


async def main() -> None:
    mailbox, stop = Mailbox(), asyncio.Event()
    agent = Agent(model=ScriptedModel(["Good morning, Ann.", "Good night, Ann."]), settings={"gateway.port": 0})
    serving = asyncio.create_task(agent.serve(mailbox, owners=["ann"], stop=stop))
    for text in ("Good morning!", "Good night!"):
        await mailbox.arrived.put(("ann", text))
        print(await mailbox.answered.get())
    stop.set()
    await serving


asyncio.run(main())
