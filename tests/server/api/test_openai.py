"""OpenAI's own client, unmodified."""

from __future__ import annotations

import asyncio
from pathlib import Path

import openai as sdk
import pytest

from limpet.testing.fakes.script import Call, Reply
from tests.gateway.house import messages
from tests.server.api.clients import PIXEL, WEATHER, openai, scripted, turns
from tests.server.test_server import served

TOOL = {"type": "function", "function": {"name": "weather", "description": "It.", "parameters": WEATHER}}


def test_an_agent_answers(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here, openai(here) as client:
            answer = await client.chat.completions.create(
                model="limpet", messages=[{"role": "user", "content": "hello"}]
            )
            assert answer.choices[0].message.content == "echo: hello"
            assert answer.choices[0].finish_reason == "stop"
            assert answer.usage is not None
            assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (100, 10)

    asyncio.run(main())


def test_an_answer_is_streamed(home: Path) -> None:
    async def main() -> None:
        replies = scripted(Reply(text=("Lim", "pets ", "hold.")))
        async with served(home, script=replies) as here, openai(here) as client:
            stream = await client.chat.completions.create(
                model="limpet/main",
                messages=[{"role": "user", "content": "hello"}],
                stream=True,
                stream_options={"include_usage": True},
            )
            chunks = [chunk async for chunk in stream]
            text = [one.choices[0].delta.content or "" for one in chunks if one.choices]
            assert "".join(text) == "Limpets hold."
            assert len([one for one in text if one]) > 1
            assert chunks[-1].usage is not None
            assert chunks[-1].usage.total_tokens == 110

    asyncio.run(main())


def test_who_tells_the_whole_history_goes_on_with_the_same_conversation(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here, openai(here) as client:
            said: list[dict[str, str]] = [{"role": "system", "content": "Be brief."}]
            names: list[str] = []
            for text in ("one", "two", "three"):
                said.append({"role": "user", "content": text})
                raw = await client.chat.completions.with_raw_response.create(model="limpet", messages=said)  # type: ignore
                answer = raw.parse().choices[0].message.content or ""
                assert answer == f"echo: {text}"
                names.append(raw.headers["X-Limpet-Session"])
                said.append({"role": "assistant", "content": answer})
            assert len(set(names)) == 1
            assert str(messages(here.model.requests[-1].body)).count("echo: one") == 1, "nothing is doubled"
            assert turns(here) == 3

    asyncio.run(main())


def test_the_same_first_words_begin_another_conversation(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here, openai(here) as client:
            create = client.chat.completions.with_raw_response.create
            first, second = [await create(model="limpet", messages=[{"role": "user", "content": "hi"}]) for _ in "ab"]
            assert first.headers["X-Limpet-Session"] != second.headers["X-Limpet-Session"]

    asyncio.run(main())


def test_a_key_makes_a_request_the_same(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here, openai(here) as client:
            headers = {"Idempotency-Key": "k1"}
            for _ in range(2):
                answer = await client.chat.completions.create(
                    model="limpet", messages=[{"role": "user", "content": "hello"}], extra_headers=headers
                )
                assert answer.choices[0].message.content == "echo: hello"
            assert turns(here) == 1
            with pytest.raises(sdk.UnprocessableEntityError):
                await client.chat.completions.create(
                    model="limpet", messages=[{"role": "user", "content": "other"}], extra_headers=headers
                )

    asyncio.run(main())


def test_a_repetition_by_the_client_itself_is_the_same_request(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here, openai(here) as client:
            for count in ("0", "1"):
                await client.chat.completions.create(
                    model="limpet",
                    messages=[{"role": "user", "content": "hello"}],
                    extra_headers={"x-stainless-retry-count": count},
                )
            assert turns(here) == 1

    asyncio.run(main())


def test_tools_of_the_program_are_called_by_the_program(home: Path) -> None:
    async def main() -> None:
        call = Reply(calls=(Call("weather", '{"place": "Brest"}', id="call_1"),))
        async with served(home, script=scripted(call, Reply(text=("It rains.",)))) as here, openai(here) as client:
            said: list[object] = [{"role": "user", "content": "Weather in Brest?"}]
            first = await client.chat.completions.create(model="limpet", messages=said, tools=[TOOL])  # type: ignore
            assert first.choices[0].finish_reason == "tool_calls"
            (made,) = first.choices[0].message.tool_calls or ()
            assert made.type == "function"
            assert (made.function.name, made.function.arguments) == ("weather", '{"place": "Brest"}')
            said += [first.choices[0].message, {"role": "tool", "tool_call_id": made.id, "content": "rain"}]
            second = await client.chat.completions.create(model="limpet", messages=said, tools=[TOOL])  # type: ignore
            assert second.choices[0].message.content == "It rains."

    asyncio.run(main())


def test_calls_are_streamed_too(home: Path) -> None:
    async def main() -> None:
        call = Reply(
            text=("I look.",), calls=(Call("weather", '{"place":"Brest"}'), Call("weather", '{"place":"Oban"}'))
        )
        async with served(home, script=scripted(call)) as here, openai(here) as client:
            async with client.chat.completions.stream(
                model="limpet",
                messages=[{"role": "user", "content": "Weather?"}],
                tools=[TOOL],  # type: ignore
            ) as stream:
                final = await stream.get_final_completion()
            calls = final.choices[0].message.tool_calls or []
            assert [one.function.arguments for one in calls] == ['{"place":"Brest"}', '{"place":"Oban"}']
            assert final.choices[0].message.content == "I look."

    asyncio.run(main())


@pytest.mark.parametrize("tools", [[], [TOOL]], ids=["agent", "tools"])
def test_pictures_reach_the_model(home: Path, tools: list[object]) -> None:
    async def main() -> None:
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
        said = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, picture]}]
        config = '[models.catalog."lab/dreamer"]\nimages = true\n'
        async with served(home, config=config) as here, openai(here) as client:
            more = {"tools": tools} if tools else {}
            await client.chat.completions.create(model="limpet", messages=said, **more)  # type: ignore
            assert PIXEL in here.model.requests[-1].raw.decode()

    asyncio.run(main())


def test_sampling_is_passed_on(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here, openai(here) as client:
            await client.chat.completions.create(
                model="limpet", messages=[{"role": "user", "content": "hello"}], temperature=0.2, max_tokens=77
            )
            body = here.model.requests[-1].body or {}
            assert (body["temperature"], body.get("max_tokens") or body.get("max_completion_tokens")) == (0.2, 77)

    asyncio.run(main())


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_goes_on_from_another(home: Path, stream: bool) -> None:
    async def main() -> None:
        async with served(home) as here, openai(here) as client:
            first = await client.responses.create(model="limpet", input="one")
            assert first.output_text == "echo: one"
            assert first.usage is not None
            assert first.usage.total_tokens == 110
            more = {"model": "limpet", "input": "two", "previous_response_id": first.id}
            if not stream:
                assert (await client.responses.create(**more)).output_text == "echo: two"
            else:
                async with client.responses.stream(**more) as events:
                    final = await events.get_final_response()
                assert final.output_text == "echo: two"
            assert "echo: one" in str(messages(here.model.requests[-1].body))

    asyncio.run(main())


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_takes_results_of_tools(home: Path, stream: bool) -> None:
    async def main() -> None:
        call = Reply(calls=(Call("weather", '{"place":"Brest"}', id="call_1"),))
        tools = [{"type": "function", "name": "weather", "parameters": WEATHER, "strict": False}]
        async with served(home, script=scripted(call, Reply(text=("It rains.",)))) as here, openai(here) as client:
            if stream:
                async with client.responses.stream(model="limpet", input="Weather?", tools=tools) as events:  # type: ignore
                    first = await events.get_final_response()
            else:
                first = await client.responses.create(model="limpet", input="Weather?", tools=tools)  # type: ignore
            (made,) = first.output
            assert made.type == "function_call"
            assert made.arguments == '{"place":"Brest"}'
            result = {"type": "function_call_output", "call_id": made.call_id, "output": "rain"}
            second = await client.responses.create(model="limpet", input=[result], previous_response_id=first.id)  # type: ignore
            assert second.output_text == "It rains."

    asyncio.run(main())


def test_models_are_the_agents(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here, openai(here) as client:
            assert [one.id async for one in client.models.list()] == ["limpet", "limpet/main"]
            assert (await client.models.retrieve("limpet/main")).owned_by == "limpet"
            with pytest.raises(sdk.NotFoundError, match="There are: limpet"):
                await client.models.retrieve("gpt-5")

    asyncio.run(main())


def test_stop_sequences_end_an_answer_to_a_program_with_tools(home: Path) -> None:
    async def main() -> None:
        reply = Reply(
            text=(
                "one, t",
                "wo, three",
            )
        )
        async with served(home, script=scripted(reply)) as here, openai(here) as client:
            answer = await client.chat.completions.create(
                model="limpet",
                messages=[{"role": "user", "content": "Count."}],
                tools=[TOOL],
                stop="two",  # type: ignore
            )
            assert answer.choices[0].message.content == "one, "

    asyncio.run(main())
