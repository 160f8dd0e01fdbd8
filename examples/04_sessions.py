"""Several conversations: each has its own log, and all have the same files and memory. They are there the next time."""

import asyncio

from limpet import Agent
from limpet.testing.scripted import ScriptedModel


async def say(name: str, text: str) -> str:
    """As a later run of the program would: everything is read from the disk."""
    model = ScriptedModel([lambda request: f"message {len(request.messages) // 2 + 1} of {name}"])
    async with Agent(model=model) as agent:
        return str(await agent.session(name).ask(text))


async def main() -> None:
    print(await say("ann", "My boat is called Nautilus."))
    print(await say("bob", "Mine is called Pinta."))
    print(await say("ann", "What is my boat called?"))


asyncio.run(main())
