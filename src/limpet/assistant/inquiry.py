"""Asking a model something beside the conversation: one request, one text, its cost accounted for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

from msgspec import Struct, structs

from limpet.assistant.services import Services
from limpet.errors import UpstreamError
from limpet.llm.purposes import purpose_of, sampling_for
from limpet.llm.tokens import estimate_request
from limpet.store import usage
from limpet.types.content import Text
from limpet.types.event import Done, Notice
from limpet.types.message import AssistantMessage, Request, Sampling, UserMessage
from limpet.types.ports import Model
from limpet.types.usage import Usage


def _ignored(used: Usage) -> None:
    """Nobody counts along."""


class Inquiry(Struct, frozen=True):
    """Asks `model` for texts; notices (a budget that nears its end) go to the owner.

    `spend` is told what each one used; `factor` corrects the estimate of tokens.
    """

    services: Services
    model: Model
    session: str
    sampling: Sampling
    factor: float = 1.0
    spend: Callable[[Usage], None] = _ignored

    async def ask(self, request: Request) -> str:
        """The text of the answer; empty when the model called tools instead. Raises `ModelError`."""
        message = await self.answer(request)
        return "" if message.calls else message.text.strip()

    async def answer(self, request: Request) -> AssistantMessage:
        """The answer, calls included. Raises `ModelError`."""
        async with aclosing(self.model.stream(request)) as events:
            async for event in events:
                if isinstance(event, Done):
                    await self._settle(event)
                    return event.message
                if isinstance(event, Notice):
                    self.services.emit(event)
        raise UpstreamError("The answer ended without its end mark.", provider=self.model.profile.provider)

    def plain(self, text: str, *, max_tokens: int) -> Request:
        """A request that is nothing but `text`. It counts as the session's: no budget is got round."""
        return Request(
            session=self.session,
            system="",
            tools=(),
            messages=(UserMessage((Text(text),)),),
            sampling=structs.replace(self.sampling, max_tokens=max_tokens),
            rhythm="once",
        )

    def tokens(self, request: Request) -> int:
        return estimate_request(request, factor=self.factor * self.model.profile.token_factor)

    async def _settle(self, done: Done) -> None:
        self.spend(done.message.usage)
        if done.reservation:
            await self.services.store.write(
                lambda connection: usage.settle(connection, done.reservation, done.message.usage, state="done")
            )


def inquiry_with(
    services: Services, model: Model, session: str, *, spend: Callable[[Usage], None] = _ignored
) -> Inquiry:
    """Asks `model` as the settings for summaries say."""
    profile = model.profile
    sampling = sampling_for(purpose_of(services.purposes, "summary"), profile, tools=False)
    factor = services.weights.factor(profile) / profile.token_factor
    return Inquiry(services, model, session, sampling, factor=factor, spend=spend)
