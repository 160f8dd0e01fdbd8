"""No secret in what a model says, however it is cut into pieces."""

from __future__ import annotations

import asyncio

from limpet.assistant.redacted import Redacted
from limpet.config.secrets import SecretRedactor
from limpet.testing.scripted import Answer, ScriptedModel, call
from limpet.types.content import Text
from limpet.types.event import Done, ModelEvent, TextDelta, ThinkingDelta
from limpet.types.message import Request, UserMessage

KEY = "sk-very/secret+key"
REQUEST = Request(session="s", system="", tools=(), messages=(UserMessage(content=(Text("hi"),)),))


def events(answer: Answer) -> list[ModelEvent]:
    async def main() -> list[ModelEvent]:
        model = Redacted(ScriptedModel([answer]), SecretRedactor({"K": KEY}))
        return [event async for event in model.stream(REQUEST)]

    return asyncio.run(main())


def test_text_thinking_and_arguments_hold_no_secret() -> None:
    answer = Answer(
        text=f"the key is {KEY}, as an address sk-very%2Fsecret%2Bkey.",
        thinking=f"I know {KEY}",
        calls=(call("write_file", {"content": f"key={KEY}"}),),
    )
    found = events(answer)
    assert not any("secret" in part.replace("[secret:K]", "") for part in map(str, found))
    done = found[-1]
    assert isinstance(done, Done)
    assert done.message.text == "the key is [secret:K], as an address [secret:K]."
    assert done.message.calls[0].arguments == '{"content":"key=[secret:K]"}'


def test_the_pieces_add_up_to_the_answer() -> None:
    found = events(Answer(text=f"one sk-very nice {KEY} sk-", thinking="sk-very"))
    done = found[-1]
    assert isinstance(done, Done)
    assert "".join(event.text for event in found if isinstance(event, TextDelta)) == done.message.text
    assert "".join(event.text for event in found if isinstance(event, ThinkingDelta)) == "sk-very"
    assert done.message.text == "one sk-very nice [secret:K] sk-"


def test_an_answer_without_secrets_is_the_same_object() -> None:
    async def main() -> None:
        inner = ScriptedModel(["nothing to hide"])
        kept = [event async for event in inner.stream(REQUEST)]
        model = Redacted(ScriptedModel(["nothing to hide"]), SecretRedactor({"K": KEY}))
        assert [event async for event in model.stream(REQUEST)] == kept

    asyncio.run(main())
