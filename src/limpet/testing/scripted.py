"""A model that answers from a script, for tests, the bench and examples."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable

import msgspec
from msgspec import Struct

from limpet.errors import ModelError, RequestError
from limpet.llm.exchange import Tally
from limpet.llm.tokens import estimate
from limpet.types.content import AssistantBlock, Text, Thinking, ToolCall
from limpet.types.event import Done, ModelEvent, TextDelta, ThinkingDelta
from limpet.types.message import AssistantMessage, Request, StopReason
from limpet.types.profile import Profile
from limpet.types.usage import Usage

SCRIPTED = Profile(provider="scripted", wire="openai_chat", model="scripted-1", window=128_000)


class Answer(Struct, frozen=True):
    """One scripted answer. `delay` is seconds before it begins; `hang`: never ends after its text (for stops)."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    thinking: str = ""
    stop: StopReason | None = None
    usage: Usage = Usage(input=100, output=10, cost=10)
    delay: float = 0.0
    hang: bool = False


Step = Answer | str | ModelError | Callable[[Request], "Answer | str | ModelError"]


def call(name: str, arguments: object = None, *, id: str = "") -> ToolCall:
    """A call of `name` with `arguments` (anything that encodes as a JSON object)."""
    text = msgspec.json.encode({} if arguments is None else arguments).decode()
    return ToolCall(id=id, name=name, arguments=text)


class ScriptedModel:
    """A `Model` that plays `script` in order and keeps every request in `requests`.

    A step is an `Answer`, a plain text, an error to raise, or a function of the request that gives one of them.
    Past its end the script raises `RequestError`, unless `forever` repeats the last step.
    """

    def __init__(self, script: Iterable[Step], *, profile: Profile = SCRIPTED, forever: bool = False) -> None:
        self._script = list(script)
        self._profile = profile
        self._forever = forever
        self.requests: list[Request] = []
        self.closed = False

    @property
    def profile(self) -> Profile:
        return self._profile

    async def stream(self, request: Request, tally: Tally | None = None) -> AsyncGenerator[ModelEvent, None]:
        turn = len(self.requests)
        self.requests.append(request)
        answer = self._step(turn, request)
        if tally is not None:
            tally.owed = True
            tally.count = lambda: Usage(output=estimate(answer.thinking + answer.text))
        await asyncio.sleep(answer.delay)
        if answer.thinking:
            yield ThinkingDelta(answer.thinking)
        for piece in _pieces(answer.text):
            yield TextDelta(piece)
        if answer.hang:
            await asyncio.Event().wait()
        yield Done(self._message(turn, answer))

    async def close(self) -> None:
        self.closed = True

    def _step(self, turn: int, request: Request) -> Answer:
        if turn >= len(self._script) and not (self._forever and self._script):
            raise RequestError(f"the script ends after {len(self._script)} answers", provider="scripted")
        step = self._script[min(turn, len(self._script) - 1)]
        if not isinstance(step, Answer | str | ModelError):
            step = step(request)
        if isinstance(step, ModelError):
            raise step
        return Answer(text=step) if isinstance(step, str) else step

    def _message(self, turn: int, answer: Answer) -> AssistantMessage:
        blocks: list[AssistantBlock] = []
        if answer.thinking:
            blocks.append(Thinking(answer.thinking))
        if answer.text:
            blocks.append(Text(answer.text))
        for index, block in enumerate(answer.calls):
            blocks.append(block if block.id else msgspec.structs.replace(block, id=f"call_{turn + 1}_{index + 1}"))
        stop = answer.stop or ("tool_calls" if answer.calls else "stop")
        return AssistantMessage(content=tuple(blocks), producer=self._profile.producer, stop=stop, usage=answer.usage)


def _pieces(text: str) -> list[str]:
    """`text` in at most three pieces, so that streaming is exercised."""
    size = max(1, -(-len(text) // 3))
    return [text[at : at + size] for at in range(0, len(text), size)]
