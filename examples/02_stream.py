"""The answer as it comes, with everything that happens meanwhile."""

import asyncio

from limpet import Agent
from limpet.testing.scripted import Answer, ScriptedModel, call
from limpet.types.event import TextDelta, ToolBegan, TurnEnded

SCRIPT = [Answer(calls=(call("list_dir"),)), "Your notes are in MEMORY.md."]


async def main() -> None:
    async with Agent(model=ScriptedModel(SCRIPT)) as agent:
        async for event in agent.stream("Where are my notes?"):
            match event:
                case ToolBegan():
                    print(f"[{event.name} {event.arguments}]")
                case TextDelta():
                    print(event.text, end="", flush=True)
                case TurnEnded():
                    print(f"\n[{event.state}]")
                case _:
                    pass


asyncio.run(main())
