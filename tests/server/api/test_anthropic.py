"""Anthropic's own client, unmodified."""

from __future__ import annotations

import asyncio
from pathlib import Path

import anthropic as sdk
import pytest

from limpet.testing.fakes.script import Call, Reply
from tests.gateway.house import messages
from tests.server.api.clients import PIXEL, WEATHER, anthropic, scripted, turns
from tests.server.test_server import served

TOOL = {"name": "weather", "description": "It.", "input_schema": WEATHER}
HELLO = [{"role": "user", "content": "hello"}]


def test_an_agent_answers(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here, anthropic(here) as client:
            answer = await client.messages.create(model="limpet", max_tokens=500, messages=HELLO)  # type: ignore
            assert [block.text for block in answer.content if block.type == "text"] == ["echo: hello"]
            assert answer.stop_reason == "end_turn"
            assert (answer.usage.input_tokens, answer.usage.output_tokens) == (100, 10)

    asyncio.run(main())


def test_an_answer_is_streamed(home: Path) -> None:
    async def main() -> None:
        replies = scripted(Reply(text=("Lim", "pets ", "hold.")))
        async with served(home, script=replies) as here, anthropic(here) as client:
            async with client.messages.stream(model="limpet", max_tokens=500, messages=HELLO) as stream:  # type: ignore
                pieces = [piece async for piece in stream.text_stream]
                final = await stream.get_final_message()
            assert "".join(pieces) == "Limpets hold."
            assert len(pieces) > 1
            assert final.usage.output_tokens == 10

    asyncio.run(main())


def test_who_tells_the_whole_history_goes_on_with_the_same_conversation(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here, anthropic(here) as client:
            said: list[dict[str, str]] = []
            for text in ("one", "two"):
                said.append({"role": "user", "content": text})
                answer = await client.messages.create(model="limpet", max_tokens=500, system="Be brief.", messages=said)  # type: ignore
                said.append({"role": "assistant", "content": answer.content[0].text})  # type: ignore
            assert said[-1]["content"] == "echo: two"
            assert str(messages(here.model.requests[-1].body)).count("echo: one") == 1
            assert turns(here) == 2

    asyncio.run(main())


@pytest.mark.parametrize("stream", [False, True])
def test_tools_of_the_program_are_called_by_the_program(home: Path, stream: bool) -> None:
    async def main() -> None:
        call = Reply(text=("I look.",), calls=(Call("weather", '{"place": "Brest"}'),))
        more = {"model": "limpet", "max_tokens": 500, "tools": [TOOL]}
        async with served(home, script=scripted(call, Reply(text=("It rains.",)))) as here, anthropic(here) as client:
            said: list[object] = list(HELLO)
            if stream:
                async with client.messages.stream(messages=said, **more) as events:  # type: ignore
                    first = await events.get_final_message()
            else:
                first = await client.messages.create(messages=said, **more)  # type: ignore
            assert first.stop_reason == "tool_use"
            text, made = first.content
            assert text.type == "text"
            assert made.type == "tool_use"
            assert (made.name, made.input) == ("weather", {"place": "Brest"})
            result = {"type": "tool_result", "tool_use_id": made.id, "content": "rain"}
            said += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
            second = await client.messages.create(messages=said, **more)  # type: ignore
            assert second.content[0].text == "It rains."  # type: ignore

    asyncio.run(main())


def test_pictures_reach_the_model(home: Path) -> None:
    async def main() -> None:
        source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
        said = [{"role": "user", "content": [{"type": "image", "source": source}]}]
        config = '[models.catalog."lab/dreamer"]\nimages = true\n'
        async with served(home, config=config) as here, anthropic(here) as client:
            await client.messages.create(model="limpet", max_tokens=500, messages=said)  # type: ignore
            assert PIXEL in here.model.requests[-1].raw.decode()

    asyncio.run(main())


def test_models_are_the_agents(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here, anthropic(here) as client:
            assert [one.id async for one in client.models.list()] == ["limpet", "limpet/main"]
            assert (await client.models.retrieve("limpet")).display_name == "limpet"

    asyncio.run(main())


def test_errors_are_its_own(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here:
            async with anthropic(here, "wrong") as client:
                with pytest.raises(sdk.AuthenticationError) as refused:
                    await client.messages.create(model="limpet", max_tokens=500, messages=HELLO)  # type: ignore
                assert refused.value.body["error"]["type"] == "authentication_error"  # type: ignore
            async with anthropic(here) as client:
                with pytest.raises(sdk.NotFoundError):
                    await client.messages.create(model="claude", max_tokens=500, messages=HELLO)  # type: ignore
                with pytest.raises(sdk.BadRequestError, match="stop sequences"):
                    await client.messages.create(
                        model="limpet",
                        max_tokens=500,
                        messages=HELLO,
                        stop_sequences=["x"],  # type: ignore
                    )

    asyncio.run(main())
