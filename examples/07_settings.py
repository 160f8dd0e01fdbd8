"""Settings of your program over those of the file: every one of docs/config.md, by its dotted name."""

import asyncio

from limpet import Agent, LimpetError
from limpet.testing.scripted import Answer, ScriptedModel, call

SCRIPT = [Answer(calls=(call("list_dir"),)) for _ in range(2)]


async def main() -> None:
    settings = {"agent.limits.steps": 2, "tools.browser.enabled": False, "user.timezone": "Europe/Paris"}
    async with Agent(model=ScriptedModel([*SCRIPT, "as far as I came"]), settings=settings) as agent:
        reply = await agent.ask("Look everywhere.")
        print(reply, reply.notices)
    try:
        async with Agent(settings={"agent.limits.steps": "many"}):
            pass
    except LimpetError as error:
        print(error.present())


asyncio.run(main())
