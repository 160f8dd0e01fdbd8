"""Your own tools: typed functions. The annotations are what the model is told, and what calls are checked against."""

import asyncio
from typing import Annotated, Literal

from limpet import Agent, ToolContext, ToolError, ToolResult, text_result, tool
from limpet.testing.scripted import Answer, ScriptedModel, call

TIDES = {"Roscoff": {"high": "17:42", "low": "11:20"}, "Brest": {"high": "18:05", "low": "11:49"}}


@tool(effect="pure")
def tide(place: Annotated[str, "a harbour"], when: Literal["high", "low"] = "high") -> str:
    """When the tide is high or low today."""
    if place not in TIDES:
        raise ToolError(f"no harbour {place}", hint=f"There are: {', '.join(TIDES)}.")
    return TIDES[place][when]


@tool(effect="pure")
async def where(context: ToolContext) -> ToolResult:
    """Where the agent works."""
    return text_result(f"in {context.workspace}, session {context.session}")


SCRIPT = [
    Answer(calls=(call("tide", {"place": "Brest"}), call("tide", {"place": "Paris"}))),
    "In Brest at 18:05. Paris has no harbour.",
]


async def main() -> None:
    model = ScriptedModel(SCRIPT)
    async with Agent(model=model, tools=[tide, where]) as agent:
        print(await agent.ask("When is high tide in Brest, and in Paris?"))
        print(agent.session().transcript())


asyncio.run(main())
