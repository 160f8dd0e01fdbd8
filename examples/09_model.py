"""A model of your own: a profile, and a stream of events that ends with the whole answer."""

import asyncio
from collections.abc import AsyncGenerator

from limpet import Agent
from limpet.llm.exchange import Tally
from limpet.types.content import Text
from limpet.types.event import Done, ModelEvent, TextDelta
from limpet.types.message import AssistantMessage, Producer, Request, UserMessage
from limpet.types.profile import Profile
from limpet.types.usage import Usage


class Echo:
    """Says again what was said."""

    profile = Profile(provider="examples", wire="openai_chat", model="echo", window=32_000)

    async def stream(self, request: Request, tally: Tally | None = None) -> AsyncGenerator[ModelEvent, None]:
        said = [message for message in request.messages if isinstance(message, UserMessage)][-1]
        text = "".join(block.text for block in said.content if isinstance(block, Text))
        for word in text.split(" "):
            yield TextDelta(f"{word} ")
        producer = Producer(self.profile.provider, self.profile.wire, self.profile.model)
        yield Done(AssistantMessage((Text(text),), producer, usage=Usage(input=len(text), output=len(text))))

    async def close(self) -> None:
        """Nothing is open."""


async def main() -> None:
    async with Agent(model=Echo()) as agent:
        print(await agent.ask("Is anybody there?"))


asyncio.run(main())
