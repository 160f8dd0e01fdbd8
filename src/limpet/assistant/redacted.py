"""A model whose answers hold no secrets: known values are replaced in all that it says, as it is said.

A provider or a proxy may put a key into an answer (an error text, an echo), and from there it would go to the screen,
the log, the outbox and every later request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from msgspec import structs

from limpet.config.secrets import SecretRedactor
from limpet.types.content import AssistantBlock, Opaque, Text, Thinking, ToolCall
from limpet.types.event import AnswerReset, Done, ModelEvent, Notice, TextDelta, ThinkingDelta
from limpet.types.message import Request
from limpet.types.ports import Model
from limpet.types.profile import Profile


class Redacted:
    """Wraps `model` outermost. What may be the beginning of a secret is held back until the next piece."""

    def __init__(self, model: Model, redactor: SecretRedactor) -> None:
        self._model = model
        self._redactor = redactor

    @property
    def profile(self) -> Profile:
        return self._model.profile

    async def close(self) -> None:
        await self._model.close()

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        text, thinking = self._redactor.stream(), self._redactor.stream()
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                match event:
                    case TextDelta():
                        if shown := text.feed(event.text):
                            yield TextDelta(shown)
                    case ThinkingDelta():
                        if shown := thinking.feed(event.text):
                            yield ThinkingDelta(shown)
                    case AnswerReset():
                        text, thinking = self._redactor.stream(), self._redactor.stream()
                        yield AnswerReset(self._redactor.redact(event.reason))
                    case Notice():
                        yield structs.replace(event, text=self._redactor.redact(event.text))
                    case Done():
                        if rest := thinking.flush():
                            yield ThinkingDelta(rest)
                        if rest := text.flush():
                            yield TextDelta(rest)
                        yield self._done(event)

    def _done(self, event: Done) -> Done:
        content = tuple(map(self._block, event.message.content))
        if content == event.message.content:
            return event
        return structs.replace(event, message=structs.replace(event.message, content=content))

    def _block(self, block: AssistantBlock) -> AssistantBlock:
        """`block` without secrets; a signature over what has changed is worth nothing and goes."""
        redact = self._redactor.redact
        match block:
            case Text() | Thinking():
                text = redact(block.text)
                return block if text == block.text else structs.replace(block, text=text, signature="")
            case ToolCall():
                return structs.replace(block, arguments=redact(block.arguments))
            case Opaque():
                return block
