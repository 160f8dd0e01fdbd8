"""A program has tools of its own: the model is asked itself, and its calls go back to the program.

Nothing of it is a conversation of the agent: what is said stands in the request, or was kept under the name of the
answer before (`previous_response_id`). What it costs is accounted for like everything else.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec
from msgspec import structs

from limpet.assistant.services import Services
from limpet.errors import UpstreamError
from limpet.llm.purposes import purpose_of, sampling_for
from limpet.net.client import Web
from limpet.server.api import pictures
from limpet.server.api.asks import Ask, Ended, Fault, Line
from limpet.store import usage
from limpet.types.content import AssistantBlock, Text, ToolCall, UserBlock
from limpet.types.event import Done, TextDelta
from limpet.types.ids import new_id
from limpet.types.message import AssistantMessage, Message, Producer, Request, Sampling, ToolMessage, UserMessage
from limpet.types.profile import Profile

PROGRAM = Producer("program", "", "")
"""Who made the answers that a program tells of: nobody knows."""
BEGINNING = "[The conversation begins.]"
_lines = msgspec.json.Decoder(tuple[Line, ...])


def kept(lines: Sequence[Line], ended: Ended) -> bytes:
    """What was said up to an answer, to be gone on from."""
    return msgspec.json.encode((*lines, Line("assistant", ended.text, calls=ended.calls)))


def goes_on(payload: bytes) -> tuple[Line, ...]:
    return _lines.decode(payload)


async def messages_of(lines: Sequence[Line], services: Services, web: Web) -> tuple[Message, ...]:
    """The messages as a model is sent them. Raises `Fault` for calls without results, and the other way round."""
    found: list[Message] = []
    open_calls: dict[str, str] = {}
    for line in lines:
        images = await pictures.blocks(await pictures.fetched(line.pictures, web), services.blobs)
        text = (Text(line.text),) if line.text.strip() or not (images or line.calls) else ()
        if line.role == "tool":
            name = open_calls.pop(line.call, "")
            if not name:
                raise Fault(400, f"A result is for the call {line.call[:80]!r}, which there is not.", field="messages")
            found.append(ToolMessage(line.call, name, (*text, *images), line.is_error))
            continue
        if open_calls and line.role == "user":
            raise _unanswered(open_calls)
        if line.role == "user":
            _add_user(found, (*text, *images))
            continue
        open_calls |= _checked(line.calls, open_calls)
        _add_assistant(found, (*text, *line.calls))
    if open_calls:
        raise _unanswered(open_calls)
    if not found or isinstance(found[-1], AssistantMessage):
        raise Fault(400, "The newest message has to be one of the user, or a tool's result.", field="messages")
    return tuple(found)


def _add_user(found: list[Message], blocks: tuple[UserBlock, ...]) -> None:
    if found and isinstance(last := found[-1], UserMessage):
        found[-1] = UserMessage((*last.content, *blocks))
    else:
        found.append(UserMessage(blocks))


def _add_assistant(found: list[Message], blocks: tuple[AssistantBlock, ...]) -> None:
    if not found:
        found.append(UserMessage((Text(BEGINNING),)))
    if isinstance(last := found[-1], AssistantMessage):
        found[-1] = structs.replace(last, content=(*last.content, *blocks))
    else:
        found.append(AssistantMessage(blocks, PROGRAM))


def _checked(calls: Sequence[ToolCall], known: dict[str, str]) -> dict[str, str]:
    """The calls of an answer by their ids. Raises `Fault`."""
    found: dict[str, str] = {}
    for call in calls:
        if not call.id or call.id in found or call.id in known:
            raise Fault(400, f"Each call needs an id of its own, not {call.id[:80]!r}.", field="messages")
        try:
            msgspec.json.decode(call.arguments, type=dict[str, object])
        except msgspec.MsgspecError:
            raise Fault(400, f"The arguments of the call {call.id[:80]!r} are no object.", field="messages") from None
        found[call.id] = call.name
    return found


def _unanswered(calls: dict[str, str]) -> Fault:
    return Fault(400, f"No result was given for the calls {', '.join(calls)[:200]}.", field="messages")


async def answers(ask: Ask, messages: tuple[Message, ...], services: Services) -> AsyncGenerator[str | Ended | None]:
    """Pieces of the answer, at last all of it. Raises `LimpetError`."""
    model = await services.models.get("")
    request = Request(
        session=new_id("api"),
        system=ask.system,
        tools=ask.tools,
        messages=messages,
        tool_choice=ask.choice,
        sampling=_sampling(services, model.profile, ask.sampling),
        rhythm="quick",
    )
    cut = Cut(ask.stop)
    async with aclosing(model.stream(request)) as events:
        async for event in events:
            if isinstance(event, Done):
                await _settle(services, event)
                rest = cut.rest()
                if rest:
                    yield rest
                yield _ended(event.message, cut)
                return
            if isinstance(event, TextDelta) and (piece := cut.add(event.text)):
                yield piece
    raise UpstreamError("The answer ended without its end mark.", provider=model.profile.provider)


def _sampling(services: Services, profile: Profile, own: Sampling) -> Sampling:
    usual = sampling_for(purpose_of(services.purposes, "chat"), profile, tools=True)
    temperature = usual.temperature if own.temperature is None else own.temperature
    return structs.replace(usual, temperature=temperature, max_tokens=own.max_tokens or usual.max_tokens)


async def _settle(services: Services, done: Done) -> None:
    if done.reservation:
        await services.store.write(
            lambda connection: usage.settle(connection, done.reservation, done.message.usage, state="done")
        )


def _ended(message: AssistantMessage, cut: Cut) -> Ended:
    if cut.found:
        return Ended(cut.said, stop="stop", usage=message.usage, sequence=cut.found)
    return Ended(message.text, message.calls, message.stop, message.usage)


class Cut:
    """Ends a text before the first of `stops` in it: what may be the beginning of one is held back."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._held = max(map(len, stops), default=1) - 1
        self._text = ""
        self.said = ""
        self.found = ""

    def add(self, text: str) -> str:
        """What of the text so far can be said now."""
        if self.found:
            return ""
        self._text += text
        places = [(at, one) for one in self._stops if (at := self._text.find(one)) >= 0]
        if places:
            at, self.found = min(places)
            return self._say(at)
        return self._say(len(self._text) - self._held)

    def rest(self) -> str:
        """What was held back, at the end."""
        return "" if self.found else self._say(len(self._text))

    def _say(self, count: int) -> str:
        piece = self._text[: max(0, count)]
        self._text = self._text[len(piece) :]
        self.said += piece
        return piece
