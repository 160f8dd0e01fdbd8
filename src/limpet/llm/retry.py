"""A model that asks once more when a request failed in a way that passes: told to those who watch, never silent."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from msgspec import Struct

from limpet.errors import RateLimitError, RetryableError
from limpet.types.event import AnswerReset, Done, ModelEvent, Notice, TextDelta, ThinkingDelta
from limpet.types.message import Request
from limpet.types.ports import Model
from limpet.types.profile import Profile


class Patience(Struct, frozen=True):
    """`attempts` in all. Before the next one: `pause` seconds, doubled each time, plus up to half of it by chance.

    A provider that asks for more than `longest` seconds is not waited for.
    """

    attempts: int = 2
    pause: float = 0.5
    longest: float = 5.0


class Retrying:
    """Wraps `model`. Raises the last `RetryableError` when patience ends, every other error at once."""

    def __init__(
        self,
        model: Model,
        *,
        patience: Patience = Patience(),  # noqa: B008 (frozen)
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._model = model
        self._patience = patience
        self._sleep = sleep
        self._chance = chance

    @property
    def profile(self) -> Profile:
        return self._model.profile

    async def close(self) -> None:
        await self._model.close()

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        attempt = 0
        while True:
            attempt += 1
            shown = False
            try:
                async with aclosing(self._model.stream(request)) as events:
                    async for event in events:
                        shown = shown or isinstance(event, TextDelta | ThinkingDelta)
                        yield event
                        if isinstance(event, Done):
                            return
                return
            except RetryableError as error:
                wait = self._wait(error, attempt)
                if wait is None:
                    raise
                reason = error.brief()
            if shown:
                yield AnswerReset(reason)
            yield Notice(f"{reason}. Asking again in {wait:.1f} s.", "warning")
            await self._sleep(wait)

    def _wait(self, error: RetryableError, attempt: int) -> float | None:
        """Seconds before the next attempt; None when there is none."""
        if attempt >= self._patience.attempts:
            return None
        asked = error.retry_after if isinstance(error, RateLimitError) else None
        if asked is not None and asked > self._patience.longest:
            return None
        pause = self._patience.pause * 2 ** (attempt - 1)
        return min(self._patience.longest, max(asked or 0.0, pause) + pause / 2 * self._chance())
