"""Memory: what the agent writes down in one conversation it knows in every other one."""

import asyncio

from limpet import Agent
from limpet.testing.scripted import Answer, ScriptedModel, call

FACT = "Ann's boat is called Nautilus."
SCRIPT = [
    Answer(calls=(call("memory_write", {"text": FACT, "kind": "lasting"}),)),
    "I will remember that.",
    Answer(calls=(call("memory_search", {"query": "the name of the boat"}),)),
    lambda request: "It is in my notes." if "Nautilus" in str(request.messages[-1]) else "I do not know.",
]


async def main() -> None:
    async with Agent(model=ScriptedModel(SCRIPT)) as agent:
        print(await agent.ask("Remember that my boat is called Nautilus."))
        print(await agent.session("tomorrow").ask("What is my boat called?"))
        print((agent.workspace / "MEMORY.md").read_text())


asyncio.run(main())
