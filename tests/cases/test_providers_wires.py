"""Faults of services as people reported them, between several wires: what one gave and another must not see."""

from __future__ import annotations

import asyncio
import itertools

import msgspec
import pytest
from msgspec import structs

from limpet.errors import RequestError
from limpet.llm.names import call_id, chat_id
from limpet.testing.fakes import Call, FakeGemini, FakeOpenAI, Reply, Rules
from limpet.testing.fakes.gemini import STAND_IN
from limpet.testing.wires import answer_of, ask, tool, user, wire_at
from limpet.types.content import Text, Thinking, ToolCall
from limpet.types.message import AssistantMessage, Message, Producer, ToolMessage
from limpet.types.profile import Profile

OPENAI = Profile(provider="openai", wire="openai_chat", model="m1")
KIMI = Profile(
    provider="moonshot",
    wire="openai_chat",
    model="kimi-k3",
    reasoning_echo="always",
    reasoning_pad=" ",
    schema="moonshot",
)
MISTRAL = Profile(provider="openrouter", wire="openai_chat", model="mistralai/x", id_length=9)
GEMINI = Profile(provider="gemini", wire="gemini", model="gemini-3", call_signature=STAND_IN)
GEMINI_CHAT = Profile(provider="google", wire="openai_chat", model="gemini-3", call_signature=STAND_IN)
OLD = Producer("x", "openai_chat", "old")
TOOLS = (tool("look"),)


def results(answer: AssistantMessage) -> list[ToolMessage]:
    return [ToolMessage(call.id, call.name, (Text("fine"),)) for call in answer.calls]


def sent(profile: Profile, *messages: Message, rules: Rules | None = None) -> list[dict]:
    """The messages as the strict fake took them."""

    async def run():
        async with FakeOpenAI([Reply(text=("ok",))], rules=rules) as server, wire_at(server, profile) as model:
            await answer_of(model, ask(*messages, tools=TOOLS, system=""))
            return server.requests[0].body["messages"]

    return asyncio.run(run())


CALLS = AssistantMessage((Text(""), ToolCall("c1", "look", "{}")), OLD, "tool_calls")
BLANK = AssistantMessage((Text("  "),), OLD)


def test_c07_kimi_gets_a_space_for_missing_reasoning_and_no_blank_content():
    history = (user("go"), CALLS, *results(CALLS), BLANK, user("and?"))
    found = sent(KIMI, *history, rules=Rules(kimi=True))
    assert [message["role"] for message in found] == ["user", "assistant", "tool", "user"]
    assert (found[1]["reasoning_content"], found[1]["content"]) == (" ", None)
    assert "reasoning_content" not in sent(OPENAI, *history)[1]


def test_c07_kimi_gets_its_own_reasoning_back():
    own = AssistantMessage((Thinking("plan"), ToolCall("c1", "look", "{}")), KIMI.producer, "tool_calls")
    found = sent(KIMI, user("go"), own, *results(own), rules=Rules(kimi=True))
    assert found[1]["reasoning_content"] == "plan"


def test_c09_a_signature_comes_back_also_after_a_restart_and_goes_nowhere_else():
    reply = Reply(calls=(Call("look", id="c1"),), signature="U0lH")

    async def run():
        signing = Rules(signatures=True)
        script = [reply, Reply(text=("a",)), Reply(text=("b",))]
        async with FakeOpenAI(script, rules=signing) as google, wire_at(google, GEMINI_CHAT) as model:
            answer = await answer_of(model, ask(tools=TOOLS))
            stored = msgspec.json.decode(msgspec.json.encode(answer), type=AssistantMessage)
            history = [user("Hi"), stored, *results(stored)]
            await answer_of(model, ask(*history, tools=TOOLS))
            async with FakeOpenAI([Reply(calls=(Call("look", id="c2"),))]) as other, wire_at(other, OPENAI) as plain:
                foreign = await answer_of(plain, ask(*history, user("next"), tools=TOOLS))
                assert b"U0lH" not in other.requests[0].raw
            await answer_of(model, ask(*history, user("next"), foreign, *results(foreign), tools=TOOLS))
            return [call["tool_calls"][0] for call in google.requests[2].body["messages"] if call.get("tool_calls")]

    own, foreign = asyncio.run(run())
    assert own["extra_content"] == {"google": {"thought_signature": "U0lH"}}
    assert foreign["extra_content"] == {"google": {"thought_signature": STAND_IN}}


def test_c09_the_same_at_its_own_api():
    async def run():
        script = [Reply(calls=(Call("look", id="c1"),), signature="U0lH"), Reply(text=("a",)), Reply(text=("b",))]
        async with FakeGemini(script) as google, wire_at(google, GEMINI) as model:
            answer = await answer_of(model, ask(tools=TOOLS))
            history = [user("Hi"), answer, *results(answer)]
            await answer_of(model, ask(*history, tools=TOOLS))
            async with FakeOpenAI([Reply(calls=(Call("look", id="c2"),))]) as other, wire_at(other, OPENAI) as plain:
                foreign = await answer_of(plain, ask(*history, user("next"), tools=TOOLS))
                assert b"U0lH" not in other.requests[0].raw
            await answer_of(model, ask(*history, user("next"), foreign, *results(foreign), tools=TOOLS))
            parts = [part for content in google.requests[2].body["contents"] for part in content["parts"]]
            return [part["thoughtSignature"] for part in parts if "functionCall" in part]

    assert asyncio.run(run()) == ["U0lH", STAND_IN]


def test_c09_the_strict_service_refuses_what_is_not_signed():
    async def run():
        unaware = structs.replace(GEMINI, call_signature="")
        async with FakeGemini([Reply()]) as google, wire_at(google, unaware) as model:
            await answer_of(model, ask(user("go"), CALLS, *results(CALLS), tools=TOOLS))

    with pytest.raises(RequestError, match="missing a thought_signature"):
        asyncio.run(run())


def test_c09_a_200_without_parts_is_an_empty_answer():
    async def run():
        async with FakeGemini([Reply()]) as google, wire_at(google, GEMINI) as model:
            return await answer_of(model, ask())

    assert asyncio.run(run()).content == ()


IDS = ("call_1740241912345", "functions.exec:38", "call_1740241912399", "Abc123xyz")


def test_c12_ids_are_mapped_where_a_service_counts_their_letters():
    calls = tuple(ToolCall(id, "look", "{}") for id in IDS)
    answer = AssistantMessage(calls, OLD, "tool_calls")
    history = (user("go"), answer, *results(answer))
    rules = Rules(id_pattern="^[A-Za-z0-9]{9}$")
    first, longer = (sent(MISTRAL, *history, *more, rules=rules) for more in ((), (user("and?"),)))
    ids = [call["id"] for call in first[1]["tool_calls"]]
    assert len(set(ids)) == len(IDS)
    assert ids == [message["tool_call_id"] for message in first[2:]]
    assert ids[3] == "Abc123xyz"
    assert longer[: len(first)] == first


@pytest.mark.parametrize("mapped", [call_id, lambda id: chat_id(id, 9), lambda id: chat_id(id, 0)])
def test_c12_no_two_ids_become_one(mapped):
    ids = [
        f"{stem}{n}{tail}" for stem, n, tail in itertools.product(("call_", "функ.", "x" * 70), range(200), ("", ":"))
    ]
    assert len({mapped(id) for id in ids}) == len(ids)
