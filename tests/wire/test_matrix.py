"""Every wire in every situation: the same behaviour, whatever the service."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack, aclosing

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from limpet.errors import BillingError, ContextOverflowError, CredentialError, RateLimitError, UpstreamError
from limpet.testing.fakes import Call, Reply
from limpet.testing.wires import MemoryBlobs, answer_of, ask, collect, tool, user, wire_at
from limpet.types.content import Image, Opaque, Text, Thinking, ToolCall
from limpet.types.event import TextDelta
from limpet.types.message import AssistantMessage, Message, Producer, ToolMessage, UserMessage
from tests.wire.services import SERVICES, WIRES

TOOLS = (tool("look"), tool("write"))
DONE = Reply(text=("done",))
every_wire = pytest.mark.parametrize("wire", WIRES)


def results(answer: AssistantMessage, *, is_error: bool = False) -> list[ToolMessage]:
    return [ToolMessage(call.id, call.name, (Text(f"of {call.name}"),), is_error) for call in answer.calls]


def exchange(wire: str, script: list[Reply], *requests, blobs=None, **rules: object):
    """Answers to requests (or functions of the answers so far), and what the fake saw, which refused nothing."""

    async def run():
        answers: list[AssistantMessage] = []
        service = SERVICES[wire]
        async with service.start(script, **rules) as server, wire_at(server, service.profile, blobs=blobs) as model:
            for request in requests:
                answers.append(await answer_of(model, request(*answers) if callable(request) else request))
            assert server.refusals == []
            return answers, server.requests

    return asyncio.run(run())


def after(*, is_error: bool = False):
    """The request that brings the results of the first answer."""
    return lambda answer, *_: ask(user("go"), answer, *results(answer, is_error=is_error), user("and?"), tools=TOOLS)


@every_wire
def test_text_streams_and_its_usage_is_counted(wire: str):
    async def run():
        reply = Reply(text=("Hel", "lo"), usage=(100, 7))
        service = SERVICES[wire]
        async with service.start([reply]) as server, wire_at(server, service.profile) as model:
            return await collect(model, ask())

    *deltas, done = asyncio.run(run())
    assert deltas == [TextDelta("Hel"), TextDelta("lo")]
    assert (done.message.text, done.message.stop) == ("Hello", "stop")
    assert (done.message.usage.input, done.message.usage.output) == (100, 7)


@every_wire
def test_cached_tokens_are_counted_once(wire: str):
    (answer,), _ = exchange(wire, [Reply(text=("x",), usage=(100, 7), cached=60)], ask())
    whole = 100 if wire in ("anthropic", "bedrock") else 40  # these two count what was cached apart
    assert (answer.usage.input, answer.usage.cache_read) == (whole, 60)


@every_wire
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("is_error", [False, True])
def test_calls_and_their_results(wire: str, count: int, is_error: bool):
    calls = tuple(Call("look", f'{{"n": {n}}}') for n in range(count))
    script = [Reply(text=("Let me see.",), calls=calls), DONE]
    (answer, last), seen = exchange(wire, script, ask(user("go"), tools=TOOLS), after(is_error=is_error))
    assert [msgspec.json.decode(call.arguments) for call in answer.calls] == [{"n": n} for n in range(count)]
    assert (answer.stop, last.text) == ("tool_calls", "done")
    assert seen[1].raw.count(b"of look") == count


@every_wire
def test_no_calls_wanted(wire: str):
    script = [Reply(calls=(Call("look"),)), DONE]
    again = lambda answer: ask(user("go"), answer, *results(answer), tools=TOOLS, tool_choice="none")  # noqa: E731
    exchange(wire, script, ask(user("go"), tools=TOOLS), again)
    exchange(wire, [DONE], ask(tools=TOOLS, tool_choice="none"))
    exchange(wire, script, ask(user("go"), tools=TOOLS), lambda answer: ask(user("go"), answer, *results(answer)))


@every_wire
def test_pictures_of_people_and_of_tools(wire: str):
    blobs = MemoryBlobs()
    image = Image(asyncio.run(blobs.put(b"png")), "image/png")
    lost = Image("0" * 64, "image/png", "cat.png")
    answer = AssistantMessage((ToolCall("c1", "look", "{}"),), Producer("x", "x", "x"), "tool_calls")
    shown = ToolMessage("c1", "look", (Text("seen"), image))
    history = (UserMessage((Text("this"), image, lost)), answer, shown, user("and?"))
    _, seen = exchange(wire, [DONE], ask(*history, tools=TOOLS), blobs=blobs)
    assert seen[0].raw.count(b"cG5n") == 2
    assert b"[image: cat.png; no longer stored]" in seen[0].raw


@every_wire
def test_an_empty_answer_has_no_content(wire: str):
    (answer,), _ = exchange(wire, [Reply()], ask())
    assert (answer.content, answer.stop) == ((), "stop")


@every_wire
def test_a_context_too_long(wire: str):
    with pytest.raises(ContextOverflowError):
        exchange(wire, [], ask(user("x" * 900)), max_characters=400)


@every_wire
def test_who_stops_reading_gets_the_connection_back_and_can_ask_again(wire: str):
    async def run():
        service = SERVICES[wire]
        script = [Reply(text=("a", "b"), stall_after=4), DONE]
        async with service.start(script) as server, wire_at(server, service.profile) as model:
            async with asyncio.timeout(5), aclosing(model.stream(ask())) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        break
            return (await answer_of(model, ask())).text

    assert asyncio.run(run()) == "done"


STATUSES = {
    429: (RateLimitError, "slow down"),
    500: (UpstreamError, "oops"),
    503: (UpstreamError, "overloaded"),
    401: (CredentialError, "who are you"),
    402: (BillingError, "no credits"),
}


@every_wire
@pytest.mark.parametrize("status", STATUSES)
def test_refusals_say_what_to_do(wire: str, status: int):
    kind, words = STATUSES[status]
    reply = Reply(status=status, body={"error": {"message": words}}, headers={"Retry-After": "7"})
    with pytest.raises(kind, match=words) as caught:
        exchange(wire, [reply], ask())
    assert caught.value.status == status
    assert caught.value.provider == SERVICES[wire].profile.provider


@every_wire
def test_a_wrong_key(wire: str):
    async def run():
        service = SERVICES[wire]
        async with service.start([]) as server, wire_at(server, service.profile, key="nope") as model:
            await answer_of(model, ask())

    with pytest.raises(CredentialError):
        asyncio.run(run())


@every_wire
@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(text=tuple("abcdef"), cut_after=4), "cut off"),
        (Reply(raw=("data: {oops\n\n",)), "not readable"),
        (Reply(raw=("data: {}\n\n",)), "empty|no choices|no candidates|not readable"),
        (Reply(raw=("\x00\x01\x02garbage that is no stream at all",)), "."),
        (Reply(body="<html>login</html>"), "HTML|not readable"),
    ],
)
def test_a_broken_stream_is_never_an_answer(wire: str, reply: Reply, words: str):
    with pytest.raises(UpstreamError, match=words):
        exchange(wire, [reply], ask())


@every_wire
def test_half_characters_anywhere(wire: str):
    half = "bad \ud83d half"
    answer = AssistantMessage((Text(half), ToolCall("i\ud83d", "n\ud83d", '{"a":"b"}')), Producer("x", "x", "x"))
    result = ToolMessage("i\ud83d", "n\ud83d", (Text(half),))
    _, seen = exchange(wire, [DONE], ask(user(half), answer, result, tools=TOOLS, system=half))
    assert "bad \ufffd half".encode() in seen[0].raw


@every_wire
def test_a_turn_read_from_the_log_is_sent_byte_for_byte_as_before(wire: str):
    def reloaded(answer: AssistantMessage, *_: AssistantMessage):
        kept = msgspec.json.decode(msgspec.json.encode(answer), type=AssistantMessage)
        return ask(user("go"), kept, *results(kept), user("and?"), tools=TOOLS)

    script = [Reply(thinking="hm", text=("Let me see.",), calls=(Call("look"),)), DONE, DONE]
    _, seen = exchange(wire, script, ask(user("go"), tools=TOOLS), after(), reloaded)
    assert seen[1].raw == seen[2].raw


@pytest.mark.parametrize("second", SERVICES)
@pytest.mark.parametrize("first", SERVICES)
def test_a_conversation_moves_to_another_service_and_back(first: str, second: str):
    turn = Reply(thinking="secret", text=("Let me see.",), calls=(Call("look"), Call("write")))
    asyncio.run(walk([(first, turn), (second, turn), (first, DONE), (second, turn), (first, DONE)], []))


def distinct(reply: Reply, step: int) -> Reply:
    """The same with calls whose ids no other fake gives: sessions see to that."""
    calls = (msgspec.structs.replace(call, id=f"call_{step}_{at}") for at, call in enumerate(reply.calls))
    return msgspec.structs.replace(reply, calls=tuple(calls))


async def walk(steps: list[tuple[str, Reply]], history: list[Message]) -> None:
    """Each step asks one service with all that was said before; none of them may refuse."""
    async with AsyncExitStack() as stack:
        models = {}
        servers = {}
        for name in {name for name, _ in steps}:
            replies = [distinct(reply, at) for at, (used, reply) in enumerate(steps) if used == name]
            servers[name] = await stack.enter_async_context(SERVICES[name].start(replies))
            models[name] = await stack.enter_async_context(wire_at(servers[name], SERVICES[name].profile))
        for at, (name, _) in enumerate(steps):
            history.append(user(f"step {at}"))
            answer = await answer_of(models[name], ask(*history, tools=TOOLS))
            history += [answer, *results(answer, is_error=at % 2 == 1)]
        assert [refusal for server in servers.values() for refusal in server.refusals] == []


TEXTS = st.sampled_from(["", " ", "plan", "é\ud83d", "a\n\nb"])
IDS = ["call_1740241912345", "call_1740241912346", "functions.exec:38", "x" * 90, "ид", "a b", "123456789"]


@st.composite
def made_up_turns(draw) -> list[Message]:
    """Turns as older versions or other programs may have left them in a log."""
    history: list[Message] = []
    pool = list(draw(st.permutations(IDS)))
    for _ in range(draw(st.integers(0, 3))):
        history.append(UserMessage((Text(draw(TEXTS)), Opaque(msgspec.Raw(b'{"type":"new"}')))))
        blocks: list = [Thinking(draw(TEXTS)), Text(draw(TEXTS))]
        ids = [pool.pop() for _ in range(draw(st.integers(0, min(3, len(pool)))))]
        blocks += [ToolCall(id, draw(st.sampled_from(["look", "gone.tool", "x y"])), '{"a":[1]}') for id in ids]
        answer = AssistantMessage(tuple(blocks), Producer("x", "openai_chat", "old"))
        history += [answer, *(ToolMessage(call.id, call.name, (Text(draw(TEXTS)),)) for call in answer.calls)]
    return history


REPLIES = st.builds(
    Reply,
    text=st.lists(st.sampled_from(["a", " ", "b\n"]), max_size=2).map(tuple),
    thinking=st.sampled_from(["", "hm", "long plan"]),
    calls=st.lists(st.builds(Call, st.sampled_from(["look", "write"])), max_size=3).map(tuple),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(list(SERVICES)), REPLIES), min_size=1, max_size=8), made_up_turns())
def test_no_history_of_any_services_breaks_a_strict_one(steps: list[tuple[str, Reply]], history: list[Message]):
    asyncio.run(walk(steps, history))


def test_a_thousand_messages_go_from_service_to_service():
    history: list[Message] = []
    for turn in range(250):
        calls = (ToolCall(f"functions.exec:{turn}", "look", "{}"), ToolCall(f"call_17402419{turn:05d}", "write", "{}"))
        answer = AssistantMessage((Thinking("hm", "S"), Text("so"), *calls), Producer("x", "openai_chat", "old"))
        history += [user(f"turn {turn}"), answer, *results(answer)]
    turn_of_two = Reply(thinking="secret", calls=(Call("look"), Call("write")))
    asyncio.run(walk([(name, turn_of_two) for name in [*SERVICES, *reversed(SERVICES)]], history))


def long_history(draw: random.Random, producers: Sequence[Producer]) -> list[Message]:
    """A thousand messages as several services, tools and people may have left them."""
    history: list[Message] = []
    while len(history) < 1_000:
        at = len(history)
        blocks: list = [Thinking(draw.choice(["hm", ""]), draw.choice(["S", ""]))] if draw.random() < 0.3 else []
        blocks.append(Text(draw.choice(["so", " ", "", "é\ud83d", "plan\n\n"])))
        names = draw.choices(["look", "write", "gone.tool"], k=draw.randint(0, 3))
        shapes = ("call_17402419{}", "functions.exec:{}", "{:09d}", "x" * 70 + "{}", "ид {}")
        ids = [draw.choice(shapes).format(10 * at + n) for n in range(len(names))]
        blocks += [ToolCall(id, name, draw.choice(["{}", '{"a":[1]}'])) for id, name in zip(ids, names, strict=True)]
        answer = AssistantMessage(tuple(blocks), draw.choice(producers))
        history += [
            user(draw.choice(["go on", " ", "é\ud83d"])),
            answer,
            *results(answer, is_error=draw.random() < 0.2),
        ]
    return history


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(list(SERVICES)), st.sampled_from(list(SERVICES)), REPLIES, st.integers(0, 2**32))
def test_a_thousand_messages_of_anybody_are_taken_by_any_two_services(first: str, second: str, reply: Reply, seed: int):
    made_by = [SERVICES[name].profile.producer for name in SERVICES if name not in (first, second)]
    history = long_history(random.Random(seed), [*made_by, Producer("x", "openai_chat", "old")])
    asyncio.run(walk([(first, reply), (second, reply), (first, DONE)], history))
