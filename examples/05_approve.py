"""What may run is decided by policy, and what it asks about by you: here a function of the program."""

import asyncio

from limpet import Agent
from limpet.testing.scripted import Answer, ScriptedModel, call
from limpet.types.approval import Approval


def approve(approval: Approval) -> bool:
    print(f"asked: {approval.wanted.plan}\n  because {approval.wanted.reason}")
    return "rm" not in approval.wanted.plan


SCRIPT = [
    Answer(calls=(call("exec", {"command": "rm -rf /", "place": "host"}),)),
    "That was refused, so I leave it.",
]


async def main() -> None:
    async with Agent(model=ScriptedModel(SCRIPT), approve=approve) as agent:
        print(await agent.ask("Clean up, please."))


asyncio.run(main())
