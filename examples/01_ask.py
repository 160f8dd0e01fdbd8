"""One question to an agent in your own program.

`ScriptedModel` stands for a real one here, so that this runs without a key: leave `model` out to use the model at hand,
or name one, such as `model="anthropic/claude-sonnet-5"`.
"""

import asyncio

from limpet import Agent
from limpet.testing.scripted import ScriptedModel


async def main() -> None:
    async with Agent(model=ScriptedModel(["I am Limpet. I hold on to what you tell me."])) as agent:
        reply = await agent.ask("Who are you?")
        print(reply)
        print(f"{reply.usage.input} tokens in, {reply.usage.output} out; the files are in {agent.workspace.name}/")


asyncio.run(main())
