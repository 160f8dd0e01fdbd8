"""Files both ways: what you attach, and what the agent writes into its workspace."""

import asyncio
from pathlib import Path

from limpet import Agent
from limpet.testing.scripted import Answer, ScriptedModel, call

SCRIPT = [
    Answer(calls=(call("write_file", {"path": "report/summary.md", "content": "Three boats, two captains.\n"}),)),
    "The summary is in report/summary.md.",
]


async def main() -> None:
    Path("boats.csv").write_text("boat,captain\nNautilus,Ann\nPinta,Bob\nNina,Bob\n")
    async with Agent(model=ScriptedModel(SCRIPT)) as agent:
        print(await agent.ask("Summarise this table.", files=["boats.csv"]))
        print((agent.workspace / "report" / "summary.md").read_text())


asyncio.run(main())
